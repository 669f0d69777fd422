#ifndef GANNET_CLIENT_LOCATION_CACHE_LOCATION_CACHE_H_
#define GANNET_CLIENT_LOCATION_CACHE_LOCATION_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

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
  Slot Find(KeyHash hash);
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
  // Each set's counts are halved once per this many uses of the whole cache, per entry.
  static constexpr uint64_t kUsesPerAging = 32;

  struct alignas(64) Set {
    uint64_t slots[kWays];          // Slot words; 0 = free
    uint32_t marks[kWays];          // hash bits : 24 | uses : 8
    uint8_t sketch[kCounters / 2];  // four-bit counters of keys that are not here
  };
  static_assert(sizeof(Set) == kWays * kEntryBytes);

  struct Place {
    Set* set;
    uint32_t mark;  // the hash bits of a mark, uses 0
    uint64_t mixed;
  };
  Place PlaceOf(KeyHash hash);
  static int Way(const Place& place, KeyHash hash);
  static uint32_t CountMiss(const Place& place);
  static uint32_t Estimate(const Place& place);
  void Age();

  std::unique_ptr<Set[]> memory_;
  uint64_t sets_;
  uint64_t uses_to_aging_;
  uint64_t uses_left_;  // until the next set is aged
  uint64_t next_to_age_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_LOCATION_CACHE_LOCATION_CACHE_H_
