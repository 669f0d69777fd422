#ifndef GANNET_SERVER_INDEX_INDEX_H_
#define GANNET_SERVER_INDEX_INDEX_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/word_mutex.h"
#include "common/layout/index_geometry.h"
#include "common/layout/key_hash.h"
#include "server/index/bucket_table.h"
#include "server/index/displacement.h"
#include "server/index/occupancy.h"
#include "server/index/stash.h"

namespace gannet {

// The index that clients READ, and the server's ways to change it. It maps a key's hash to a slot.
// It never looks at keys or items itself.
//
// Invariants, for a client that samples any word at any time (docs/consistency.md):
//   1. A key of the index is at every moment in its home bucket, in the next one, or in the stash
//      with its stash tag set in the home bucket.
//   2. Every change of a bucket is one publication (W1). A move publishes its destination first,
//      and bumps the move counters of both buckets (W1, W2).
//   3. Slots never move inside the stash.
//
// Thread safety: hold an Index::Lock of a key's hash to find or change the key. Keys of different
// ranges are handled in parallel. Order of locks: ranges ascending, then the stash.
class Index {
 public:
  struct Options {
    std::span<std::byte> region;
    IndexGeometry geometry;
    uint64_t incarnation = 0;
    // Returns the hash of the key whose item a slot leads to.
    std::function<KeyHash(Slot)> hash_of;
  };
  // How many neighbouring buckets share a mutex. A power of two, and so large that a Lock needs at
  // most two ranges.
  static constexpr uint64_t kBucketsPerRange = 1024;

  // Publishes an empty index. REQUIRES: geometry.ValidWithin(region.size()), and its bytes are
  // zero.
  explicit Index(Options options);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // Excludes other writers from all buckets that an operation on one key may touch, including a
  // chain of moves. A thread holds at most one.
  class Lock {
   public:
    Lock(Index& index, KeyHash hash) : Lock(index, hash.Home(index.geometry().homes)) {}
    Lock(Index& index, uint64_t home);
    ~Lock() {
      if (second_ != nullptr) [[unlikely]]
        second_->Unlock();
      first_->Unlock();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    WordMutex* first_;
    WordMutex* second_;  // nullptr if one range covers it
  };

  // Excludes other writers from one bucket only. That is enough to change the item of a slot in
  // that bucket, because whoever removes or changes the slot holds a Lock over the bucket. It is
  // not enough to change a bucket.
  class BucketLock {
   public:
    BucketLock(Index& index, uint64_t bucket) : mutex_(index.RangeMutex(bucket)) { mutex_.Lock(); }
    ~BucketLock() { mutex_.Unlock(); }
    BucketLock(const BucketLock&) = delete;
    BucketLock& operator=(const BucketLock&) = delete;

   private:
    WordMutex& mutex_;
  };

  // The place of a key's slot. Valid while the Lock is held and the index does not change.
  struct Place {
    uint64_t home;
    uint64_t bucket;
    uint32_t slot;
  };
  struct Found {
    Place place;
    Slot slot;
  };

  // Finds the slot of the key. `is_key(Slot)` tells it from other slots with the same tag.
  template <class IsKey>
  std::optional<Found> Find(KeyHash hash, IsKey&& is_key) const;
  // Prefetch for batches: call PrefetchBucket for each key first, then GuessSlot. GuessSlot returns
  // the place of the first slot with the key's tag in the home bucket, or else of the bucket's last
  // slot. Neither needs a lock. LoadGuessed REQUIRES: BucketLock(index, home).
  void PrefetchBucket(uint64_t home) const;
  const std::byte* GuessSlot(uint64_t home, uint32_t tag) const;
  static Slot LoadGuessed(const std::byte* slot) { return Slot(LoadWord(slot)); }
  // Returns false if there is no room for the key; then nothing was changed. REQUIRES: the key is
  // not in the index.
  bool Insert(KeyHash hash, Slot slot);
  // Stores the key's new slot after its item moved.
  void Replace(const Place& place, Slot slot);
  // Removes a key. May bring another one back from the stash.
  void Remove(const Place& place);

