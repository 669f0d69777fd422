#ifndef GANNET_SERVER_MEMORY_HEAP_HEAP_H_
#define GANNET_SERVER_MEMORY_HEAP_HEAP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/align.h"
#include "common/base/mutex.h"
#include "common/layout/size_class.h"
#include "server/memory/heap/heap_map.h"
#include "server/memory/heap/heap_use.h"
#include "server/memory/heap/run_allocator.h"
#include "server/memory/heap/single_runs.h"
#include "server/memory/heap/slabs.h"
#include "server/memory/heap/small_blocks.h"

namespace gannet {

// The blocks that items live in, over one fixed span of registered memory. The memory is handed out
// as runs of units (RunAllocator).
//
// - A large item's block is a run of its own, as long as the item.
// - A sealed item's block lies in a slab: a run of blocks of one length. Up to 128 bytes jemalloc
// divides slabs into blocks of the item's size class. Longer blocks come from Slabs, in finer
// steps. (Or the block is what is left of a large item's block: Shrink.)
// - A heap that begins with a former process's blocks (HeapMap), or that a later process shall take
// over, has blocks of size classes only: an item's bytes and place must tell its block.
//
// Nobody writes into memory that is handed out, and all records of it lie elsewhere. So a freed
// block keeps its last (dead) commit word.
//
// Invariants:
//   1. Every block lies inside `memory`, and so do SizeClassBytes(its class) bytes from its begin.
//      Allocate fails if there is no room.
//   2. Nothing is cached per thread: any thread can allocate at once what another freed. A run
//      whose
//      blocks are all free serves any size.
//
// Ownership: `memory` outlives the Heap. Thread safety: all methods may be called from any thread.
// When one thread frees a block and another allocates it, the locks of jemalloc and RunAllocator
// make the first happen before the second. docs/memory.md has the measured fragmentation and
// the rejected alternatives.
class Heap {
 public:
  static constexpr uint64_t kUnitBytes = Slabs::kUnitBytes;

  // If there is a map, begins with the blocks in use that it says, and has no finer blocks than
  // size classes. Does not touch the memory.
  //   InvalidArgument: the memory is less than one page.
  //   ResourceExhausted: jemalloc has no more arenas (4,095 per process).
  //   Internal: jemalloc does not give exactly these blocks.
  // REQUIRES: it starts on a page (SmallBlocks::PageBytes).
  static absl::StatusOr<std::unique_ptr<Heap>> Create(std::span<std::byte> memory,
                                                      const HeapMap* map = nullptr);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Returns the most bytes that the block of an item of `bytes` has: those of its size class, or of
  // its run.
  static constexpr uint64_t BlockBytes(uint64_t bytes) {
    const uint32_t size_class = SizeClassFor(bytes);
    return IsLargeClass(size_class) ? AlignUp(bytes, kUnitBytes) : SizeClassBytes(size_class);
  }
  // Returns a 16-byte aligned block for an item of `bytes` with arbitrary contents, or nullptr if
  // the heap is full. REQUIRES: there is a size class for so many bytes.
  std::byte* Allocate(uint64_t bytes);
  // As Allocate, for a sealed item: never a longer block than SealedBlockBytes(bytes).
  std::byte* AllocateTight(uint64_t bytes);
  // Returns the bytes of the block that fits a sealed item of `bytes` best.
  uint64_t SealedBlockBytes(uint64_t bytes) const {
    return IsFine(bytes) ? Slabs::BlockBytes(bytes) : SizeClassBytes(SizeClassFor(bytes));
  }
  // From now on Allocate and AllocateTable leave this much of the memory without a run: they fail
  // as if the heap were full. The others, which move items, use it.
  void KeepFree(uint64_t bytes) {
    runs_.KeepFree(bytes / kUnitBytes);
    kept_bytes_.store(bytes, std::memory_order_relaxed);
  }
  // Returns where the block of an item of `bytes` may begin if there is no other item: how far
  // behind the heap's begin. Returns nullopt if it does not fit then either. Of the tables only the
  // newest one stays.
  std::optional<uint64_t> PlaceAlone(uint64_t bytes) const;
  // As Allocate, for a large item: the block begins below `end`, and may be memory that KeepFree
  // keeps. nullptr: just as Allocate.
  std::byte* AllocateBelow(uint64_t bytes, const std::byte* end);
  // REQUIRES: the block came from Allocate(bytes), with a number of bytes of this class.
  void Free(std::byte* block, uint32_t size_class);

