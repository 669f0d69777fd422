#ifndef GANNET_SERVER_MEMORY_STORE_HEAT_H_
#define GANNET_SERVER_MEMORY_STORE_HEAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/layout/size_class.h"

namespace gannet {

// How much each item was used of late: one byte for every 64 bytes of the region, in memory of its
// own. Clients may READ it (kHeats), but nobody else writes it. The byte where an item's block
// begins is the item's heat.
//
// A heat is a logarithm: kUnitsPerDoubling units more mean twice as many uses. All heats cool by
// one unit at a time, so a use counts half as much after kUnitsPerDoubling coolings. 0 means that
// no item begins there. An item's heat never cools to 0.
//
// The smallest blocks of items have 48 bytes, so two of them may share a byte.
//
// Thread safety: all methods may be called from any thread. Accesses are relaxed, and a change that
// meets another one may be lost: heats are estimates, and nothing else depends on them.
class Heat {
 public:
  static constexpr uint64_t kGranuleBytes = 64;
  static constexpr uint32_t kUnitsPerDoubling = 8;
  static constexpr uint8_t kNone = 0;
  static constexpr uint8_t kLeast = 1;      // of an item that nobody uses
  static constexpr uint8_t kUsedOnce = 96;  // of an item with one use, just now
  // No more counts: of 32 uses. So an item that was used much, and is not any more, goes in time.
  static constexpr uint8_t kMost = kUsedOnce + 5 * kUnitsPerDoubling;
  // The most uses that one Add counts.
  static constexpr uint32_t kUsesMax = 255;

  // `memory`: where the heats are; zero filled, aligned to words, at least BytesFor(region_bytes),
  // and it outlives this. Empty: in memory of their own.
  explicit Heat(uint64_t region_bytes, std::span<std::byte> memory = {});
  static uint64_t BytesFor(uint64_t region_bytes);

  // REQUIRES, in these three: the offset is inside the region.
  uint8_t Get(uint64_t offset) const { return __atomic_load_n(At(offset), __ATOMIC_RELAXED); }
  void Set(uint64_t offset, uint8_t heat) { __atomic_store_n(At(offset), heat, __ATOMIC_RELAXED); }
  // Counts uses of the item that begins at `offset`. Does nothing if none begins there. `random`
  // decides how the result is rounded.
  void Add(uint64_t offset, uint32_t uses, uint32_t random) {
    Set(offset, After(Get(offset), uses, random));
  }
  // Returns the heat after so many more uses.
  uint8_t After(uint8_t heat, uint32_t uses, uint32_t random) const;

  // Returns the first offset in [offset, end) at which an item may begin, rounded down to
  // kGranuleBytes. Returns `end` if there is none.
  uint64_t NextUsed(uint64_t offset, uint64_t end) const;
  // Returns the uses of all items that begin in [offset, end), as they count now, times 4096.
  uint64_t SumOfUses(uint64_t offset, uint64_t end) const;

  // Cools the next `words` words, in a circle. A word has the heats of 512 bytes of the region.
  void Cool(uint64_t words);
  uint64_t words() const { return words_.size(); }
  uint64_t bytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  const uint8_t* At(uint64_t offset) const {
    return reinterpret_cast<const uint8_t*>(words_.data()) + offset / kGranuleBytes;
  }
  uint8_t* At(uint64_t offset) {
    return reinterpret_cast<uint8_t*>(words_.data()) + offset / kGranuleBytes;
  }

  std::vector<uint64_t> own_;
  const std::span<uint64_t> words_;
  uint64_t cool_position_ = 0;  // only for the thread that cools
  // after_[i][heat]: the heat after 2^i more uses, times 256.
  std::array<std::array<uint16_t, 256>, 8> after_;
  std::array<uint32_t, 256> uses_;  // of a heat, times 4096
};

// Cools eight heats by one unit each. None goes from more than `least` to less than that.
uint64_t Cooled(uint64_t heats, uint8_t least);

// How much an item is worth to keep: evict the one with the lowest worth. It is the logarithm of
// uses / bytes of the block ^ 0.75 (docs/memory.md).
int32_t WorthOf(uint8_t heat, uint32_t size_class);

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_HEAT_H_
