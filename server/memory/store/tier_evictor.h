#ifndef GANNET_SERVER_MEMORY_STORE_TIER_EVICTOR_H_
#define GANNET_SERVER_MEMORY_STORE_TIER_EVICTOR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "server/memory/store/item_sampler.h"
#include "server/memory/store/items.h"
#include "server/memory/store/stubs.h"

namespace gannet {

class Store;

// What a store with a tier does beside Evictor: has values written before they are evicted, evicts
// those first, and keeps stubs to their share of the memory.
//
// Thread safety: as the store's.
class TierEvictor {
 public:
  // All outlive this. The items have stubs.
  TierEvictor(Store& store, Items& items, const ItemSampler& sampler)
      : store_(store), items_(items), sampler_(sampler), stubs_(*items.stubs()) {}

  // Evicts the item that was written first. Returns false if none could go. REQUIRES: no lock is
  // held.
  bool EvictWritten();
  // Has some values written for a write that found no block, and no item that could become a stub.
  // It may do so long before the heap is full, if free memory lies in pieces that are too short.
  // REQUIRES: no lock is held.
  void ChooseForWrite();
  // Has those go first whose values are on the disk, as they become stubs, and those last that are
  // on the way there. REQUIRES: a lock of the candidates.
  void Prefer(std::span<ItemSampler::Candidate> candidates) const;
  // A step in the background. The heap counts as full if `full_bytes` are occupied. Returns whether
  // there is more to do. REQUIRES: no lock is held.
  bool Step(uint64_t full_bytes);

 private:
  // Has values written until so much is written, or will be; at most `most` more.
  void ChooseVictims(uint64_t bytes, size_t most);
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
