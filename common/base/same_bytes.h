#ifndef GANNET_COMMON_BASE_SAME_BYTES_H_
#define GANNET_COMMON_BASE_SAME_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gannet {

// Returns memcmp(a, b, size) == 0, for sizes that are mostly short, as keys are. A call costs more
// than comparing up to 32 bytes as words that overlap.
inline bool SameBytes(const void* a, const void* b, size_t size) {
  const auto* x = static_cast<const uint8_t*>(a);
  const auto* y = static_cast<const uint8_t*>(b);
  const auto differ = [x, y](size_t at) {
    uint64_t left, right;
    std::memcpy(&left, x + at, sizeof(left));
    std::memcpy(&right, y + at, sizeof(right));
    return left ^ right;
  };
  if (size - 8 <= 8) return (differ(0) | differ(size - 8)) == 0;  // 8 to 16
  if (size - 17 <= 15) {                                          // 17 to 32
    return (differ(0) | differ(8) | differ(size - 16) | differ(size - 8)) == 0;
  }
  return std::memcmp(a, b, size) == 0;
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_SAME_BYTES_H_