  // Returns how long an item may be in this sealed item's block.
  uint64_t SealedRoomAt(const std::byte* block, uint32_t size_class) const {
    const uint64_t bytes = SizeClassBytes(size_class);
    if (!IsFine(bytes) || IsSingle(block)) return bytes;
    return slabs_->BytesAt(static_cast<uint64_t>(block - begin_));
  }
  // Returns the bytes of a large item's block.
  uint64_t RoomAt(const std::byte* block) const;
  // Turns a large item's block into the block of an item of `bytes` that begins there now, and
  // frees the rest. That item may be large or sealed. A sealed item's block is then a run of its
  // own, and in no slab. REQUIRES: BlockBytes(bytes) <= RoomAt(block); nobody needs the rest.
  void Shrink(std::byte* block, uint32_t old_class, uint64_t bytes);
  // Returns a block as Shrink leaves it, for a sealed item of this class, which begins below `end`;
  // or nullptr.
  std::byte* AllocateSingleBelow(uint32_t size_class, const std::byte* end);
  // Returns whether a sealed item's block is a run of its own.
  bool IsSingle(const std::byte* block) const;

  // Returns `bytes` of memory that is made of whole runs. It begins with the run `offset` bytes
  // behind the heap's begin, or with the free memory before that run, and goes on over the runs and
  // the free memory behind. It is shorter where the heap ends, and empty if a table is in it.
  std::span<std::byte> WholeRuns(uint64_t offset, uint64_t bytes) const;

  // Takes the free memory in `memory`, so that nobody else gets it, and adds the pieces to
  // `claims`. Their bytes are not counted as in use. REQUIRES: `memory` is whole runs.
  using Claims = std::vector<std::span<std::byte>>;
  void ClaimFree(std::span<std::byte> memory, Claims* claims);
  // Gives the pieces back, and leaves `claims` empty.
  void GiveBack(Claims* claims);

  // Blocks for tables of the index, at multiples of kUnitBytes. They are not counted as blocks in
  // use. TableBytes returns the shortest block of at least `bytes` that wastes nothing.
  static constexpr uint64_t TableBytes(uint64_t bytes) { return AlignUp(bytes, kUnitBytes); }
  std::byte* AllocateTable(uint64_t bytes);
  void FreeTable(std::byte* block, uint64_t bytes);

  uint64_t capacity_bytes() const { return capacity_bytes_; }
  // What KeepFree named.
  uint64_t kept_bytes() const { return kept_bytes_.load(std::memory_order_relaxed); }
  const HeapUse& use() const { return use_; }
  // Bytes of all runs in use. Free memory in a slab serves blocks of one class only.
  uint64_t ActiveBytes() const { return capacity_bytes_ - runs_.free_units() * kUnitBytes; }
  // The blocks in use of each class. Takes some 10 us, because it asks jemalloc for its statistics.
  // So counting small blocks costs nothing.
  std::array<HeapUse::OfClass, kSizeClassMax + 1> UseByClass() const;

 private:
  // `fine`: whether there are finer blocks than size classes.
  Heap(std::span<std::byte> memory, bool fine);
  absl::Status Replay(const HeapMap& map);
  // Counts the block, and returns its address.
  std::byte* Count(const std::optional<Slabs::Block>& block);
  // Returns whether a sealed item of `bytes`, or of a class of `bytes`, has its block in slabs_.
  bool IsFine(uint64_t bytes) const { return slabs_ != nullptr && bytes >= Slabs::kBytesMin; }
  void FreeRun(uint64_t first_unit, uint32_t size_class);
  uint64_t UnitOf(const std::byte* block) const {
    return static_cast<uint64_t>(block - begin_) / kUnitBytes;
  }
  std::byte* const begin_;
  const uint64_t capacity_bytes_;
  RunAllocator runs_;
  const std::unique_ptr<Slabs> slabs_;  // nullptr: there are no finer blocks than size classes
  std::unique_ptr<SmallBlocks> small_;
  HeapUse use_;
  SingleRuns singles_;
  std::atomic<uint64_t> kept_bytes_{0};  // relaxed
  // The first units of tables. There are two or three.
  mutable Mutex tables_mutex_;
  std::vector<uint64_t> tables_ GANNET_GUARDED_BY(tables_mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_HEAP_HEAP_H_
