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

// The index that clients READ, and the server's ways to change it. It maps a key's hash to a slot;
// it never looks at keys or items itself.
//
// Invariants, for a client that samples any word at any time (docs/consistency.md):
// 1. A key that is in the index is, at every moment, in its home bucket, in the next one, or in the
//    stash with its stash tag set in the home bucket.
// 2. Every change of a bucket is one publication (W1), a move publishes its destination first and
//    bumps the move counters of both buckets it concerns (W1, W2).
// 3. Slots never move inside the stash.
//
// Thread safety: find and change a key only while holding an Index::Lock of its hash. Keys of
// different ranges are worked on in parallel. Order of locks: ranges ascending, then the stash.
class Index {
 public:
  struct Options {
    std::span<std::byte> region;
    IndexGeometry geometry;
    uint64_t incarnation = 0;
    // The hash of the key whose item a slot of this index leads to.
    std::function<KeyHash(Slot)> hash_of;
  };
  // Neighbouring buckets that share a mutex. A power of two, and wide enough for a Lock to need two
  // ranges at most.
  static constexpr uint64_t kBucketsPerRange = 1024;

  // Publishes an empty index. REQUIRES: geometry.ValidWithin(region.size()), its bytes are zero.
  explicit Index(Options options);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // Excludes every other writer from all buckets that working on one key can touch, a chain of
  // moves included. One key at a time per thread.
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
    WordMutex* second_;  // nullptr: one range covers it
  };

  // Excludes every other writer from one bucket only. That is enough to change the item of a slot
  // that is in it, as whoever takes that slot away, or changes it, has a Lock over its bucket. It
  // is not enough to change a bucket.
  class BucketLock {
   public:
    BucketLock(Index& index, uint64_t bucket) : mutex_(index.RangeOf(bucket)) { mutex_.Lock(); }
    ~BucketLock() { mutex_.Unlock(); }
    BucketLock(const BucketLock&) = delete;
    BucketLock& operator=(const BucketLock&) = delete;

   private:
    WordMutex& mutex_;
  };

  // Where a key's slot is. Valid while the Lock is held and the index not changed.
  struct Place {
    uint64_t home;
    uint64_t bucket;
    uint32_t slot;
  };
  struct Found {
    Place place;
    Slot slot;
  };

  // The slot of the key, told from others of the same tag by `is_key(Slot)`.
  template <class IsKey>
  std::optional<Found> Find(KeyHash hash, IsKey&& is_key) const;
  // For who knows a key before its turn comes: asks for the home bucket's memory; then says where
  // in it the key's slot probably is, which is where the first slot with its tag is, or the last
  // slot. Neither needs a lock. REQUIRES, for the load: BucketLock(index, home).
  void PrefetchBucket(uint64_t home) const;
  const std::byte* GuessSlot(uint64_t home, uint32_t tag) const;
  static Slot LoadGuessed(const std::byte* slot) { return Slot(LoadWord(slot)); }
  // False: there is no room for this key, and nothing was changed.
  // REQUIRES: the key is not in the index.
  bool Insert(KeyHash hash, Slot slot);
  // The key's item lives elsewhere now.
  void Replace(const Place& place, Slot slot);
  // Takes a key out; may bring another one back from the stash.
  void Remove(const Place& place);

  // All keys of home `home`; those that `out` has no room for are left out.
  // REQUIRES: Lock(index, home).
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

  WordMutex& RangeOf(uint64_t bucket) { return ranges_[bucket / kBucketsPerRange].mutex; }
  bool InStash(uint64_t bucket) const { return bucket >= geometry().main_buckets(); }
  std::optional<uint64_t> WindowBucketWithRoom(uint64_t home);
  // Makes room in a full window by a chain of moves; the bucket with room.
  std::optional<uint64_t> Displace(uint64_t home);
  void MoveToNext(uint64_t from);
  void MoveToPrevious(uint64_t from);
  void InsertInWindow(uint64_t home, uint64_t bucket, Slot slot);
  bool InsertInStash(KeyHash hash, uint64_t home, Slot slot);
  // Makes room in a full window by moving one of its keys into the stash; the bucket with room.
  std::optional<uint64_t> MoveToStash(uint64_t home);
  void MoveSlotToStash(uint64_t from, uint32_t slot, const Stash::Entry& to)
      GANNET_REQUIRES(stash_mutex_);
  void RemoveFromStash(const Place& place);
  // Brings one key whose window includes `bucket`, where there is room, back from the stash.
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
  // Relaxed: ordered with nothing.
  std::atomic<uint64_t> slots_used_{0};
  std::atomic<uint64_t> stash_used_{0};
  std::atomic<uint64_t> displacements_{0};
};

// It covers [home - kChainMovesMax, home + 1 + kChainMovesMax].
inline Index::Lock::Lock(Index& index, uint64_t home) : second_(nullptr) {
  static_assert(2 * kChainMovesMax + 2 <= kBucketsPerRange);
  const uint64_t first = home < kChainMovesMax ? 0 : home - kChainMovesMax;
  // Past the last bucket there may be no range, and the last one's is enough.
  const uint64_t last = std::min(home + 1 + kChainMovesMax, index.geometry().main_buckets() - 1);
  first_ = &index.RangeOf(first);
  WordMutex* const second = &index.RangeOf(last);
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
  for (const Stash::Entry& entry : stash_.OfHome(home)) {
    if (entry.hash.value() != hash.value()) continue;
    const Slot slot = table_.LoadSlot(entry.bucket, entry.slot);
    if (is_key(slot)) return Found{{home, entry.bucket, entry.slot}, slot};
  }
  return std::nullopt;
}

}  // namespace gannet

#endif  // GANNET_SERVER_INDEX_INDEX_H_
