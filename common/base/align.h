#ifndef GANNET_COMMON_BASE_ALIGN_H_
#define GANNET_COMMON_BASE_ALIGN_H_

#include <cstdint>

namespace gannet {

// Returns the smallest multiple of `alignment` that is at least `n`. REQUIRES: alignment is a power
// of two, and the result fits 64 bits.
constexpr uint64_t AlignUp(uint64_t n, uint64_t alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}

// Maps a uniform 64-bit hash onto [0, n) without a division: the high half of hash * n (Lemire,
// "Fast random integer generation in an interval", 2019). Uses the hash's high bits, so its low
// bits stay independent of the result.
constexpr uint64_t MapToRange(uint64_t hash, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * n) >> 64);
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_ALIGN_H_
