#ifndef GANNET_CLIENT_LOCATION_CACHE_LOCATION_CACHE_H_
#define GANNET_CLIENT_LOCATION_CACHE_LOCATION_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/align.h"
#include "common/base/hash.h"
#include "common/layout/key_hash.h"
#include "common/layout/slot.h"

namespace gannet {

// Where a client found its popular keys: key hash -> Slot word, in a fixed number of bytes. A wrong
// or stale answer is harmless, since the item READ there proves itself.
//
// Memory is an array of 128-byte sets (two cache lines, and everything that one operation touches):
// eight entries of 12 bytes, i.e. the slot word (which holds 20 bits of the hash), 24 further bits
// of it and a use count; and 64 four-bit counters that estimate how often keys of this set that are
// *not* in it are asked for. So an entry costs 16 bytes, its share of the counters included.
//
// A key enters when it is asked for more often than the least used entry of its set (as TinyLFU
// does: Einziger, Friedman, Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", 2017).
// Plain LRU would let the long tail of a zipf distribution wash the popular keys out. All counts
// are halved again and again, one set at a time as the operations go by, so that popularity fades.
//
// One owner thread. No allocation after construction.
class LocationCache {
 public:
  static constexpr size_t kEntryBytes = 16;

  // At most `bytes`; less than one set of 128 bytes is off: it remembers nothing.
  explicit LocationCache(uint64_t bytes);

  // Where the key may be; an empty slot when not known. Counts as one use of the key.
  Slot Find(KeyHash hash) {
    if (sets_ == 0) return Slot();
    if (--uses_left_ == 0) [[unlikely]]
      Age();
    const Place place = PlaceOf(hash);
    const int way = Way(place, hash);
    if (way < 0) {
      CountMiss(place);
      return Slot();
    }
    uint32_t& mark = place.set->marks[way];
    if ((mark & kUsesMask) != kUsesMax) ++mark;
    return Slot(place.set->slots[way]);
  }
  // The key was found at `slot`: remembers it if the key is known or popular enough.
  void Remember(KeyHash hash, Slot slot);
  // The key was deleted, or is not at `stale` any more. Keeps a newer location.
  void Forget(KeyHash hash, Slot stale);
  void Forget(KeyHash hash);
  // Another server run: no location holds any more.
  void Clear();

  uint64_t capacity() const { return sets_ * kWays; }

 private:
  static constexpr uint32_t kWays = 8;
  static constexpr uint32_t kCounters = 64;
  static constexpr uint32_t kUsesMax = 255;
  static constexpr uint32_t kUsesMask = 0xff;
  static constexpr uint32_t kMarkMask = ~kUsesMask;
  // Each set's counts are halved once per this many uses of the whole cache, per entry.
  static constexpr uint64_t kUsesPerAging = 32;

  struct alignas(64) Set {
    uint64_t slots[kWays];          // Slot words; 0 = free
    uint32_t marks[kWays];          // hash bits : 24 | uses : 8; 0 when free
    uint8_t sketch[kCounters / 2];  // four-bit counters of keys that are not here
  };
  static_assert(sizeof(Set) == kWays * kEntryBytes);

  struct Place {
    Set* set;
    uint32_t mark;  // the hash bits of a mark, uses 0
    uint64_t mixed;
  };
  // The set comes from the high bits of a second mix, so that keys of neighbouring homes spread;
  // the 24 bits of the mark and the two counters from its low ones.
  Place PlaceOf(KeyHash hash) {
    const uint64_t mixed = Mix64(hash.value() + 0x9e3779b97f4a7c15);
    return {&memory_[MapToRange(mixed, sets_)], static_cast<uint32_t>(mixed) & kMarkMask, mixed};
  }
  // Which entry of the set is the key's; -1: none.
  static int Way(const Place& place, KeyHash hash) {
    const Set& set = *place.set;
    for (uint32_t i = 0; i < kWays; ++i) {
      if (((set.marks[i] ^ place.mark) & kMarkMask) == 0 && set.slots[i] != 0 &&
          Slot(set.slots[i]).tag() == hash.Tag()) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }
  static uint32_t CountMiss(const Place& place);
  static uint32_t Estimate(const Place& place);
  static void Free(const Place& place, int way);
  void Age();

  std::unique_ptr<Set[]> memory_;
  uint64_t sets_;
  uint64_t uses_to_aging_;
  uint64_t uses_left_;  // until the next set is aged
  uint64_t next_to_age_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_LOCATION_CACHE_LOCATION_CACHE_H_
