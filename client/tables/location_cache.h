#ifndef GANNET_CLIENT_TABLES_LOCATION_CACHE_H_
#define GANNET_CLIENT_TABLES_LOCATION_CACHE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "client/tables/huge_page_array.h"
#include "common/base/align.h"
#include "common/base/data_path_checks.h"
#include "common/layout/key_hash.h"
#include "common/layout/slot.h"

namespace gannet {

// Remembers where a client found its popular keys: key hash -> Slot word, in a fixed number of
// bytes. A wrong or stale answer is harmless, because the item READ there proves itself.
//
// Memory is an array of 128-byte sets. A set is two cache lines, and one operation touches nothing
// else. A set has eight entries: the slot word (which holds the 20 bits of the hash's tag), 8
// further bits of the hash as a fingerprint, and a use count. It also has 48 counters that estimate
// how often keys of this set that are *not* in it are asked for. So an entry costs 16 bytes, its
// share of the counters included. Set and fingerprint are chosen by other bits of the hash than the
// tag. Eight fingerprints are one word and are compared at once; so are eight use counts.
//
// A key enters if it is asked for more often than the least used entry of its set (as in TinyLFU:
// Einziger, Friedman, Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", 2017). With
// plain LRU, the long tail of a zipf distribution would displace the popular keys. All counts are
// halved from time to time, one set at a time as operations go by, so that popularity fades.
//
// A key that was just written enters at once. It replaces the least used entry and takes over its
// count, because new keys are often asked for next, and nobody knows yet how often. It stays the
// least used entry until it is found, so a run of such writes costs a set only one entry.
//
// One owner thread. No allocation after construction.
class LocationCache {
  struct Set;

 public:
  // The set that a key belongs to.
  class Place {
    friend class LocationCache;
    Set* set = nullptr;
  };

  static constexpr size_t kEntryBytes = 16;

  // Uses at most `bytes`. With less than one set of 128 bytes the cache is off and remembers
  // nothing.
  explicit LocationCache(uint64_t bytes);

  // Returns the key's place, for Find, and prefetches the memory that Find will touch. For batches
  // of keys.
  Place Prefetch(KeyHash hash) const {
    Place place;
    place.set = SetOf(hash);
    __builtin_prefetch(place.set->slots);
    __builtin_prefetch(&place.set->fingerprints);
    return place;
  }
  // The same for a key of a cluster, whose partition has changed so often (Router::Route::changes).
  // A key has another set after each change, so what was remembered before is not found any more:
  // it is forgotten without a look at anything. REQUIRES: Clear() was called if
  // ForgetsAllAt(changes).
  Place Prefetch(KeyHash hash, uint32_t changes) const {
    Place place;
    place.set = memory_.get() + (MapToRange(hash.value(), sets_) + changes) % sets_;
    __builtin_prefetch(place.set->slots);
    __builtin_prefetch(&place.set->fingerprints);
    return place;
  }
  // Returns whether keys whose partition has changed so often have sets that they had before.
  bool ForgetsAllAt(uint32_t changes) const { return changes % sets_ == 0; }
  // Returns the slot where the key may be, or an empty one if it is not known. Counts as one use of
  // the key. REQUIRES: `place` belongs to `hash`.
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
  // Remembers that the key was found at `slot`, if the key is popular enough. REQUIRES: the slot
  // has the key's tag, and `place` belongs to `hash`.
  void Remember(KeyHash hash, Place place, Slot slot) {
    GANNET_CHECK_DATA_PATH(slot.tag() == hash.Tag(), "the slot is another key's");
    const uint32_t uses = Estimate(*place.set, hash);
    // Mostly false when the cache is full, because then all eight are used as much as this key.
    if (AnyUsedLessThan(*place.set, std::max(uses, 1u))) EnterFound(hash, place, slot, uses);
  }
  // The same for a slot that a peer named, which may be wrong.
  void RememberTold(KeyHash hash, Place place, Slot slot) {
    if (!slot.empty() && slot.tag() == hash.Tag()) Remember(hash, place, slot);
  }
  void Remember(KeyHash hash, Slot slot) { RememberTold(hash, Prefetch(hash), slot); }
  // Remembers in any case that the key was written to `slot`. REQUIRES: `place` belongs to `hash`.
  void RememberWritten(KeyHash hash, Place place, Slot slot);
  void RememberWritten(KeyHash hash, Slot slot) { RememberWritten(hash, Prefetch(hash), slot); }
  // Forgets the location `stale`, where the key is not found any more. Keeps a newer location.
  // REQUIRES, as the next: `place` belongs to `hash`.
  void Forget(KeyHash hash, Place place, Slot stale);
  void Forget(KeyHash hash, Slot stale) { Forget(hash, Prefetch(hash), stale); }
  void Forget(KeyHash hash, Place place);
  void Forget(KeyHash hash) { Forget(hash, Prefetch(hash)); }
  // Forgets everything, because another server run has no item where it was.
  void Clear();

 private:
  static constexpr uint32_t kWays = 8;
  static constexpr size_t kNone = kWays;
  // Each key has one counter in each of two rows.
  static constexpr uint32_t kFirstRow = 32, kSecondRow = 16;
  static constexpr uint32_t kUsesMax = 127;  // the top bit is free for comparing eight at once
  // Each set's counts are halved once per this many uses of the whole cache, per entry.
  static constexpr uint64_t kUsesPerAging = 64;
  // Words with the lowest, and with the highest, bit of each of their eight bytes set.
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

  // Chooses the set by the hash's high bits.
  Set* SetOf(KeyHash hash) const { return memory_.get() + MapToRange(hash.value(), sets_); }
  // The bits above the tag, for the fingerprint and the two counters.
  static uint64_t BitsAboveTag(KeyHash hash) { return hash.value() >> kTagBits; }

  // Returns the index of the key's entry in the set, or kNone. It may return a free entry
  // (fingerprint and tag 0); its slot is empty, which means "not known" too.
  static size_t Way(const Set& set, KeyHash hash) {
    // Sets the top bit of each byte that is 0. It may also set that of a byte that is 1 and lies
    // above one that is 0. That does no harm, since the tag is compared as well.
    const uint64_t differences = set.fingerprints ^ (BitsAboveTag(hash) & 0xff) * kOnes;
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
    return set.first_row[BitsAboveTag(hash) % kFirstRow];
  }
  static uint8_t& SecondCounter(Set& set, KeyHash hash) {
    return set.second_row[BitsAboveTag(hash) / kFirstRow % kSecondRow];
  }
  static uint32_t Estimate(Set& set, KeyHash hash) {
    return std::min(FirstCounter(set, hash), SecondCounter(set, hash));
  }
  // REQUIRES: uses is 1 to 128.
  static bool AnyUsedLessThan(const Set& set, uint32_t uses) {
    GANNET_CHECK_DATA_PATH(uses >= 1 && uses <= 128, "uses are compared in seven bits");
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
  uint64_t sets_;  // at least 1; when off, only the counters in them are used
  HugePageArray<Set> memory_;
  uint64_t uses_to_aging_;
  uint64_t uses_left_;  // until the next set is aged
  uint64_t next_to_age_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_TABLES_LOCATION_CACHE_H_
