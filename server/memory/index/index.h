#ifndef GANNET_SERVER_MEMORY_INDEX_INDEX_H_
#define GANNET_SERVER_MEMORY_INDEX_INDEX_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/word_mutex.h"
#include "common/layout/index_geometry.h"
#include "common/layout/key_hash.h"
#include "server/memory/index/index_table.h"

namespace gannet {

// The index that clients READ. It is a table (index_table.h). To grow, it is replaced by a larger
// one while readers read and writers write.
//
//   one table --Prepare--> next is being written --BeginMigration--> two tables --all homes
//   migrated, EndMigration--> one table
//
// While there are two tables, each home of the old one is either migrated or not.
// - The keys of a home that is not migrated are in the old table only, and readers find them there.
// - The keys of a migrated home are in the new table, and their old slots stay as they were.
// A Lock migrates the home of its key first, so a change happens in the new table. If the new table
// has no room for the home, its keys go on in the old one.
//
// Thread safety: hold a Lock of a key's hash to find or change the key. What needs one is given it,
// so that the compiler refuses a call without (tests/server/memory/index/refused_uses.cc). It
// cannot know whose key the Lock is of. Locks are by ranges of hashes, not of buckets, so one lock
// covers a key in both tables. Keys of different ranges are handled in parallel. Order of locks:
// ranges ascending, then a table's stash. One thread at a time may call Prepare to EndMigration.
class Index {
 public:
  using Place = IndexTable::Place;
  using Found = IndexTable::Found;

  struct Options {
    std::span<std::byte> region;
    IndexGeometry geometry;
    uint64_t incarnation = 0;
    const IndexedItems* items = nullptr;  // outlive the index
    // Whether LoadGuessed finds slots, so that items may be changed in place.
    bool guesses = true;
    // The slots of each bucket that stay, to go on with the index of a former run
    // (IndexTable::Adopt). If the index was growing, `next` is where the larger one lies.
    std::span<const BucketSlots> adopted = {};
    IndexGeometry next = {};
    std::span<const BucketSlots> adopted_next = {};
  };

