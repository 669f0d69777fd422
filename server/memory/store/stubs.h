#ifndef GANNET_SERVER_MEMORY_STORE_STUBS_H_
#define GANNET_SERVER_MEMORY_STORE_STUBS_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/layout/key_hash.h"
#include "common/layout/slot.h"
#include "common/layout/stub.h"
#include "server/memory/index/index.h"
#include "server/memory/store/store_options.h"
#include "server/memory/store/write_outcome.h"
#include "server/memory/tier/tier_format.h"

namespace gannet {

class Items;

// The stubs of a store: items whose values are on a disk (docs/decisions/2026-11-29-tier.md).
//
// A stub is named by its key's hash and its record's place: no version is ever given twice, so no
// other stub has that place. A touch changes the version of the stub, and not that of the record.
//
// Thread safety: all methods, from any thread.
class Stubs {
 public:
  // The items are those of a store with a tier, and outlive this.
  Stubs(Items& items, const StoreOptions& options);
  Stubs(const Stubs&) = delete;
  Stubs& operator=(const Stubs&) = delete;

  // Makes a stub of the key's item, whose record is at `place` on the disk, and frees the item's
  // block. Returns false, and changes nothing, if the item's version is not that of the record any
  // more, its key is locked, it is leased to clients, or no block is free. REQUIRES: no lock is
  // held.
  bool Make(KeyHash hash, const TierPlace& place, ServerTime now);
  // Deletes the key's stub if it still leads to `place`; whoever found that nothing can be read
  // there does so before he answers with a miss. Returns false if it is something else now, or
  // nothing: look again. REQUIRES: no lock is held.
  bool Delete(KeyHash hash, const TierPlace& place);

  // Returns, for each segment of the tier, the lap of the stubs that lead there, or 0: what a
  // circle goes on with (TierCircle::Options::laps). REQUIRES: no lock is held.
  std::vector<uint32_t> Laps();
  // Deletes what a former process left, and leads to nothing in this tier, or leads anywhere if
  // there is none. REQUIRES: no lock is held.
  static void DropLost(Items& items, const std::optional<TierOfStore>& tier);

  // What a read of the stub at a slot finds. REQUIRES: the key's lock.
  static ReadOutcome Outcome(const Items& items, Slot slot);
  // Take note that there is another stub, or one fewer, whose block is of this class.
  void NoteMade(uint32_t block_class);
  void NoteGone(uint32_t block_class);

  // Relaxed: for those who watch, and the budget.
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::optional<Index::Found> Find(const Index::Lock& held, KeyHash hash,
                                   const TierPlace& place) const;

  Items& items_;
  const std::span<const uint64_t> lock_words_;
  const TierOfStore tier_;
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> bytes_{0};  // of their blocks
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_STUBS_H_
