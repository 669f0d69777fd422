#ifndef GANNET_CLIENT_LOCATION_CACHE_LOCATION_CACHE_H_
#define GANNET_CLIENT_LOCATION_CACHE_LOCATION_CACHE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "client/location_cache/huge_page_array.h"
#include "common/base/align.h"
#include "common/layout/key_hash.h"
#include "common/layout/slot.h"

namespace gannet {

// Where a client found its popular keys: key hash -> Slot word, in a fixed number of bytes. A wrong
// or stale answer is harmless, since the item READ there proves itself.
//
// Memory is an array of 128-byte sets (two cache lines, and everything that one operation touches):
// eight entries, i.e. the slot word (which holds the hash's 20 bits of the tag), 8 further bits of
// the hash as a fingerprint, and a use count; and 48 counters that estimate how often keys of this
// set that are *not* in it are asked for. So an entry costs 16 bytes, its share of the counters
// included. Set and fingerprint are other bits of the hash than the tag; eight fingerprints, or use
// counts, are one word, and are compared at once.
//
// A key enters when it is asked for more often than the least used entry of its set (as TinyLFU
// does: Einziger, Friedman, Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", 2017).
// Plain LRU would let the long tail of a zipf distribution wash the popular keys out. All counts
// are halved again and again, one set at a time as the operations go by, so that popularity fades.
//
// A key just written enters at once, in the place and with the count of the least used entry: what
// is new is often what is asked for next, and how often nobody knows yet. It stays the least used
// one until it is found, so a run of such writes costs a set one entry.
//
// One owner thread. No allocation after construction.
class LocationCache {
  struct Set;

 public:
  // Which set is a key's.
  class Place {
    friend class LocationCache;
    Set* set = nullptr;
  };

  static constexpr size_t kEntryBytes = 16;

  // At most `bytes`; less than one set of 128 bytes is off: it remembers nothing.
  explicit LocationCache(uint64_t bytes);

  // The key's place, for Find. What that will touch is then on its way into the processor's cache:
  // for a batch of keys.
  Place Prefetch(KeyHash hash) const {
    Place place;
    place.set = SetOf(hash);
    __builtin_prefetch(place.set->slots);
    __builtin_prefetch(&place.set->fingerprints);
    return place;
  }
  // Where the key may be; an empty slot when not known. Counts as one use of the key. REQUIRES:
  // `place` is the hash's.
  Slot Find(KeyHash hash, Place place) {
    if (--uses_left_ == 0) [[unlikely]]
      Age();
    Set& set = *place.set;
    const size_t way = Way(set, hash);
    if (way == kNone) {
      CountMiss(set, hash);
      return Slot();
    }
    const Slot slot(set.slots[way]);
    uint8_t& uses = set.uses[way];
    uses = static_cast<uint8_t>(uses + (uses != kUsesMax));
    return slot;
  }
  Slot Find(KeyHash hash) { return Find(hash, Prefetch(hash)); }
  // The key was found at `slot`: remembers it if the key is popular enough. REQUIRES: the slot is
  // the key's, `place` is the hash's.
  void Remember(KeyHash hash, Place place, Slot slot) {
    const uint32_t uses = Estimate(*place.set, hash);
    // Not, ordinarily, when the cache is full: all eight are used as much.
    if (AnyUsedLessThan(*place.set, std::max(uses, 1u))) EnterFound(hash, place, slot, uses);
  }
  // The same, where a peer names the slot.
  void Remember(KeyHash hash, Slot slot) {
    if (!slot.empty() && slot.tag() == hash.Tag()) Remember(hash, Prefetch(hash), slot);
  }
  // The key was written there: remembers it in any case.
  void RememberWritten(KeyHash hash, Slot slot);
  // The key was deleted, or is not at `stale` any more. Keeps a newer location.
  void Forget(KeyHash hash, Slot stale);
  void Forget(KeyHash hash);
  // Another server run: no location holds any more.
  void Clear();

