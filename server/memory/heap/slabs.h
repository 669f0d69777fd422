#ifndef GANNET_SERVER_MEMORY_HEAP_SLABS_H_
#define GANNET_SERVER_MEMORY_HEAP_SLABS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/container/btree_set.h"
#include "common/base/align.h"
#include "common/base/mutex.h"
#include "common/layout/size_class.h"
#include "server/memory/heap/run_allocator.h"

namespace gannet {

// Blocks of 129 to 4,096 bytes, in finer steps than the size classes by which clients READ: 16
// steps per doubling (16, 32, 64, 128 bytes). So an item of 1,048 bytes takes 1,088 bytes and
// not 1,280. A client READs as many bytes as the class has. The last of them may be another
// block's, and the item's proof does not cover them. Up to 256 bytes the steps have 16 bytes all
// the same, because slots count them.
//
//   a slab: | block | block | ... | block |     64, 32, 16, 8 or 4 blocks of one length
//
// There are 512 / step blocks, so a slab is 17 to 32 whole units, and no byte is wasted. It is a
// run of RunAllocator, and goes back to that when its last block is freed.
//
// Invariants:
//   1. Of a length's free blocks, Allocate returns the lowest. Compaction relies on that.
//   2. The bytes of a block's class do not reach over the end of the heap.
//
// Offsets are from the heap's begin. Thread safety: all methods may be called from any thread.
class Slabs {
 public:
  static constexpr uint64_t kUnitBytes = 512;
  // Shorter blocks are jemalloc's.
  static constexpr uint64_t kBytesMin = 129;
  static constexpr uint64_t kBytesMax = 4096;

  // `runs` outlives this, and has a unit for each kUnitBytes of the heap.
  Slabs(uint64_t heap_bytes, RunAllocator& runs);
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  // Returns the bytes of the block that fits an item of `bytes`. REQUIRES: kBytesMin <= bytes <=
  // kBytesMax.
  static constexpr uint64_t BlockBytes(uint64_t bytes) {
    return AlignUp(bytes, std::max(StepFor(bytes), kItemAlignment));
  }
  struct Block {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  // Returns a block of BlockBytes(bytes), or none if there is no room.
  std::optional<Block> Allocate(uint64_t bytes);
  // Returns a longer block that clients READ with as many bytes, if a slab has one.
  std::optional<Block> AllocateLonger(uint64_t bytes);
  // Returns the bytes of the block. REQUIRES: it came from here and is not freed.
  uint64_t BytesAt(uint64_t offset) const { return kinds_[SlabOf(offset).kind].bytes; }
  // Returns the bytes that became free.
  uint64_t Free(uint64_t offset);

  // Calls use(bytes of a block, number of blocks in use) for each length.
  template <class Use>
  void ForEachKind(Use use) const {
    for (const Kind& kind : kinds_) use(kind.bytes, kind.blocks.load(std::memory_order_relaxed));
  }

 private:
  // A kind is a length of blocks. Up to 256 bytes there are kinds in steps of 8 bytes, so that all
  // doublings are alike; only every second one is used.
  static constexpr uint32_t kKindsPerDoubling = 16;
  static constexpr uint32_t kKinds = 5 * kKindsPerDoubling;
  static constexpr uint64_t kUnitsPerCell = 16;

  static constexpr uint64_t StepFor(uint64_t bytes) { return std::bit_ceil(bytes) / 32; }
  static constexpr uint32_t KindOf(uint64_t block_bytes) {
    const auto doubling = static_cast<uint32_t>(std::bit_width(block_bytes - 1)) - 8;
    const auto steps = static_cast<uint32_t>(block_bytes / StepFor(block_bytes));
    return kKindsPerDoubling * doubling + steps - (kKindsPerDoubling + 1);
  }
  static constexpr uint64_t BytesOfKind(uint32_t kind) {
    return (kKindsPerDoubling + 1 + kind % kKindsPerDoubling) * 8 << kind / kKindsPerDoubling;
  }

  // A slab is longer than a cell of 16 units, so at most one begins in each.
  struct Cell {
    // 0: no slab begins here. Otherwise (kind + 1) * 16 + its first unit within the cell. Relaxed:
    // whoever asks for a block's slab got the block after that slab's cell was stored. Another
    // slab may come or go in the cell that the block begins in, but it begins behind the block
    // before and after.
    std::atomic<uint16_t> begin;
    uint64_t free;  // bit i: block i is free. Guarded by the kind's mutex
  };
  static_assert(sizeof(Cell) == 16 && std::atomic<uint16_t>::is_always_lock_free);
  // One length of blocks.
  struct Kind {
    uint64_t bytes = 0;
    uint32_t per_slab = 0;
    mutable Mutex mutex;
    // The cells of slabs that have a free block.
    absl::btree_set<uint32_t> with_free GANNET_GUARDED_BY(mutex);
    std::atomic<uint64_t> blocks{0};  // in use. Relaxed: a statistic
  };
  struct Slab {
    uint32_t cell;
    uint32_t kind;
    uint64_t first_unit;
  };
  struct FreeCells {
    void operator()(Cell* cells) const { std::free(cells); }
  };

  Slab SlabOf(uint64_t offset) const;
  bool AddSlab(Kind& kind) GANNET_REQUIRES(kind.mutex);
  // Takes the kind's lowest free block. REQUIRES: there is one.
  Block TakeLowest(Kind& kind) GANNET_REQUIRES(kind.mutex);

  static uint64_t AllFree(const Kind& kind) { return ~uint64_t{0} >> (64 - kind.per_slab); }
  static uint64_t SlabUnits(const Kind& kind) { return kind.bytes * kind.per_slab / kUnitBytes; }

  const uint64_t heap_units_;
  RunAllocator& runs_;
  // From calloc, so that memory whose cells nobody uses takes none.
  std::unique_ptr<Cell[], FreeCells> cells_;
  std::array<Kind, kKinds> kinds_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_HEAP_SLABS_H_
