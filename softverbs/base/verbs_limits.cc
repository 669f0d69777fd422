#include "softverbs/base/verbs_limits.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace softverbs {
namespace {

// Fails fast on a wrong limit: silently using a default would be worse.
uint32_t ParseMaxReadAtomic(std::string_view text) {
  uint32_t limit = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), limit);
  if (error == std::errc() && end == text.end() && limit >= 1 && limit <= kMaxReadAtomic) {
    return limit;
  }
  fprintf(stderr, "softverbs[%d]: SOFTVERBS_MAX_RD_ATOMIC is a number from 1 to %u\n", getpid(),
          kMaxReadAtomic);
  _exit(2);
}

}  // namespace

uint32_t MaxReadAtomic() {
  static const uint32_t limit = [] {
    const char* text = getenv("SOFTVERBS_MAX_RD_ATOMIC");
    return text == nullptr || *text == '\0' ? kMaxReadAtomic : ParseMaxReadAtomic(text);
  }();
  return limit;
}

}  // namespace softverbs
