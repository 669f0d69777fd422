#ifndef GANNET_SERVER_MEMORY_STORE_COMPACTOR_H_
#define GANNET_SERVER_MEMORY_STORE_COMPACTOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/layout/size_class.h"
#include "common/layout/slot.h"
#include "server/memory/index/index.h"
#include "server/memory/store/items.h"

namespace gannet {

// Moves items of a store to free blocks at lower addresses, so that free memory comes together at
// higher ones. Works in rounds over all homes. An item keeps its version when it moves.
//
// Thread safety: as the store's.
class Compactor {
 public:
  explicit Compactor(Items& items) : items_(items) {}  // they outlive it

  // A bounded step of a round, if one is worthwhile. Returns whether there is more to do at once.
  bool Step();
  // A step for a write that found no room. Returns whether anything moved.
  bool MakeRoom();
  // Asks for a round.
  void Want() { wanted_.store(true, std::memory_order_relaxed); }
  // Looks at the next `homes` homes. Returns how many items moved.
  size_t Compact(size_t homes);
  // Moves an item to a block that the caller allocated. `held`: the lock of the item's home.
  void Move(const Index::Lock& held, const Index::Found& found, std::byte* to,
            uint32_t block_class);
  // Takes note that a block has so many bytes to spare, because a shorter item was written into it.
  void NoteOversized(uint64_t bytes) {
    oversized_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  uint64_t items_moved() const { return items_moved_.load(std::memory_order_relaxed); }

 private:
  // What a step has learned: by the bytes of a block / 16, the address below which none is free.
  using Holes = std::array<const std::byte*, SizeClassBytes(kSealedClassMax) / kItemAlignment + 1>;

  uint64_t FreedSinceRound() const;
  bool FragmentedWhenIdle() const;
  bool InRound() const;
  bool BeginRound();
  // Returns how many moved. Sets `*again` if it must be called again for this home.
  size_t CompactHome(IndexTable& table, uint64_t home, Holes* holes, bool* again);
  // These three return how many bytes were moved, or 0 if the item stays.
  uint64_t MoveDown(const Index::Lock& held, const Index::Found& found, Holes* holes);
  uint64_t MoveLargeDown(const Index::Lock& held, const Index::Found& found);
  uint64_t MoveSingle(const Index::Lock& held, const Index::Found& found, Holes* holes);
  // Moves the item to a block of `block_bytes`, and says in its slot that it is of `size_class`.
  struct Target {
    uint64_t block_bytes;
    uint32_t size_class;
    const std::byte* end;  // the block begins below
  };
  bool MoveBelow(const Index::Lock& held, const Index::Found& found, const Target& to,
                 Holes* holes);
  // Returns where the item would be in a block that fits it best, anywhere.
  Target BestFit(const Index::Found& found) const;
  // Copies the item to another block, where it is dead, and returns its live commit word there.
  uint64_t CopyItem(Slot slot, std::byte* to);

  Items& items_;
  // All are relaxed: positions to go on from, hints, and statistics.
  std::atomic<uint64_t> position_{0};        // homes looked at so far, round after round
  std::atomic<uint64_t> until_{0};           // where this round ends
  std::atomic<uint64_t> freed_at_round_{0};  // bytes, before this round
  std::atomic<bool> wanted_{false};
  std::atomic<uint64_t> oversized_bytes_{0};
  std::atomic<uint64_t> items_moved_{0};
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_COMPACTOR_H_
