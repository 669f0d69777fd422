#ifndef GANNET_CLIENT_LOOKUP_WINDOW_H_
#define GANNET_CLIENT_LOOKUP_WINDOW_H_

#include <cstddef>
#include <cstdint>

#include "client/lookup/index_view.h"
#include "common/layout/bucket.h"
#include "common/layout/key_hash.h"

namespace gannet {

// What a private copy of a window (two neighbouring buckets, one READ) says. Pure functions: the
// bytes are a peer's and may be torn, so nothing here follows an offset or believes a length.

inline constexpr size_t kSlotsPerWindow = 2 * kSlotsPerBucket;

// Bit i set: slot i of the window (home bucket's first) is not empty and carries `tag`.
uint32_t MatchingSlots(const Bucket* window, uint32_t tag);
// The same for machines without SSE2: slot by slot.
uint32_t MatchingSlotsPortable(const Bucket* window, uint32_t tag);

inline Slot SlotOfWindow(const Bucket* window, uint32_t i) {
  return i < kSlotsPerBucket ? Slot(window[0].slots[i])
                             : Slot(window[1].slots[i - kSlotsPerBucket]);
}

// Whether both buckets' checksums are right: each copy is then one publication, untorn.
// `first_bucket` is the number of the window's first bucket.
bool ChecksumsRight(const Bucket* window, const IndexView& view, uint64_t first_bucket);

// Whether no move between the two buckets lies between their two copies (rule W1). REQUIRES:
// ChecksumsRight.
inline bool PairCountersAgree(const Bucket* window) {
  return BucketMeta(window[0].meta).moves_next() == BucketMeta(window[1].meta).moves_prev();
}

// Whether keys like this one may be in the stash. REQUIRES: ChecksumsRight.
inline bool MayBeInStash(const Bucket* window, KeyHash hash) {
  return (BucketMeta(window[0].meta).stash_tags() & hash.StashTag()) != 0;
}

// Rule W3's comparison: every byte, versions included.
bool SameWindow(const Bucket* a, const Bucket* b);

}  // namespace gannet

#endif  // GANNET_CLIENT_LOOKUP_WINDOW_H_