  uint64_t capacity() const { return on_ ? sets_ * kWays : 0; }

 private:
  static constexpr uint32_t kWays = 8;
  static constexpr size_t kNone = kWays;
  // Every key has one counter in each of two rows.
  static constexpr uint32_t kFirstRow = 32, kSecondRow = 16;
  static constexpr uint32_t kUsesMax = 127;  // the top bit is free for comparing eight at once
  // Each set's counts are halved once per this many uses of the whole cache, per entry.
  static constexpr uint64_t kUsesPerAging = 64;
  // One byte, the lowest bit and the highest, in each of eight.
  static constexpr uint64_t kOnes = 0x0101010101010101;
  static constexpr uint64_t kTops = kOnes << 7;

  struct alignas(128) Set {
    uint64_t slots[kWays];  // Slot words; 0 = free
    uint64_t fingerprints;  // byte i: of entry i
    uint8_t uses[kWays];    // 0 when free
    uint8_t first_row[kFirstRow];
    uint8_t second_row[kSecondRow];
  };
  static_assert(sizeof(Set) == kWays * kEntryBytes);

  // By the hash's high bits.
  Set* SetOf(KeyHash hash) const { return memory_.get() + MapToRange(hash.value(), sets_); }
  // The bits above the tag, for the fingerprint and the two counters.
  static uint64_t BitsOf(KeyHash hash) { return hash.value() >> kTagBits; }

  // Which entry of the set is the key's; kNone: none. A free one may be taken for it (fingerprint
  // and tag 0): its slot is empty, which is what there is to know.
  static size_t Way(const Set& set, KeyHash hash) {
    // Bytes that are 0; one above another such byte may be 1 as well, but then the tag decides.
    const uint64_t differences = set.fingerprints ^ (BitsOf(hash) & 0xff) * kOnes;
    uint64_t same = (differences - kOnes) & ~differences & kTops;
    for (; same != 0; same &= same - 1) {
      const uint32_t way = static_cast<uint32_t>(std::countr_zero(same)) / 8;
      if (Slot(set.slots[way]).tag() == hash.Tag()) [[likely]]
        return way;
    }
    return kNone;
  }
  // Only the smaller of the two counters grows (conservative update).
  static void CountMiss(Set& set, KeyHash hash) {
    uint8_t& first = FirstCounter(set, hash);
    uint8_t& second = SecondCounter(set, hash);
    const uint8_t count = std::min(first, second);
    if (count == kUsesMax) return;
    first += first == count;
    second += second == count;
  }
  static uint8_t& FirstCounter(Set& set, KeyHash hash) {
    return set.first_row[BitsOf(hash) % kFirstRow];
  }
  static uint8_t& SecondCounter(Set& set, KeyHash hash) {
    return set.second_row[BitsOf(hash) / kFirstRow % kSecondRow];
  }
  static uint32_t Estimate(Set& set, KeyHash hash) {
    return std::min(FirstCounter(set, hash), SecondCounter(set, hash));
  }
  // REQUIRES: uses is 1 to 128.
  static bool AnyUsedLessThan(const Set& set, uint32_t uses) {
    uint64_t counts;
    std::memcpy(&counts, set.uses, sizeof(counts));
    return ((counts - kOnes * uses) & ~counts & kTops) != 0;
  }
  void EnterFound(KeyHash hash, Place place, Slot slot, uint32_t uses);
  static size_t LeastUsed(const Set& set);
  static void Enter(Set& set, size_t way, KeyHash hash, Slot slot, uint32_t uses);
  static void Free(Set& set, size_t way);
  void Age();

  const bool on_;
  uint64_t sets_;  // at least one, of which nothing but counters is used when off
  HugePageArray<Set> memory_;
  uint64_t uses_to_aging_;
  uint64_t uses_left_;  // until the next set is aged
  uint64_t next_to_age_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_LOCATION_CACHE_LOCATION_CACHE_H_
