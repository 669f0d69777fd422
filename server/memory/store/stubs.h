#ifndef GANNET_SERVER_MEMORY_STORE_STUBS_H_
#define GANNET_SERVER_MEMORY_STORE_STUBS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/layout/key_hash.h"
#include "common/layout/slot.h"
#include "common/layout/stub.h"
#include "server/memory/index/index.h"
#include "server/memory/store/ahead_of_eviction.h"
#include "server/memory/store/store_options.h"
#include "server/memory/store/stub_reserve.h"
#include "server/memory/store/write_outcome.h"
#include "server/memory/tier/tier_format.h"
#include "server/memory/tier/tier_items.h"

namespace gannet {

class Evictor;
class Items;

// Return the key's item of this version, and where the stub at a slot leads. REQUIRES: the key's
// lock.
std::optional<Index::Found> FindVersion(Items& items, const Index::Lock& held, KeyHash hash,
                                        uint64_t version);
TierPlace PlaceOfStub(const Items& items, Slot stub);
// Deletes the stubs that a former process left, and that lead to nothing in this tier, or anywhere
// if there is none. REQUIRES: no lock is held.
void DropLostStubs(Items& items, const std::optional<TierOfStore>& tier);

// The stubs of a store: items whose values are on a disk (docs/decisions/2026-11-29-tier.md). And
// the values that are written there, before they are evicted: this is what a TierWriter asks.
//
// A stub is named by its key's hash and its record's place: no version is ever given twice, so no
// other stub has that place. A touch changes the version of the stub, and not that of the record.
//
// Stubs may take a quarter of the memory. They are no candidates when values are evicted, and go
// themselves, the one first whose record is written over first.
//
// Thread safety: all methods, from any thread, but NextToWrite, Written, NotWritten and Forget from
// the one that writes.
class Stubs : public TierItems {
 public:
  // Of stubs, since the start.
  struct Counts {
    uint64_t made = 0;
    uint64_t evicted = 0;       // as there were too many, or for want of a slot
    uint64_t forgotten = 0;     // that went with their records
    uint64_t brought_back = 0;  // whose values came back then, as their keys were locked
    uint64_t promoted = 0;
  };

  // The items are those of a store with a tier, and outlive this.
  Stubs(Items& items, const StoreOptions& options);
  Stubs(const Stubs&) = delete;
  Stubs& operator=(const Stubs&) = delete;

  // Makes a stub of the key's item, whose record is at `place` on the disk, and frees the item's
  // block. Returns false, and changes nothing, if the item's version is not that of the record any
  // more, its key is locked, it may be leased to clients, or there is no room for a stub. REQUIRES:
  // no lock is held.
  bool Make(KeyHash hash, const TierPlace& place);
  // Deletes the key's stub if it still leads to `place`; whoever found that nothing can be read
  // there does so before he answers with a miss. Returns false if it is something else now, or
  // nothing: look again. REQUIRES: no lock is held.
  bool Delete(KeyHash hash, const TierPlace& place);
  // Replaces the key's stub by its item, if it still leads to `place`. The item has the stub's
  // version, flags and expiry. Its value, which was read from there, lies in the block at `offset`
  // (Store::Reserve). Returns false, and frees the block, if the stub is something else now. If the
  // item is evicted before it changes or its record is written over, it is not written again.
  // REQUIRES: no lock is held.
  bool ReplaceByItem(KeyHash hash, const TierPlace& place, std::string_view key, uint64_t offset);
  // Counts a GET of a value that was read from there. If that was used twice before, of late, its
  // item replaces the stub, and others go for it that are used less and are on the disk, too.
  // REQUIRES: no lock is held.
  void Promote(KeyHash hash, const TierPlace& place, std::string_view key, std::string_view value);
  // Returns, for each segment of the tier, the lap of the stubs that lead there, or 0: what a
  // circle goes on with (TierCircle::Options::laps). REQUIRES: no lock is held.
  std::vector<uint32_t> Laps();

  // The values that are chosen to be evicted, and not changed since, one by one. If none is,
  // chooses some. If memory is short when a value is on the disk, its item becomes a stub at once,
  // otherwise when it is evicted.
  std::optional<TierRecord> NextToWrite() override;
  void Written(uint64_t hash, const TierPlace& place) override;
  void NotWritten(const TierPlace& place) override;
  // The values of locked keys are brought back into memory, as far as there is room.
  void Forget(const TierCircle::Segment& segment, TierCircle* circle) override;

  // Relaxed: for those who watch.
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // of their blocks
  uint64_t budget() const { return budget_; }                                // for bytes()
  Counts counts() const;

  // For the store.
  //
  // Makes room for values that come back by this, which outlives it. Before others use it.
  void UseEvictor(Evictor* evictor) { evictor_ = evictor; }
  // What a read of a stub finds. One that leads to nothing in this tier is deleted.
  static ReadOutcome Read(Items& items, const Index::Lock& held, const Index::Found& stub);
  // Replaces an item that is to be evicted by a stub. Returns false, and changes nothing, if its
  // value is not on the disk, or there is no room for a stub. REQUIRES: it may be evicted.
  bool Replace(const Index::Lock& held, KeyHash hash, const Index::Found& found);
  // Take note that there is another stub, or one fewer, whose block is of this class; and that one
  // is evicted.
  void NoteMade(uint32_t block_class);
  void NoteGone(uint32_t block_class);
  void NoteEvicted() { evicted_.fetch_add(1, std::memory_order_relaxed); }

  // For TierEvictor. Those with a slot: REQUIRES: the key's lock.
  AheadOfEviction& ahead() { return ahead_; }
  // Whether a tier takes the item's value, and it was not chosen already.
  bool MayBeChosen(Slot slot) const;
  // Returns false if it cannot be written now.
  bool Choose(Slot slot);
  // Asks the thread that writes.
  void AskWriter() const;
  bool too_many() const { return bytes() > budget_ - budget_ / kSpareShare; }
  StubReserve& reserve() { return reserve_; }

 private:
  // The background keeps so much of the stubs' share free.
  static constexpr uint64_t kSpareShare = 64;

  bool MakeOf(const Index::Lock& held, KeyHash hash, const Index::Found& found,
              const TierPlace& place);
  // A stub's name.
  struct Name {
    KeyHash hash{0};
    TierPlace place;
  };
  std::optional<Index::Found> Find(const Index::Lock& held, const Name& stub) const;
  // Returns those that lead to the segment.
  std::vector<Name> ListLeaving(const TierCircle::Segment& segment);
  // Reads a stub's value, and replaces the stub by its item. Returns false if nothing can be read,
  // or there is no room.
  bool BringBack(const Name& stub, TierCircle* circle);
  // Copies key and value of an item that was chosen. Returns nullopt if it changed.
  std::optional<TierRecord> Copy(const AheadOfEviction::Item& item);

  Items& items_;
  const TierOfStore tier_;
  const uint64_t budget_;  // bytes of stubs
  Evictor* evictor_ = nullptr;
  AheadOfEviction ahead_;
  StubReserve reserve_;
  // What NextToWrite returned last.
  std::string key_;
  std::unique_ptr<std::byte[]> value_;

  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> made_{0};
  std::atomic<uint64_t> evicted_{0};
  std::atomic<uint64_t> forgotten_{0};
  std::atomic<uint64_t> brought_back_{0};
  std::atomic<uint64_t> promoted_{0};
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_STUBS_H_
