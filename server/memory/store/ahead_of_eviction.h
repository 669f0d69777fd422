#ifndef GANNET_SERVER_MEMORY_STORE_AHEAD_OF_EVICTION_H_
#define GANNET_SERVER_MEMORY_STORE_AHEAD_OF_EVICTION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"
#include "common/layout/key_hash.h"
#include "server/memory/tier/tier_format.h"

namespace gannet {

// The items that were chosen to be evicted, and whose values are written to a tier before. An item
// is named by its version, which no other one ever had. Nobody tells of items that change or go
// meanwhile: whoever takes one looks whether it is still there.
//
//   Add --Take--> being written --Written--> written --TakeWritten--> evicted
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

  // Adds an item that was chosen. Returns false if it is here, or so many wait to be written.
  bool Add(const Item& item);
  // Whether so many wait that no other one may be added.
  bool full() const;
  enum class State : uint8_t { kNotHere, kOnTheWay, kWritten };
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
  void Drop(uint64_t version);
  // Drops those whose values lie in [begin, end) on the disk.
  void DropWrittenIn(uint64_t begin, uint64_t end);
  // Of the blocks of all.
  uint64_t bytes() const;
  // Whether some are on the way to a disk that works: it took the last ones, and that not many
  // steps ago.
  bool Waits() const;
  // A step in the background passed: a millisecond, or ten.
  void StepPassed();

 private:
  struct Entry {
    Item item;
    std::optional<TierPlace> place;
  };

  // Returns the first item of a queue that was not dropped, and takes it and those before out.
  std::optional<Item> TakeFirst(std::deque<uint64_t>* versions) GANNET_REQUIRES(mutex_);
  void Remove(uint64_t version) GANNET_REQUIRES(mutex_);

  mutable Mutex mutex_;
  absl::flat_hash_map<uint64_t, Entry> entries_ GANNET_GUARDED_BY(mutex_);  // by version
  // Versions, the first one first; also of some that were dropped.
  std::deque<uint64_t> chosen_ GANNET_GUARDED_BY(mutex_);
  std::deque<uint64_t> written_ GANNET_GUARDED_BY(mutex_);
  uint64_t bytes_ GANNET_GUARDED_BY(mutex_) = 0;
  size_t on_the_way_ GANNET_GUARDED_BY(mutex_) = 0;
  uint32_t steps_left_ GANNET_GUARDED_BY(mutex_) = 0;  // until nobody waits any more
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_AHEAD_OF_EVICTION_H_
