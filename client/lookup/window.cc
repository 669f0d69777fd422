#include "client/lookup/window.h"

#include <cstring>

namespace gannet {
namespace {

constexpr uint32_t kTagShift = kOffsetBits + kSizeClassBits;
constexpr uint32_t kTagShiftInHighHalf = kTagShift - 32;

// Four slots at a time, in what both compilers make of the machine's vectors.
typedef uint32_t Vector __attribute__((vector_size(16)));

// The high halves of four slots, which hold their tags.
Vector HighHalves(const uint64_t* slots) {
  Vector low, high;
  std::memcpy(&low, slots, sizeof(low));
  std::memcpy(&high, slots + 2, sizeof(high));
  return __builtin_shufflevector(low, high, 1, 3, 5, 7);
}

// Bit i set: slot i carries the tag, or is empty and the tag is 0.
uint32_t SameTags(const Bucket& bucket, uint32_t tag) {
  const uint32_t wanted = tag << kTagShiftInHighHalf;
  const Vector wanteds = {wanted, wanted, wanted, wanted};
  constexpr Vector kTagMask = {~0u << kTagShiftInHighHalf, ~0u << kTagShiftInHighHalf,
                               ~0u << kTagShiftInHighHalf, ~0u << kTagShiftInHighHalf};
  constexpr Vector kBits = {1, 2, 4, 8};
  // 14 slots: the last four overlap the third four by two.
  const Vector matches = (((HighHalves(bucket.slots) & kTagMask) == wanteds) & kBits) |
                         (((HighHalves(bucket.slots + 4) & kTagMask) == wanteds) & (kBits << 4)) |
                         (((HighHalves(bucket.slots + 8) & kTagMask) == wanteds) & (kBits << 8)) |
                         (((HighHalves(bucket.slots + 10) & kTagMask) == wanteds) & (kBits << 10));
  return matches[0] | matches[1] | matches[2] | matches[3];
}

}  // namespace

uint32_t MatchingSlots(const Bucket* window, uint32_t tag) {
  uint32_t mask = SameTags(window[0], tag) | SameTags(window[1], tag) << kSlotsPerBucket;
  if (tag == 0) [[unlikely]] {
    for (uint32_t i = 0; i < kSlotsPerWindow; ++i) {
      if (SlotOfWindow(window, i).empty()) mask &= ~(1u << i);
    }
  }
  return mask;
}

bool ChecksumsRight(const Bucket* window, const IndexView& view, uint64_t first_bucket) {
  for (uint64_t i = 0; i < 2; ++i) {
    const uint64_t seed = BucketSeed(view.incarnation, view.index.generation, first_bucket + i);
    if (!BucketValid(window[i], seed)) return false;
  }
  return true;
}

bool SameWindow(const Bucket* a, const Bucket* b) { return std::memcmp(a, b, kWindowBytes) == 0; }

}  // namespace gannet
