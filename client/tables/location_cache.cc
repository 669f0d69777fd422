#include "client/tables/location_cache.h"

namespace gannet {

LocationCache::LocationCache(uint64_t bytes)
    : on_(bytes >= sizeof(Set)),
      sets_(on_ ? bytes / sizeof(Set) : 1),
      memory_(sets_),
      uses_to_aging_(kUsesPerAging * kWays),
      uses_left_(uses_to_aging_) {}

// Returns the first free entry. If none is free, returns the first of the least used ones.
inline size_t LocationCache::LeastUsed(const Set& set) {
  uint32_t least = UINT32_MAX;
  for (uint32_t i = 0; i < kWays; ++i) {
    const uint32_t taken = set.slots[i] != 0;
    least = std::min(least, (set.uses[i] * 2 + taken) * kWays + i);
  }
  return least % kWays;
}

inline void LocationCache::Enter(Set& set, size_t way, KeyHash hash, Slot slot, uint32_t uses) {
  set.slots[way] = slot.word();
  set.uses[way] = static_cast<uint8_t>(uses);
  const size_t shift = 8 * way;
  set.fingerprints = (set.fingerprints & ~(0xffull << shift)) | (BitsAboveTag(hash) & 0xff)
                                                                    << shift;
}

void LocationCache::EnterFound(KeyHash hash, Place place, Slot slot, uint32_t uses) {
  if (!on_) return;
  Set& set = *place.set;
  if (const size_t way = Way(set, hash); way != kNone) {
    set.slots[way] = slot.word();
    return;
  }
  const size_t victim = LeastUsed(set);
  if (set.slots[victim] == 0 || uses > set.uses[victim]) Enter(set, victim, hash, slot, uses);
}

void LocationCache::RememberWritten(KeyHash hash, Place place, Slot slot) {
  if (!on_ || slot.empty() || slot.tag() != hash.Tag()) return;
  Set& set = *place.set;
  if (const size_t way = Way(set, hash); way != kNone) {
    set.slots[way] = slot.word();
    return;
  }
  const size_t victim = LeastUsed(set);
  Enter(set, victim, hash, slot, std::max<uint32_t>(set.uses[victim], Estimate(set, hash)));
}

inline void LocationCache::Free(Set& set, size_t way) {
  set.slots[way] = 0;
  set.uses[way] = 0;
}

void LocationCache::Forget(KeyHash hash, Place place, Slot stale) {
  Set& set = *place.set;
  const size_t way = Way(set, hash);
  if (way != kNone && set.slots[way] == stale.word()) Free(set, way);
}

void LocationCache::Forget(KeyHash hash, Place place) {
  Set& set = *place.set;
  const size_t way = Way(set, hash);
  if (way != kNone) Free(set, way);
}

void LocationCache::Clear() { std::fill_n(memory_.get(), sets_, Set{}); }

void LocationCache::Age() {
  uses_left_ = uses_to_aging_;
  Set& set = memory_.get()[next_to_age_];
  for (uint8_t& count : set.uses) count >>= 1;
  for (uint8_t& count : set.first_row) count >>= 1;
  for (uint8_t& count : set.second_row) count >>= 1;
  if (++next_to_age_ == sets_) next_to_age_ = 0;
}

}  // namespace gannet
