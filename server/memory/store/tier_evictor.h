#ifndef GANNET_SERVER_MEMORY_STORE_TIER_EVICTOR_H_
#define GANNET_SERVER_MEMORY_STORE_TIER_EVICTOR_H_

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
  // A step in the background. The heap counts as full if `full_bytes` are occupied. Returns whether
  // there is more to do. REQUIRES: no lock is held.
  bool Step(uint64_t full_bytes);

 private:
  // Has values written until as much is written, or will be, as would have to go now if the heap
  // were full a little earlier.
  void ChooseVictims(uint64_t full_bytes);
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
