#ifndef GANNET_SERVER_MEMORY_STORE_SPAN_CLEARER_H_
#define GANNET_SERVER_MEMORY_STORE_SPAN_CLEARER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "server/memory/index/index.h"
#include "server/memory/store/compactor.h"
#include "server/memory/store/eviction.h"
#include "server/memory/store/items.h"
#include "server/memory/store/tier_evictor.h"

namespace gannet {

class Store;

// Clears spans of the heap: each item of one is moved elsewhere, or else evicted. So memory becomes
// free in one piece.
//
// Thread safety: as the store's. REQUIRES, in all methods: no lock is held.
class SpanClearer {
 public:
  // All outlive it. `tier` is nullptr if the store has none.
  SpanClearer(Store& store, Items& items, Compactor& compactor, TierEvictor* tier)
      : store_(store),
        items_(items),
        compactor_(compactor),
        state_(*items.eviction()),
        tier_(tier) {}

  // Returns the coldest of some spans that are long enough for a block. If there is nothing in any
  // of them that may go, or all are too short, returns one where the block fits if all goes; an
  // empty one if there is none.
  std::span<std::byte> Coldest(uint64_t item_bytes) const;
  // Returns how many items stay as they are unwritten. REQUIRES: what is free in it is claimed, so
  // that nothing is moved there.
  uint32_t Clear(std::span<std::byte> memory, Unwritten unwritten) {
    return ClearPart(memory, memory, unwritten);
  }
  // Does the same with what begins in `part` of the span.
  uint32_t ClearPart(std::span<std::byte> memory, std::span<std::byte> part, Unwritten unwritten);
  // Clears the coldest span for a block.
  void ClearFor(uint64_t item_bytes);

 private:
  // Blocks of the span that were free, and are kept from others until it is clear.
  struct Cleared {
    static constexpr size_t kKeptMax = 256;
    const std::byte* begin;
    const std::byte* end;
    Unwritten unwritten;
    uint32_t kept = 0;
    std::array<std::byte*, kKeptMax> blocks{};
    std::array<uint8_t, kKeptMax> classes{};
    uint32_t stay = 0;  // items, as they are unwritten
  };

  void ClearItemAt(uint64_t offset, Cleared* span);
  // `held` is the lock of the item's home.
  void ClearItem(const Index::Lock& held, const Index::Found& found, Cleared* span);

  Store& store_;  // deletes what is evicted: Store::Evict
  Items& items_;
  Compactor& compactor_;
  Eviction& state_;
  TierEvictor* const tier_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_SPAN_CLEARER_H_