  // Lists the keys of home `home`, as many as `out` has room for. Returns their number. REQUIRES:
  // Lock(index, home).
  size_t List(uint64_t home, std::span<Found> out) const;

  const IndexGeometry& geometry() const { return table_.geometry(); }
  // Statistics.
  uint64_t slots_used() const { return slots_used_.load(std::memory_order_relaxed); }
  uint64_t stash_used() const { return stash_used_.load(std::memory_order_relaxed); }
  uint64_t displacements() const { return displacements_.load(std::memory_order_relaxed); }

 private:
  struct alignas(64) Range {
    WordMutex mutex;
  };

  WordMutex& RangeMutex(uint64_t bucket) { return ranges_[bucket / kBucketsPerRange].mutex; }
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
  // Brings one key back from the stash, if there is one whose window includes `bucket`. REQUIRES:
  // `bucket` has room.
  void PullBack(uint64_t bucket);
  void MoveFromStash(uint64_t home, const Stash::Entry& entry, uint64_t to)
      GANNET_REQUIRES(stash_mutex_);
  void SetStashTags(uint64_t home, uint32_t tags);

  BucketTable table_;
  const std::function<KeyHash(Slot)> hash_of_;
  std::vector<Range> ranges_;
  Occupancy occupancy_;  // guarded by the ranges
  // Also guards the stash's buckets in the region.
  mutable Mutex stash_mutex_;
  Stash stash_ GANNET_GUARDED_BY(stash_mutex_);
  // Relaxed: no other memory depends on them.
  std::atomic<uint64_t> slots_used_{0};
  std::atomic<uint64_t> stash_used_{0};
  std::atomic<uint64_t> displacements_{0};
};

// Covers buckets [home - kChainMovesMax, home + 1 + kChainMovesMax].
inline Index::Lock::Lock(Index& index, uint64_t home) : second_(nullptr) {
  static_assert(2 * kChainMovesMax + 2 <= kBucketsPerRange);
  const uint64_t first = home < kChainMovesMax ? 0 : home - kChainMovesMax;
  // There may be no range behind the last bucket's, and that one is enough.
  const uint64_t last = std::min(home + 1 + kChainMovesMax, index.geometry().main_buckets() - 1);
  first_ = &index.RangeMutex(first);
  WordMutex* const second = &index.RangeMutex(last);
  first_->Lock();
  if (second == first_) return;
  second_ = second;
  second_->Lock();
}

[[gnu::always_inline]] inline void Index::PrefetchBucket(uint64_t home) const {
  const std::byte* bucket = table_.Address(home);
  __builtin_prefetch(bucket);
  __builtin_prefetch(bucket + kBucketBytes / 2);
}

[[gnu::always_inline]] inline const std::byte* Index::GuessSlot(uint64_t home, uint32_t tag) const {
  const std::byte* slot = table_.Address(home) + offsetof(Bucket, slots);
  const std::byte* const last = slot + (kSlotsPerBucket - 1) * sizeof(Slot);
  while (Slot(LoadWord(slot)).tag() != tag && slot != last) slot += sizeof(Slot);
  return slot;
}

template <class IsKey>
[[gnu::always_inline]] inline std::optional<Index::Found> Index::Find(KeyHash hash,
                                                                      IsKey&& is_key) const {
  const uint64_t home = hash.Home(geometry().homes);
  const uint32_t tag = hash.Tag();
  for (uint64_t bucket = home; bucket <= home + 1; ++bucket) {
    for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
      const Slot slot = table_.LoadSlot(bucket, i);
      if (slot.tag() == tag && !slot.empty() && is_key(slot)) return Found{{home, bucket, i}, slot};
    }
  }
  if ((table_.LoadMeta(home).stash_tags() & hash.StashTag()) == 0) return std::nullopt;
  MutexLock lock(stash_mutex_);
  for (const Stash::Entry& entry : stash_.EntriesOfHome(home)) {
    if (entry.hash.value() != hash.value()) continue;
    const Slot slot = table_.LoadSlot(entry.bucket, entry.slot);
    if (is_key(slot)) return Found{{home, entry.bucket, entry.slot}, slot};
  }
  return std::nullopt;
}

}  // namespace gannet

#endif  // GANNET_SERVER_INDEX_INDEX_H_
