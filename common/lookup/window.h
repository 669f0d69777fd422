#ifndef GANNET_COMMON_LOOKUP_WINDOW_H_
#define GANNET_COMMON_LOOKUP_WINDOW_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/layout/bucket.h"
#include "common/layout/key_hash.h"
#include "common/lookup/index_view.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gannet {

// Functions that interpret a private copy of a window (two neighbouring buckets, one READ). The
// bytes come from a peer and may be torn, so nothing here follows an offset or trusts a length.

inline constexpr size_t kSlotsPerWindow = 2 * kSlotsPerBucket;

// Returns a mask: bit i is set if slot i of the bucket is not empty and has `tag`.
uint32_t MatchingSlotsPortable(const Bucket& bucket, uint32_t tag);

#if defined(__SSE2__)
namespace window_internal {

// Compares the tags of the four words from `words` on, using their high halves. A lane is all ones
// if its word has the tag.
inline __m128i SameTagsOf4(const uint64_t* words, __m128i tags) {
  constexpr int kTagShiftInHighHalf = kOffsetBits + kSizeClassBits - 32;
  const __m128 low = _mm_loadu_ps(reinterpret_cast<const float*>(words));
  const __m128 high = _mm_loadu_ps(reinterpret_cast<const float*>(words + 2));
  const __m128i halves = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
  return _mm_cmpeq_epi32(_mm_srli_epi32(halves, kTagShiftInHighHalf), tags);
}

}  // namespace window_internal

// Does the same as the portable form. Compares all 16 words of the bucket, then shifts out the
// header's two.
inline uint32_t MatchingSlots(const Bucket& bucket, uint32_t tag) {
  using window_internal::SameTagsOf4;
  static_assert(offsetof(Bucket, slots) == 2 * sizeof(uint64_t));
  if (tag == 0) [[unlikely]]  // an empty slot would match
    return MatchingSlotsPortable(bucket, tag);
  const __m128i tags = _mm_set1_epi32(static_cast<int>(tag));
  const auto* words = reinterpret_cast<const uint64_t*>(&bucket);
  const __m128i first = _mm_packs_epi32(SameTagsOf4(words, tags), SameTagsOf4(words + 4, tags));
  const __m128i last = _mm_packs_epi32(SameTagsOf4(words + 8, tags), SameTagsOf4(words + 12, tags));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(first, last))) >> 2;
}
#else
inline uint32_t MatchingSlots(const Bucket& bucket, uint32_t tag) {
  return MatchingSlotsPortable(bucket, tag);
}
#endif

// Returns a mask: bit i is set if slot i of the window is not empty and has `tag`. The home
// bucket's slots come first.
inline uint32_t MatchingSlotsOfWindow(const Bucket* window, uint32_t tag) {
  return MatchingSlots(window[0], tag) | MatchingSlots(window[1], tag) << kSlotsPerBucket;
}

// Returns the first matching slot, or an empty one if there is none. Mostly it is in the home
// bucket, and then the other bucket is not looked at.
inline Slot FirstMatchingSlot(const Bucket* window, uint32_t tag) {
  for (uint32_t bucket = 0; bucket < 2; ++bucket) {
    const uint32_t matching = MatchingSlots(window[bucket], tag);
    if (matching != 0) return Slot(window[bucket].slots[std::countr_zero(matching)]);
  }
  return Slot();
}

inline Slot SlotOfWindow(const Bucket* window, uint32_t i) {
  return i < kSlotsPerBucket ? Slot(window[0].slots[i])
                             : Slot(window[1].slots[i - kSlotsPerBucket]);
}

// Returns whether both buckets' checksums are right. If so, each copy is one publication and not
// torn. `first_bucket` is the number of the window's first bucket, in the index of `generation`.
bool ChecksumsRight(const Bucket* window, const IndexView& view, uint64_t generation,
                    uint64_t first_bucket);

// Returns whether no key moved between the two buckets between the sampling of the two copies (rule
// W1). REQUIRES: ChecksumsRight.
inline bool PairCountersAgree(const Bucket* window) {
  return BucketMeta(window[0].meta).moves_next() == BucketMeta(window[1].meta).moves_prev();
}

// Returns whether the key may be in the stash. REQUIRES: ChecksumsRight.
inline bool MayBeInStash(const Bucket* window, KeyHash hash) {
  return (BucketMeta(window[0].meta).stash_tags() & hash.StashTag()) != 0;
}

// Compares every byte, versions included, for rule W3.
bool SameWindow(const Bucket* a, const Bucket* b);

}  // namespace gannet

#endif  // GANNET_COMMON_LOOKUP_WINDOW_H_
