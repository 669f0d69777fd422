#include "client/lookup/window.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gannet {

uint32_t MatchingSlotsPortable(const Bucket* window, uint32_t tag) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < kSlotsPerWindow; ++i) {
    const Slot slot = SlotOfWindow(window, i);
    mask |= uint32_t{slot.tag() == tag && !slot.empty()} << i;
  }
  return mask;
}

#if defined(__SSE2__)
namespace {

// In each lane, whether the word is a slot of the tag: of the four words from `words` on, by their
// high halves.
inline __m128i SameTagsOf4(const uint64_t* words, __m128i tags) {
  constexpr int kTagShiftInHighHalf = kOffsetBits + kSizeClassBits - 32;
  const __m128 low = _mm_loadu_ps(reinterpret_cast<const float*>(words));
  const __m128 high = _mm_loadu_ps(reinterpret_cast<const float*>(words + 2));
  const __m128i halves = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
  return _mm_cmpeq_epi32(_mm_srli_epi32(halves, kTagShiftInHighHalf), tags);
}

// Bit i set: slot i carries the tag, which is not 0. Compared are all 16 words of the bucket; the
// header's two are then shifted out.
inline uint32_t SameTags(const Bucket& bucket, __m128i tags) {
  static_assert(offsetof(Bucket, slots) == 2 * sizeof(uint64_t));
  const auto* words = reinterpret_cast<const uint64_t*>(&bucket);
  const __m128i first = _mm_packs_epi32(SameTagsOf4(words, tags), SameTagsOf4(words + 4, tags));
  const __m128i last = _mm_packs_epi32(SameTagsOf4(words + 8, tags), SameTagsOf4(words + 12, tags));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(first, last))) >> 2;
}

}  // namespace

uint32_t MatchingSlots(const Bucket* window, uint32_t tag) {
  if (tag == 0) [[unlikely]]
    return MatchingSlotsPortable(window, tag);
  const __m128i tags = _mm_set1_epi32(static_cast<int>(tag));
  return SameTags(window[0], tags) | SameTags(window[1], tags) << kSlotsPerBucket;
}
#else
uint32_t MatchingSlots(const Bucket* window, uint32_t tag) {
  return MatchingSlotsPortable(window, tag);
}
#endif

bool ChecksumsRight(const Bucket* window, const IndexView& view, uint64_t first_bucket) {
  for (uint64_t i = 0; i < 2; ++i) {
    const uint64_t seed = BucketSeed(view.incarnation, view.index.generation, first_bucket + i);
    if (!BucketValid(window[i], seed)) return false;
  }
  return true;
}

bool SameWindow(const Bucket* a, const Bucket* b) { return std::memcmp(a, b, kWindowBytes) == 0; }

}  // namespace gannet
