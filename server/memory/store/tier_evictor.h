#ifndef GANNET_SERVER_MEMORY_STORE_TIER_EVICTOR_H_
#define GANNET_SERVER_MEMORY_STORE_TIER_EVICTOR_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "server/memory/store/item_sampler.h"
#include "server/memory/store/items.h"
#include "server/memory/store/stubs.h"

namespace gannet {

class Store;

// What becomes of values that are on the way to a tier's disk, if that works.
enum class Unwritten : uint8_t { kStays, kGoes };

// What a store with a tier does beside Evictor: has values written before they are evicted, evicts
// those first, and keeps stubs to their share of the memory.
//
// Thread safety: as the store's.
class TierEvictor {
 public:
  // All outlive this. The items have stubs.
  TierEvictor(Store& store, Items& items, const ItemSampler& sampler)
      : store_(store), items_(items), sampler_(sampler), stubs_(*items.stubs()) {}

  // Evicts the item that was written first. Returns false if none could go, or that one is worth
  // more than `worth_max` by now. REQUIRES: no lock is held.
  bool EvictWritten(int32_t worth_max = std::numeric_limits<int32_t>::max());
  // Returns a block for a value that is promoted and has this heat, or nullptr. Nothing goes for it
  // but what is on the disk and worth less. REQUIRES: no lock is held.
  std::byte* RoomForPromoted(uint64_t item_bytes, uint8_t heat, uint64_t full_bytes);
  // Chooses values that are to be written now. The heap counts as full if `full_bytes` are
  // occupied. Returns whether there are any. For the thread that writes. REQUIRES: no lock is held.
  bool ChooseAhead(uint64_t full_bytes);
  // Asks the thread that writes, if much less is written than ChooseAhead would choose.
  void AskIfShort(uint64_t full_bytes) const;
  // Whether the disk takes values, and whether some are on the way there: what is evicted before is
  // lost.
  bool DiskWorks() const { return stubs_.ahead().DiskWorks(); }
  bool SomeAreOnTheWay() const { return stubs_.ahead().SomeAreOnTheWay(); }
  // Returns whether an item is on the way to the disk, perhaps from now on, or as soon as the queue
  // there has room. REQUIRES: its lock.
  bool StaysForDisk(Slot slot);
  // Has some values written for a write that found no block, and no item that could become a stub.
  // It may do so long before the heap is full, if free memory lies in pieces that are too short.
  // REQUIRES: no lock is held.
  void ChooseForWrite();
  // Has those go first whose values are on the disk, as they become stubs, and those last that are
  // on the way there. REQUIRES: a lock of the candidates.
  void Prefer(std::span<ItemSampler::Candidate> candidates) const;
  // A step in the background. `full_bytes` as for ChooseAhead. Returns whether there is more to do.
  // REQUIRES: no lock is held.
  bool Step(uint64_t full_bytes);

 private:
  // So much is to be written, or on the way.
  uint64_t BytesAhead(uint64_t full_bytes) const;
  // Chooses values until so much is written, or will be. Returns how many.
  size_t ChooseVictims(uint64_t bytes);
  bool ChooseColdest(std::span<ItemSampler::Candidate> candidates);
  // Deletes the stub of some whose record will be written over first.
  bool EvictStub();

  Store& store_;
  Items& items_;
  const ItemSampler& sampler_;
  Stubs& stubs_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_TIER_EVICTOR_H_
