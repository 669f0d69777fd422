#ifndef GANNET_SERVER_MEMORY_INDEX_INDEX_TABLE_H_
#define GANNET_SERVER_MEMORY_INDEX_INDEX_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "common/layout/index_geometry.h"
#include "common/layout/key_hash.h"
#include "server/memory/index/bucket_table.h"
#include "server/memory/index/displacement.h"
#include "server/memory/index/expiry_floors.h"
#include "server/memory/index/occupancy.h"
#include "server/memory/index/stash.h"

namespace gannet {

// Statistics of an index, over all its tables. Relaxed: no other memory depends on them.
struct IndexCounters {
  std::atomic<uint64_t> slots_used{0};
  std::atomic<uint64_t> displacements{0};
};

// Whose index it is: the store's items. The index itself never looks at an item.
class IndexedItems {
 public:
  // Returns the hash of the key whose item a slot leads to.
  virtual KeyHash KeyHashAt(Slot slot) const = 0;

 protected:
  ~IndexedItems() = default;
};

// One table of the index, of a fixed size: the buckets that clients READ, and the server's ways to
// change them. It maps a key's hash to a slot. It never looks at keys or items itself. Index holds
// the locks, and replaces a table by a larger one.
//
// Invariants, for a client that samples any word at any time (docs/consistency.md):
//   1. A key of the table is at every moment in its home bucket, in the next one, or in the stash
//      with its stash tag set in the home bucket.
//   2. Every change of a bucket is one publication (W1). A move publishes its destination first,
//      and bumps the move counters of both buckets (W1, W2).
//   3. Slots never move inside the stash.
//
// Thread safety: hold an Index::Lock of a key's hash to find or change the key, which goes through
// Index.
class IndexTable {
 public:
  struct Options {
    std::span<std::byte> region;
    IndexGeometry geometry;
    uint64_t incarnation = 0;
    uint64_t ranges = 1;                  // the number of ranges of the floors, as Index has them
    const IndexedItems* items = nullptr;  // outlive the table
  };

  // Initialise must follow for all buckets. REQUIRES: geometry.ValidWithin(region.size()).
  IndexTable(const Options& options, IndexCounters& counters);
  IndexTable(const IndexTable&) = delete;
  IndexTable& operator=(const IndexTable&) = delete;

  // Writes buckets [first, end) as empty ones, before anybody uses the table.
  void Initialise(uint64_t first, uint64_t end) { table_.Initialise(first, end); }

  // Goes on with the table of a former run, instead of Initialise. `slots` has an entry for each
  // bucket: the slots that stay. REQUIRES: each of them leads to an item whose key belongs there,
  // no two have the same key, and migrated homes have none.
  void Adopt(std::span<const BucketSlots> slots);

  // The place of a key's slot. Valid while the Lock is held and the index does not change.
  struct Place {
    IndexTable* table;
    uint64_t home;
    uint64_t bucket;
    uint32_t slot;
  };
  struct Found {
    Place place;
    Slot slot;
  };

  // Lists the keys of home `home`, as many as `out` has room for. Returns their number. Returns 0
  // if the home was migrated, since its slots here may lead to blocks of others by now. REQUIRES:
  // Lock of that home.
  size_t List(uint64_t home, std::span<Found> out);
  // Appends the slots of all keys of home `home`. REQUIRES: Lock of that home.
  void AppendSlots(uint64_t home, std::vector<Slot>* slots);

  // Returns whether the keys of a home were copied to the next table. Then nobody changes their
  // slots here any more. REQUIRES: Lock of that home.
  bool migrated(uint64_t home) const { return table_.LoadMeta(home).migrated(); }

  const IndexGeometry& geometry() const { return table_.geometry(); }
  uint64_t Home(KeyHash hash) const { return hash.Home(geometry().homes); }
  const std::byte* first_bucket() const { return table_.Address(0); }
  uint64_t stash_used() const { return stash_used_.load(std::memory_order_relaxed); }

  // When the items of each home may expire. Its users hold the locks that it asks for.
  ExpiryFloors floors;

 private:
  friend class Index;  // whose callers show the Lock that all of these need

  // Finds the slot of the key. `is_key(Slot)` tells it from other slots with the same tag.
  template <class IsKey>
  std::optional<Found> Find(KeyHash hash, IsKey&& is_key);
  // Returns false if there is no room for the key; then nothing was changed. REQUIRES: the key is
  // not in the table.
  bool Insert(KeyHash hash, Slot slot);
  // Stores the key's new slot after its item moved.
  void Replace(const Place& place, Slot slot);
  // Removes a key. May bring another one back from the stash.
  void Remove(const Place& place);

  // REQUIRES: the home's keys are published in the next table.
  void SetMigrated(uint64_t home);

  bool InStash(uint64_t bucket) const { return bucket >= geometry().main_buckets(); }
  std::optional<uint64_t> WindowBucketWithRoom(uint64_t home);
  // Makes room in a full window by a chain of moves. Returns the bucket with room.
  std::optional<uint64_t> Displace(uint64_t home);
  void MoveToNext(uint64_t from);
  void MoveToPrevious(uint64_t from);
  void InsertInWindow(uint64_t home, uint64_t bucket, Slot slot);
  bool InsertInStash(KeyHash hash, uint64_t home, Slot slot);
  // Makes room in a full window by moving one of its keys into the stash. Returns the bucket with
  // room.
  std::optional<uint64_t> MoveToStash(uint64_t home);
  void MoveSlotToStash(uint64_t from, uint32_t slot, const Stash::Entry& to)
      GANNET_REQUIRES(stash_mutex_);
  void RemoveFromStash(const Place& place);
  // Brings one key back from the stash, if one has a window that includes `bucket`. REQUIRES:
  // `bucket` has room.
  void PullBack(uint64_t bucket);
  void MoveFromStash(uint64_t home, const Stash::Entry& entry, uint64_t to)
      GANNET_REQUIRES(stash_mutex_);
  void SetStashTags(uint64_t home, uint32_t tags);

  BucketTable table_;
  const IndexedItems& items_;
  IndexCounters& counters_;
  Occupancy occupancy_;  // guarded by the ranges of Index
  // Also guards the stash's buckets in the region.
  mutable Mutex stash_mutex_;
  Stash stash_ GANNET_GUARDED_BY(stash_mutex_);
  std::atomic<uint64_t> stash_used_{0};  // relaxed: a statistic
};

template <class IsKey>
[[gnu::always_inline]] inline std::optional<IndexTable::Found> IndexTable::Find(KeyHash hash,
                                                                                IsKey&& is_key) {
  const uint64_t home = Home(hash);
  const uint32_t tag = hash.Tag();
  for (uint64_t bucket = home; bucket <= home + 1; ++bucket) {
    for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
      const Slot slot = table_.LoadSlot(bucket, i);
      if (slot.tag() == tag && !slot.empty() && is_key(slot)) {
        return Found{{this, home, bucket, i}, slot};
      }
    }
  }
  if ((table_.LoadMeta(home).stash_tags() & hash.StashTag()) == 0) return std::nullopt;
  MutexLock lock(stash_mutex_);
  for (const Stash::Entry& entry : stash_.EntriesOfHome(home)) {
    if (entry.hash.value() != hash.value()) continue;
    const Slot slot = table_.LoadSlot(entry.bucket, entry.slot);
    if (is_key(slot)) return Found{{this, home, entry.bucket, entry.slot}, slot};
  }
  return std::nullopt;
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_INDEX_INDEX_TABLE_H_
