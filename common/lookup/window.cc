#include "common/lookup/window.h"

#include <cstring>

namespace gannet {

uint32_t MatchingSlotsPortable(const Bucket& bucket, uint32_t tag) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    const Slot slot(bucket.slots[i]);
    mask |= uint32_t{slot.tag() == tag && !slot.empty()} << i;
  }
  return mask;
}

bool ChecksumsRight(const Bucket* window, const IndexView& view, uint64_t generation,
                    uint64_t first_bucket) {
  for (uint64_t i = 0; i < 2; ++i) {
    const uint64_t seed = BucketSeed(view.incarnation, generation, first_bucket + i);
    if (!BucketValid(window[i], seed)) return false;
  }
  return true;
}

bool SameWindow(const Bucket* a, const Bucket* b) { return std::memcmp(a, b, kWindowBytes) == 0; }

}  // namespace gannet
