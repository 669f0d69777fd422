#ifndef GANNET_SERVER_MEMORY_STORE_INDEX_GROWER_H_
#define GANNET_SERVER_MEMORY_STORE_INDEX_GROWER_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/wake_up.h"
#include "common/layout/superblock.h"
#include "server/memory/store/compactor.h"
#include "server/memory/store/items.h"

namespace gannet {

// Replaces a store's index by a larger one while readers read and writers write. Works in small
// steps; writers migrate the homes that they need themselves (server/memory/index/index.h).
// Publishes in the superblock where the index is.
//
// The next index is one run of the heap. The former one is freed when no client READs it any more.
//
// Thread safety: all methods, from any thread. One thread at a time grows the index.
class IndexGrower {
 public:
  // All outlive it. If not `grows`, the index stays as it is. `step_wanted`, which may be null, is
  // asked for a Step soon.
  IndexGrower(Items& items, Compactor& compactor, bool grows, WakeUp* step_wanted)
      : items_(items), compactor_(compactor), grows_(grows), step_wanted_(step_wanted) {}

  // Publishes the index of a new store, or the index of a former process and the next one that it
  // was growing to. Before others use the store.
  void Begin(const IndexGeometry& index, const IndexGeometry& next);

  // Grows the index by a step, or begins to if it is time. Returns whether there is more to do at
  // once. REQUIRES: no lock is held.
  bool Step();
  // For a write that inserts a key. Returns whether it should help.
  bool WantsHelp() const {
    return items_.index().slots_used() >= grow_at_.load(std::memory_order_relaxed);
  }
  // Does a little of it if nobody else does any of it now. Does not wait, so a lock may be held.
  GANNET_UNCHECKED_LOCKS void Help();
  // For a write that finds no slot. Returns true if there will soon be one.
  bool AskForSlot();
  // For a write that finds no slot, and must not be overtaken by those behind it. REQUIRES: no lock
  // is held.
  void MakeSlots();
  // Takes note that no client READs an index older than this generation any more.
  void Acknowledge(uint64_t generation) {
    acknowledged_.store(generation, std::memory_order_relaxed);
  }

  bool growing() const { return phase_.load(std::memory_order_relaxed) != Phase::kRest; }
  // Returns how much memory the next index lacks, in one piece; 0: it lacks none.
  uint64_t wanted_bytes() const { return wanted_bytes_.load(std::memory_order_relaxed); }
  uint64_t growths() const { return growths_.load(std::memory_order_relaxed); }
  // The superblock as it is now.
  Superblock superblock() const;
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  enum class Phase : uint8_t { kRest, kPreparing, kMigrating };

  bool BeginGrowth() GANNET_REQUIRES(mutex_);
  // Returns the bytes of the next index, or 0 if the present one will do.
  uint64_t NextBytes();
  bool AllocateNext(uint64_t bytes) GANNET_REQUIRES(mutex_);
  void Prepare(uint64_t buckets) GANNET_REQUIRES(mutex_);
  void Migrate(uint64_t homes) GANNET_REQUIRES(mutex_);
  void Publish(const IndexGeometry& index, const IndexGeometry& next);
  void FreeRetired() GANNET_REQUIRES(mutex_);
  void WatchFill();
  void Ask();

  Items& items_;
  Compactor& compactor_;
  const bool grows_;
  WakeUp* const step_wanted_;

  // These are relaxed: hints and statistics.
  std::atomic<uint64_t> grow_at_{UINT64_MAX};  // a write that sees so many slots in use helps
  std::atomic<bool> wanted_{false};            // by a write
  std::atomic<bool> no_slot_{false};           // for a write, since the last growth
  std::atomic<bool> no_room_{false};           // for the next index
  std::atomic<uint64_t> wanted_bytes_{0};
  std::atomic<Phase> phase_{Phase::kRest};
  std::atomic<uint64_t> acknowledged_{UINT64_MAX};
  std::atomic<uint64_t> growths_{0};

  // Release after the superblock is published; acquire, so that a later grant is not older.
  std::atomic<uint64_t> generation_{0};
  mutable Mutex mutex_;  // of whoever grows the index
  std::vector<IndexGeometry> retired_ GANNET_GUARDED_BY(mutex_);
  IndexGeometry next_ GANNET_GUARDED_BY(mutex_){};
  mutable Mutex published_mutex_;
  IndexGeometry published_index_ GANNET_GUARDED_BY(published_mutex_){};
  IndexGeometry published_next_ GANNET_GUARDED_BY(published_mutex_){};
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_INDEX_GROWER_H_
