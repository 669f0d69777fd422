#include "tools/kvcli/hint.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/kvcli/verbs.h"

namespace gannet::kvcli {
namespace {

constexpr std::string_view kMore = " ...";

// What the line has of a command's words.
struct Typed {
  size_t plain = 0;                  // words that are no options
  std::vector<std::string> options;  // their names
  bool literal = false;              // a -- was typed
  size_t behind_literal = 0;
};

// `finished`: there is a blank behind the last word. `from`: the words before it are the command.
Typed TypedOf(const std::vector<std::string>& words, size_t from, bool finished) {
  Typed typed;
  for (size_t i = from; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool grows = i + 1 == words.size() && !finished;
    if (typed.literal) {
      ++typed.behind_literal;
    } else if (word == "--") {
      typed.literal = !grows;  // it may become an option
    } else if (word.starts_with("--")) {
      typed.options.push_back(word.substr(2, word.find('=') - 2));
    } else {
      ++typed.plain;
    }
  }
  return typed;
}

bool IsOption(std::string_view token) {
  return token.starts_with("[--") || (token.starts_with("--") && token != "--");
}

// The name in "[--ttl=TIME]".
std::string_view NameOf(std::string_view token) {
  token.remove_prefix(token.starts_with('[') ? 3 : 2);
  return token.substr(0, token.find_first_of("=]"));
}

bool Has(const Typed& typed, std::string_view option) {
  return std::ranges::find(typed.options, option) != typed.options.end();
}

// Returns what is left of "KEY VALUE...", whose words repeat as a group, or of "GROUP [WORD]...",
// whose last one repeats.
std::string LeftOfGroup(const std::vector<std::string>& places, size_t plain) {
  const bool last_repeats = places.back().starts_with('[');
  const size_t from = last_repeats ? std::min(plain, places.size() - 1) : plain % places.size();
  const std::string left =
      absl::StrJoin(places.begin() + static_cast<std::ptrdiff_t>(from), places.end(), " ");
  return !last_repeats && plain > 0 && from == 0 ? absl::StrCat("[", left, "]") : left;
}

// Returns the tokens of a usage that were not typed yet.
std::vector<std::string> Left(const std::vector<std::string>& usage, Typed typed) {
  std::vector<std::string> left;
  const auto tail = std::ranges::find(usage, "--");  // of lock: -- COMMAND...
  if (typed.literal && tail != usage.end()) {
    if (typed.behind_literal == 0) left.assign(tail + 1, usage.end());
    return left;
  }
  typed.plain += typed.behind_literal;
  std::vector<std::string> places;
  std::ranges::copy_if(usage, std::back_inserter(places), std::not_fn(IsOption));
  if (!places.empty() && places.back().ends_with("...") && tail == usage.end()) {
    left.push_back(LeftOfGroup(places, typed.plain));
    typed.plain = places.size();  // they are told
  }
  for (auto token = usage.begin(); token != tail; ++token) {
    if (IsOption(*token)) {
      if (!typed.literal && !Has(typed, NameOf(*token))) left.push_back(*token);
    } else if (typed.plain > 0) {
      --typed.plain;
    } else if (*token != "VALUE" || !Has(typed, "file")) {  // --file takes its place
      left.push_back(*token);
    }
  }
  left.insert(left.end(), tail, usage.end());
  return left;
}

}  // namespace

std::string HintFor(std::string_view line) {
  const auto words = SplitLine(line);
  // A further letter begins a word if the last one is finished.
  const auto longer = SplitLine(absl::StrCat(std::string(line), "x"));
  if (!words.ok() || !longer.ok() || words->empty()) return "";
  const bool finished = longer->size() > words->size();
  const NamedRow named = FindRow(*words);
  if (named.row == nullptr) return "";
  const std::vector<std::string> usage =
      absl::StrSplit(UsageOf(*named.row).text, ' ', absl::SkipEmpty());
  const std::vector<std::string> left = Left(usage, TypedOf(*words, named.words, finished));
  if (left.empty()) return "";
  return absl::StrCat(finished ? "" : " ", absl::StrJoin(left, " "));
}

std::string CutHint(std::string_view hint, size_t columns) {
  if (hint.size() <= columns) return std::string(hint);
  if (columns <= kMore.size()) return "";
  // Behind the last whole word that leaves room. A blank at the begin ends no word.
  const size_t end = hint.rfind(' ', columns - kMore.size());
  if (end == std::string_view::npos || end == 0) return "";
  return absl::StrCat(std::string(hint.substr(0, end)), std::string(kMore));
}

}  // namespace gannet::kvcli
