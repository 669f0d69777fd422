#ifndef GANNET_SERVER_MEMORY_STORE_STORE_OPTIONS_H_
#define GANNET_SERVER_MEMORY_STORE_STORE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/base/wake_up.h"
#include "server/memory/heap/heap.h"
#include "server/memory/store/item_leases.h"

namespace gannet {

// The tier of a store, as the store knows it: where records may be.
struct TierOfStore {
  uint64_t number = 0;  // random; not 0
  uint64_t segment_bytes = 0;
  uint64_t segments = 0;
  // Asked when there is a value to write; null: nobody is. Outlives the store.
  WakeUp* wanted = nullptr;
};

// What a Store is made with.
struct StoreOptions {
  std::span<std::byte> region;           // page aligned, zero filled; outlives the Store
  std::span<const uint64_t> lock_words;  // changed by the NIC only; the Store loads them
  uint64_t index_slots = 0;              // at the start; 0 = by memory
  uint64_t index_slots_min = 0;          // at the start, whatever the field before says
  // Whether the index is replaced by a larger one when it fills (store_grow.cc).
  bool index_grows = true;
  // Asked by a write, from any thread, when Tidy should be called soon; null: nobody is. Outlives
  // the Store.
  WakeUp* tidy_wanted = nullptr;
  uint64_t incarnation = 0;  // random, not 0
  uint64_t hash_seed = 0;
  uint64_t first_version = 1;                      // common/layout/version.h; not 0
  uint64_t page_bytes = SmallBlocks::PageBytes();  // alignment that the heap needs
  bool evict = false;  // a write that finds no room evicts other items (evictor.h)
  // Where a store that evicts keeps its heats (heat.h); zero filled, outlives the Store. Empty: in
  // memory of its own.
  std::span<std::byte> heats;
  // The items that are leased to clients, which outlives the Store; null: none are. Then the Store
  // needs a clock (UseClock).
  ItemLeases* leases = nullptr;
  // Values that would be evicted may go to this tier (stubs.h). REQUIRES: evict, and that no change
  // is recorded: neither sink nor later evictions.
  std::optional<TierOfStore> tier;
  // The region outlives the process. If a former one left items there, Create takes them over.
  bool memory_file = false;
  uint32_t take_over_threads = 0;  // 0 = by the cores and the size of the index
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_STORE_OPTIONS_H_
