#ifndef GANNET_SERVER_MEMORY_STORE_EVICTOR_H_
#define GANNET_SERVER_MEMORY_STORE_EVICTOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/base/server_time.h"
#include "common/base/wake_up.h"
#include "common/layout/key_hash.h"
#include "common/layout/slot.h"
#include "server/memory/heap/heap.h"
#include "server/memory/index/index.h"
#include "server/memory/store/compactor.h"
#include "server/memory/store/eviction.h"
#include "server/memory/store/item_sampler.h"
#include "server/memory/store/items.h"
#include "server/memory/store/later_evictions.h"
#include "server/memory/store/span_clearer.h"
#include "server/memory/store/table_span.h"
#include "server/memory/store/tier_evictor.h"
#include "server/memory/store/write_span.h"

namespace gannet {

class Store;

// Chooses items of a store that go, so that writes find room. `eviction.h` says which items are
// used, and this class finds some of the others, and has them deleted.
//
// Thread safety: as the store's.
class Evictor {
 public:
  // The items, which have an Eviction, and the compactor are the store's. `tidy_wanted`, which may
  // be null, is asked by a write that waits for evictions. All outlive the evictor.
  Evictor(Store& store, Items& items, Compactor& compactor, WakeUp* tidy_wanted)
      : store_(store),
        items_(items),
        state_(*items.eviction()),
        tidy_wanted_(tidy_wanted),
        sampler_(items),
        tier_(items.stubs() == nullptr ? nullptr
                                       : std::make_unique<TierEvictor>(store, items, sampler_)),
        clearer_(store, items, compactor, tier_.get()),
        write_span_(items.heap(), clearer_),
        table_span_(items, clearer_) {}

  // While it is paused, nothing is evicted, and all others do nothing. Relaxed: whoever unpauses it
  // does not mind a thread that sees it later.
  void Pause(bool paused) { paused_.store(paused, std::memory_order_relaxed); }

  // Evictions wait, from now on. nullptr: they do not. While nobody else uses the evictor.
  void EvictLater(const LaterEvictions* later) {
    later_ = later;
    write_span_.EvictLater(later);
  }

  // Evicts until there is a block. Returns nullptr if a bounded number of steps does not help: what
  // may not go now may lie everywhere. If evictions wait, or values for a disk stay, a block comes
  // later. REQUIRES: no lock is held.
  std::byte* EvictFor(uint64_t item_bytes, Unwritten unwritten);
  // Returns a block for a value that comes back from the tier's disk, where its heat was `heat`, or
  // nullptr. No value is lost for it. REQUIRES: no lock is held.
  std::byte* RoomForPromoted(uint64_t item_bytes, uint8_t heat);
  // Evicts an item that lies in one of the two buckets of the key whose lock is held. Returns false
  // if none may go.
  bool EvictInWindow(const Index::Lock& held, KeyHash hash, uint32_t size_class);
  // Chooses values that a tier is to get now. Returns whether there are any. REQUIRES: there is a
  // tier; no lock is held.
  bool ChooseAhead() { return !paused() && tier_->ChooseAhead(FullBytes()); }
  // A step in the background: keeps some memory free. Returns whether there is more to do.
  // REQUIRES: no lock is held.
  bool EvictToWatermark(ServerTime now);
  // A step in the background: clears one piece of memory for a table of the index, if more than
  // that is free, but in pieces that are too short. Returns whether there is more to do.
  // `table_bytes` is 0 if no table lacks room. REQUIRES: no lock is held; one thread at a time
  // calls it.
  bool ClearForTable(uint64_t table_bytes) {
    return !paused() && table_span_.ClearFor(table_bytes);
  }
  // The heap counts as full if so much is occupied.
  uint64_t FullBytes() const { return state_.FullBytes(items_.heap().kept_bytes()); }
  // Notes that a key got the item at `slot` in place of that at `old`, which may be empty.
  void Installed(KeyHash hash, Slot old, Slot slot);

 private:
  bool paused() const { return paused_.load(std::memory_order_relaxed); }

  using Candidate = ItemSampler::Candidate;
  // Returns false if none may go.
  bool EvictColdest(const Index::Lock& held, std::span<Candidate> candidates,
                    Unwritten unwritten = Unwritten::kGoes);

  // A step in the background, of a store with a tier. REQUIRES: no lock is held.
  bool StepOfTier();
  // Evicts the coldest of some items. REQUIRES: no lock is held.
  bool EvictSomewhere(uint32_t size_class, Unwritten unwritten = Unwritten::kGoes);
  // Evicts one in the background. Returns false if none may go now. REQUIRES: no lock is held.
  bool EvictOne();
  // These: REQUIRES: no lock is held. The first three return a block, or nullptr if what they do
  // does not help.
  std::byte* EvictWritten(uint64_t item_bytes, Unwritten unwritten);
  std::byte* EvictSingly(uint64_t item_bytes);
  std::byte* ClearSpansFor(uint64_t item_bytes);
  // Returns whether an item of such a length waits until others are written: nothing is evicted for
  // it that the disk takes.
  bool Waits(uint64_t item_bytes, Unwritten unwritten) const;
  // A write found no block.
  void NoteUnusable();
  // Returns whether enough memory is free for a block, but in pieces that are too short.
  bool IsScattered(uint32_t size_class) const;
  // Bytes that are occupied, without those of items that wait to go.
  uint64_t BytesThatStay() const;
  // While evictions wait. REQUIRES: no lock is held.
  std::byte* EvictForLater(uint64_t item_bytes);
  void EvictAhead(uint64_t item_bytes);

  Store& store_;  // deletes what is chosen: Store::Evict
  Items& items_;
  Eviction& state_;
  WakeUp* const tidy_wanted_;
  const ItemSampler sampler_;
  const std::unique_ptr<TierEvictor> tier_;  // nullptr: there is no tier
  const LaterEvictions* later_ = nullptr;
  SpanClearer clearer_;
  WriteSpan write_span_;
  TableSpan table_span_;            // only for the thread that calls ClearForTable
  std::atomic<uint32_t> turns_{0};  // of EvictForLater; relaxed
  std::atomic<bool> paused_{false};
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_EVICTOR_H_
