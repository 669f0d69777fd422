#ifndef SOFTVERBS_TESTS_FUZZ_REQUIRE_H_
#define SOFTVERBS_TESTS_FUZZ_REQUIRE_H_

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

namespace softverbs::fuzz {

// What the targets require of what a decoder accepted. They abort otherwise, so that a fuzzer
// notices.

inline void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "a decoder accepted: %s\n", what);
  std::abort();
}

inline std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Requires that `view` lies within `bytes`.
inline void RequireWithin(std::string_view view, std::span<const std::byte> bytes) {
  if (view.empty()) return;
  const std::string_view all = TextOf(bytes);
  Require(view.data() >= all.data() && view.size() <= all.size() &&
              static_cast<size_t>(view.data() - all.data()) <= all.size() - view.size(),
          "a view outside the message");
}

// Requires that what was decoded from `bytes` is encoded as `again`, the same bytes.
inline void RequireSameBytes(std::span<const std::byte> again, std::span<const std::byte> bytes) {
  Require(
      again.size() == bytes.size() && std::memcmp(again.data(), bytes.data(), bytes.size()) == 0,
      "bytes nobody encodes");
}

}  // namespace softverbs::fuzz

#endif  // SOFTVERBS_TESTS_FUZZ_REQUIRE_H_
