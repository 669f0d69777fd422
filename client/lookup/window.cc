#include "client/lookup/window.h"

#include <cstring>

namespace gannet {
namespace {

// Branch-free, so that the compiler may vectorise it.
uint32_t MatchingSlotsOfBucket(const Bucket& bucket, uint64_t tag_bits, uint64_t below) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    const uint64_t word = bucket.slots[i];
    mask |= static_cast<uint32_t>(((word ^ tag_bits) < below) & (word != 0)) << i;
  }
  return mask;
}

}  // namespace

uint32_t MatchingSlots(const Bucket* window, uint32_t tag) {
  constexpr uint32_t kTagShift = kOffsetBits + kSizeClassBits;
  const uint64_t tag_bits = static_cast<uint64_t>(tag) << kTagShift;
  constexpr uint64_t kBelow = 1ull << kTagShift;
  return MatchingSlotsOfBucket(window[0], tag_bits, kBelow) |
         MatchingSlotsOfBucket(window[1], tag_bits, kBelow) << kSlotsPerBucket;
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
