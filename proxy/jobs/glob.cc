#include "proxy/jobs/glob.h"

#include <algorithm>
#include <cstddef>

namespace gannet::proxy {
namespace {

unsigned char Byte(char c) { return static_cast<unsigned char>(c); }

// Matches a character with the [...] at `*at`, and moves behind it.
bool SetHas(std::string_view pattern, size_t* at, char c) {
  size_t i = *at + 1;
  const bool negated = i < pattern.size() && pattern[i] == '^';
  if (negated) ++i;
  bool has = false;
  for (; i < pattern.size() && pattern[i] != ']'; ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      has = has || pattern[++i] == c;
    } else if (i + 2 < pattern.size() && pattern[i + 1] == '-') {
      const auto ends = std::minmax({Byte(pattern[i]), Byte(pattern[i + 2])});
      has = has || (Byte(c) >= ends.first && Byte(c) <= ends.second);
      i += 2;
    } else {
      has = has || pattern[i] == c;
    }
  }
  *at = std::min(i + 1, pattern.size());
  return has != negated;
}

// Matches one character with what is at `*at`, which is no *, and moves behind it.
bool OneMatches(std::string_view pattern, size_t* at, char c) {
  if (pattern[*at] == '[') return SetHas(pattern, at, c);
  if (pattern[*at] == '?') {
    ++*at;
    return true;
  }
  if (pattern[*at] == '\\' && *at + 1 < pattern.size()) ++*at;
  return pattern[(*at)++] == c;
}

}  // namespace

// If something does not match, only the last * has to take one character more. If an earlier one
// could take it, the last one can, too.
bool GlobMatches(std::string_view pattern, std::string_view text) {
  size_t at = 0;
  size_t i = 0;
  size_t star = std::string_view::npos;
  size_t star_i = 0;
  while (i < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      star_i = i;
      continue;
    }
    if (at < pattern.size() && OneMatches(pattern, &at, text[i])) {
      ++i;
      continue;
    }
    if (star == std::string_view::npos) return false;
    at = star;
    i = ++star_i;
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace gannet::proxy
