#include "client/lookup/window.h"

#include <cstring>

namespace gannet {
namespace {

constexpr uint32_t kTagShift = kOffsetBits + kSizeClassBits;

// A match is rare enough for the branch to cost less than gathering bits would.
uint32_t MatchingSlotsOfBucket(const Bucket& bucket, uint64_t tag) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    const uint64_t word = bucket.slots[i];
    if (word >> kTagShift == tag && word != 0) mask |= 1u << i;
  }
  return mask;
}

}  // namespace

uint32_t MatchingSlots(const Bucket* window, uint32_t tag) {
  return MatchingSlotsOfBucket(window[0], tag) | MatchingSlotsOfBucket(window[1], tag)
                                                     << kSlotsPerBucket;
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