  // Publishes an empty index, or the adopted one. REQUIRES: geometry.ValidWithin(region.size()).
  explicit Index(Options options);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  struct alignas(64) Range {
    WordMutex mutex;
  };
  // Excludes other writers from all buckets that an operation on one key may touch, in both tables,
  // including a chain of moves. A thread holds at most one, and then no lock of a key.
  class Lock {
   public:
    Lock(Index& index, KeyHash hash) : index_(index) {
      Acquire(hash.value());
      if (index.old_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
        index.MigrateHomeOf(*this, hash);
    }
    // Covers the home of `table` and its keys.
    Lock(Index& index, const IndexTable& table, uint64_t home);
    GANNET_UNCHECKED_LOCKS ~Lock() {
      if (last_ != first_) [[unlikely]]
        ReleaseOthers();
      first_->mutex.Unlock();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    GANNET_UNCHECKED_LOCKS void Acquire(uint64_t hash);
    GANNET_UNCHECKED_LOCKS void AcquireOthers();
    GANNET_UNCHECKED_LOCKS void ReleaseOthers();

    Index& index_;
    Range* first_;
    Range* last_;
  };

  // Excludes other writers from one key's item. That is enough to change the item of a slot with
  // that key, because whoever removes or changes the slot holds a Lock over it. It is not enough to
  // change a bucket.
  class KeyLock {
   public:
    KeyLock(Index& index, KeyHash hash) : mutex_(index.RangeOf(hash.value()).mutex) {
      mutex_.Lock();
    }
    ~KeyLock() { mutex_.Unlock(); }
    KeyLock(const KeyLock&) = delete;
    KeyLock& operator=(const KeyLock&) = delete;

   private:
    WordMutex& mutex_;
  };

  // The same, if that can be had without waiting. For a thread that holds what others may wait for
  // while they hold the lock of a key, or that holds the lock of another key. One that holds
  // nothing yet may wait.
  class KeyTry {
   public:
    enum class May : uint8_t { kTry, kWait };
    GANNET_UNCHECKED_LOCKS KeyTry(Index& index, KeyHash hash, May may = May::kTry)
        : mutex_(index.RangeOf(hash.value()).mutex), held_(Acquire(may)) {}
    GANNET_UNCHECKED_LOCKS ~KeyTry() {
      if (held_) mutex_.Unlock();
    }
    KeyTry(const KeyTry&) = delete;
    KeyTry& operator=(const KeyTry&) = delete;
    bool held() const { return held_; }

   private:
    GANNET_UNCHECKED_LOCKS bool Acquire(May may) {
      if (may == May::kTry) return mutex_.TryLock();
      mutex_.Lock();
      return true;
    }

    WordMutex& mutex_;
    const bool held_;
  };

  // Each of these is given the Lock of the key that the caller holds.
  template <class IsKey>
  std::optional<Found> Find(const Lock& /*held*/, KeyHash hash, IsKey&& is_key) {
    return TableOf(hash).Find(hash, is_key);
  }
  bool Insert(const Lock& /*held*/, KeyHash hash, Slot slot) {
    return TableOf(hash).Insert(hash, slot);
  }
  static void Replace(const Lock& /*held*/, const Place& place, Slot slot) {
    place.table->Replace(place, slot);
  }
  static void Remove(const Lock& /*held*/, const Place& place) { place.table->Remove(place); }
  // Returns the table that has the key, or would get it.
  IndexTable& TableOf(KeyHash hash) const;

  // Prefetch for batches: call PrefetchBucket for each key first, then GuessSlot. GuessSlot returns
  // the place of the first slot with the key's tag in the home bucket. If there is none, it returns
  // the bucket's last slot. Neither needs a lock. They look at the newest table only.
  const std::byte* PrefetchBucket(KeyHash hash) const;
  static const std::byte* GuessSlot(const std::byte* bucket, uint32_t tag);
  // Returns an empty slot if the guess was made in a table that is not the newest any more, or is
  // nullptr.
  [[gnu::always_inline]] Slot LoadGuessed(const KeyLock& /*held*/, const std::byte* slot) const {
    return LoadGuessed(slot);
  }
  [[gnu::always_inline]] Slot LoadGuessed(const KeyTry& /*held*/, const std::byte* slot) const {
    return LoadGuessed(slot);
  }

  // Returns the newest table, for a walk without a lock. It stays until the caller drops it, but
  // may be replaced meanwhile: ask IsCurrent under each lock.
  std::shared_ptr<IndexTable> Hold() const;
  bool IsCurrent(const IndexTable& table) const {
    return current_.load(std::memory_order_acquire) == &table;
  }

  // Growth (index_growth.cc). Makes the next table, empty. REQUIRES: there is one table.
  void Prepare(const IndexGeometry& next);
  // Writes some of its buckets. Returns true when all are written.
  bool PrepareSome(uint64_t buckets);
  // From now on there are two tables. REQUIRES: all buckets are written, and clients can learn
  // where the next table is.
  void BeginMigration();
  // Migrates some homes. Returns true when all are migrated.
  bool MigrateSome(uint64_t homes);
  // Drops the old table. Its buckets in the region stay as they are. REQUIRES: all are migrated.
  void EndMigration();
  bool growing() const { return old_.load(std::memory_order_relaxed) != nullptr; }

  // The geometry of the newest table.
  const IndexGeometry& geometry() const {
    return current_.load(std::memory_order_acquire)->geometry();
  }
  // Statistics.
  uint64_t slots_used() const { return counters_.slots_used.load(std::memory_order_relaxed); }
  uint64_t displacements() const { return counters_.displacements.load(std::memory_order_relaxed); }
  uint64_t stash_used() const { return Hold()->stash_used(); }

 private:
  // What GuessSlot needs of a table. It is never freed, so it needs no lock.
  struct Guessed {
    const std::byte* first;  // bucket
    uint64_t homes;
    uint64_t bytes;
  };

  [[gnu::always_inline]] Slot LoadGuessed(const std::byte* slot) const;
  Range& RangeOf(uint64_t hash) { return ranges_[hash >> range_shift_]; }
  void AdoptNext();
  std::shared_ptr<IndexTable> MakeTable(const IndexGeometry& geometry);
  void SetReach(const IndexTable& table);
  // Migrates the home of a key, if it is not migrated yet.
  void MigrateHomeOf(const Lock& held, KeyHash hash);
  // Returns false if the new table has no room. Then nothing was changed.
  bool MigrateHome(const Lock& held, IndexTable& from, IndexTable& to, uint64_t home);

  const Options options_;
  const int range_shift_;
  std::vector<Range> ranges_;
  IndexCounters counters_;

  // The newest table. It is stored with release after old_, and loaded with acquire. So whoever
  // sees the new table sees that there is an old one.
  std::atomic<IndexTable*> current_{nullptr};
  // The table whose homes are being migrated, or nullptr.
  std::atomic<IndexTable*> old_{nullptr};
  std::atomic<const Guessed*> guessed_{nullptr};
  // How far a Lock reaches to both sides of its key's hash: 19 buckets of the smallest table in
  // use.
  std::atomic<uint64_t> reach_{0};
  std::atomic<uint64_t> homes_left_{0};  // to migrate

  mutable Mutex tables_mutex_;
  std::shared_ptr<IndexTable> current_table_ GANNET_GUARDED_BY(tables_mutex_);

  // Only the thread that grows the index uses these.
  std::shared_ptr<IndexTable> next_table_, old_table_;
  std::deque<Guessed> all_guessed_;
  uint64_t prepared_ = 0;      // buckets
  uint64_t migrate_next_ = 0;  // home
};

[[gnu::always_inline]] inline IndexTable& Index::TableOf(KeyHash hash) const {
  IndexTable* const current = current_.load(std::memory_order_acquire);
  // Relaxed: the lock's holder sees everything that was migrated in its range.
  IndexTable* const old = old_.load(std::memory_order_relaxed);
  if (old == nullptr || old == current) [[likely]]
    return *current;
  return old->migrated(old->Home(hash)) ? *current : *old;
}

[[gnu::always_inline]] inline void Index::Lock::Acquire(uint64_t hash) {
  const uint64_t reach = index_.reach_.load(std::memory_order_acquire);
  const uint64_t begin = hash < reach ? 0 : hash - reach;
  const uint64_t end = hash > ~reach ? ~uint64_t{0} : hash + reach;
  first_ = &index_.RangeOf(begin);
  last_ = &index_.RangeOf(end);
  first_->mutex.Lock();
  if (last_ != first_) [[unlikely]]
    AcquireOthers();
}

[[gnu::always_inline]] inline const std::byte* Index::PrefetchBucket(KeyHash hash) const {
  const Guessed& table = *guessed_.load(std::memory_order_acquire);
  const std::byte* const bucket = table.first + hash.Home(table.homes) * kBucketBytes;
  __builtin_prefetch(bucket);
  __builtin_prefetch(bucket + kBucketBytes / 2);
  return bucket;
}

[[gnu::always_inline]] inline const std::byte* Index::GuessSlot(const std::byte* bucket,
                                                                uint32_t tag) {
  const std::byte* slot = bucket + offsetof(Bucket, slots);
  const std::byte* const last = slot + (kSlotsPerBucket - 1) * sizeof(Slot);
  while (Slot(LoadWord(slot)).tag() != tag && slot != last) slot += sizeof(Slot);
  return slot;
}

// Slots of a former table may lead to blocks that were freed. nullptr is in no table.
[[gnu::always_inline]] inline Slot Index::LoadGuessed(const std::byte* slot) const {
  const Guessed& table = *guessed_.load(std::memory_order_relaxed);
  if (static_cast<uint64_t>(slot - table.first) >= table.bytes) [[unlikely]]
    return Slot();
  return Slot(LoadWord(slot));
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_INDEX_INDEX_H_
