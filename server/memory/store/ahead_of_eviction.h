#ifndef GANNET_SERVER_MEMORY_STORE_AHEAD_OF_EVICTION_H_
#define GANNET_SERVER_MEMORY_STORE_AHEAD_OF_EVICTION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"
#include "common/layout/key_hash.h"
#include "server/memory/tier/tier_format.h"

namespace gannet {

// The items whose values are in a tier, or on the way there. Most were chosen to be evicted, and
// are written before. Others came back from there and are kept: while their records are there, they
// are evicted without another write. An item is named by its version, which no other one ever had.
// Nobody tells of items that change or go meanwhile: whoever takes one looks whether it is still
// there.
//
//   Add --Take--> being written --Written--> written --TakeWritten--> evicted
//                                             |   ^
//                                       Spare v   | Add
//                                      Keep --> kept
//
// Thread safety: all methods, from any thread.
class AheadOfEviction {
 public:
  static constexpr size_t kChosenMax = 64;
  static constexpr uint32_t kStepsMax = 100;

  struct Item {
    KeyHash hash{0};
    uint64_t version = 0;
    uint64_t bytes = 0;  // of its block
  };

  // So many values in the tier are known at most. Of more, those are dropped whose records are
  // written over first.
  explicit AheadOfEviction(size_t places_max) : places_max_(places_max) {}

  // Adds an item that was chosen. One that is kept is written already. Returns false if it is here
  // and not kept, or so many wait to be written.
  bool Add(const Item& item);
  // Whether so many wait that no other one may be added.
  bool full() const;
  enum class State : uint8_t { kNotHere, kOnTheWay, kWritten, kKept };
  State StateOf(uint64_t version) const;
  // Returns the item that was chosen first and is not being written.
  std::optional<Item> Take();
  // The value is on the disk, or the disk did not take it.
  void Written(const TierPlace& place);
  void NotWritten(uint64_t version);
  // Returns the item that was written first, once. Its place stays here until it is dropped.
  std::optional<Item> TakeWritten();
  // Returns where the value is; nullopt: it is not on the disk.
  std::optional<TierPlace> PlaceOf(uint64_t version) const;
  // Keeps an item whose value is at `place`, unless that is being written over. REQUIRES: a stub
  // that led there became this item, under the key's lock, which is held.
  void Keep(const Item& item, const TierPlace& place);
  // A written item is not to be evicted. It is kept.
  void Spare(uint64_t version);
  void Drop(uint64_t version);
  // Drops those whose values lie in [begin, end) on the disk, which was written in this lap or
  // before. Keeps none there from now on, as the segment is taken again: a stub may lead there for
  // a while.
  void DropWrittenIn(uint64_t begin, uint64_t end, uint32_t lap);
  // Of the blocks of all that were chosen, and of those that are written.
  uint64_t bytes() const;
  uint64_t written_bytes() const;
  // Whether the disk works: it took the last ones, or was never asked, and nothing is on the way
  // for many steps.
  bool DiskWorks() const;
  bool SomeAreOnTheWay() const;
  // A step in the background passed: a millisecond, or ten.
  void StepPassed();

 private:
  struct Entry {
    Item item;
    std::optional<TierPlace> place{};
    bool kept = false;
  };
  // Of the disk, that is written over next or was last.
  struct Leaving {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint32_t lap = 0;
  };

  void Erase(uint64_t version) GANNET_REQUIRES(mutex_);
  void SetPlace(Entry* entry, const TierPlace& place) GANNET_REQUIRES(mutex_);
  // Returns the first item of a queue that was not dropped, and takes it and those before out.
  std::optional<Item> TakeFirst(std::deque<uint64_t>* versions) GANNET_REQUIRES(mutex_);
  bool SomeAreOnTheWayNow() const GANNET_REQUIRES(mutex_) {
    return entries_.size() > places_.size();
  }

  const size_t places_max_;
  mutable Mutex mutex_;
  absl::flat_hash_map<uint64_t, Entry> entries_ GANNET_GUARDED_BY(mutex_);  // by version
  // Versions, the first one first; also of some that were dropped.
  std::deque<uint64_t> chosen_ GANNET_GUARDED_BY(mutex_);
  std::deque<uint64_t> written_ GANNET_GUARDED_BY(mutex_);
  // The versions of those that have a place, by its position. All others are on the way.
  absl::btree_map<uint64_t, uint64_t> places_ GANNET_GUARDED_BY(mutex_);
  Leaving leaving_ GANNET_GUARDED_BY(mutex_);
  uint64_t bytes_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t written_bytes_ GANNET_GUARDED_BY(mutex_) = 0;
  // Until nobody waits any more.
  uint32_t steps_left_ GANNET_GUARDED_BY(mutex_) = kStepsMax;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_AHEAD_OF_EVICTION_H_
