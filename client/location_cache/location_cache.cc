#include "client/location_cache/location_cache.h"

#include <algorithm>
namespace gannet {
namespace {

uint32_t Counter(const uint8_t* sketch, uint32_t i) {
  return (sketch[i / 2] >> (4 * (i % 2))) & 15;
}
void Increment(uint8_t* sketch, uint32_t i) { sketch[i / 2] += 1 << (4 * (i % 2)); }

}  // namespace

LocationCache::LocationCache(uint64_t bytes)
    : sets_(bytes / sizeof(Set)),
      uses_to_aging_(kUsesPerAging * kWays),
      uses_left_(uses_to_aging_) {
  if (sets_ > 0) memory_ = std::make_unique<Set[]>(sets_);
}

// Two counters a key, only the smaller one grows (conservative update).
uint32_t LocationCache::CountMiss(const Place& place) {
  uint8_t* sketch = place.set->sketch;
  const uint32_t a = (place.mixed >> 8) % kCounters;
  const uint32_t b = (place.mixed >> 14) % kCounters;
  const uint32_t count = std::min(Counter(sketch, a), Counter(sketch, b));
  if (count == 15) return count;
  if (Counter(sketch, a) == count) Increment(sketch, a);
  if (a != b && Counter(sketch, b) == count) Increment(sketch, b);
  return count + 1;
}

uint32_t LocationCache::Estimate(const Place& place) {
  const uint8_t* sketch = place.set->sketch;
  return std::min(Counter(sketch, (place.mixed >> 8) % kCounters),
                  Counter(sketch, (place.mixed >> 14) % kCounters));
}

void LocationCache::Remember(KeyHash hash, Slot slot) {
  if (sets_ == 0 || slot.empty() || slot.tag() != hash.Tag()) return;
  const Place place = PlaceOf(hash);
  Set& set = *place.set;
  if (const int way = Way(place, hash); way >= 0) {
    set.slots[way] = slot.word();
    return;
  }
  // A free one, or the least used; of those the first.
  uint32_t least = UINT32_MAX;
  for (uint32_t i = 0; i < kWays; ++i) {
    const uint32_t taken = set.slots[i] != 0;
    least = std::min(least, ((set.marks[i] & kUsesMask) * 2 + taken) * kWays + i);
  }
  const uint32_t victim = least % kWays;
  const uint32_t uses = Estimate(place);
  if (set.slots[victim] != 0 && uses <= (set.marks[victim] & kUsesMask)) return;
  set.slots[victim] = slot.word();
  set.marks[victim] = place.mark | uses;
}

void LocationCache::Free(const Place& place, int way) {
  place.set->slots[way] = 0;
  place.set->marks[way] = 0;
}

void LocationCache::Forget(KeyHash hash, Slot stale) {
  if (sets_ == 0) return;
  const Place place = PlaceOf(hash);
  const int way = Way(place, hash);
  if (way >= 0 && place.set->slots[way] == stale.word()) Free(place, way);
}

void LocationCache::Forget(KeyHash hash) {
  if (sets_ == 0) return;
  const Place place = PlaceOf(hash);
  const int way = Way(place, hash);
  if (way >= 0) Free(place, way);
}

void LocationCache::Clear() { std::fill_n(memory_.get(), sets_, Set{}); }

void LocationCache::Age() {
  uses_left_ = uses_to_aging_;
  Set& set = memory_[next_to_age_];
  for (uint32_t& mark : set.marks) mark = (mark & kMarkMask) | ((mark & kUsesMask) >> 1);
  for (uint8_t& pair : set.sketch) pair = (pair >> 1) & 0x77;
  if (++next_to_age_ == sets_) next_to_age_ = 0;
}

}  // namespace gannet
