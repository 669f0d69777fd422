#ifndef GANNET_SERVER_MEMORY_HEAP_SMALL_BLOCKS_H_
#define GANNET_SERVER_MEMORY_HEAP_SMALL_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/memory/heap/heap_map.h"
#include "server/memory/heap/run_allocator.h"

namespace gannet {

class HeapExtents;

// The blocks of a heap that jemalloc hands out, from slabs. It is an arena of its own, whose slabs
// are runs of the heap, and which keeps all that it knows elsewhere.
//
// Thread safety: all methods, from any thread, but Retake and FreeUnused before others use it.
class SmallBlocks {
 public:
  // Returns the alignment that the memory needs: a page of jemalloc as it was built, or of the
  // system.
  static uint64_t PageBytes();
  // Returns a number that differs between versions of jemalloc.
  static uint64_t AllocatorVersion();
  // `runs`, which outlives it, has a unit for each `unit_bytes` of the memory at `begin`.
  // ResourceExhausted: jemalloc has no more arenas (4,095 per process).
  static absl::StatusOr<std::unique_ptr<SmallBlocks>> Create(std::byte* begin, uint64_t unit_bytes,
                                                             RunAllocator& runs);
  ~SmallBlocks();
  SmallBlocks(const SmallBlocks&) = delete;
  SmallBlocks& operator=(const SmallBlocks&) = delete;

  // Returns nullptr if there is no memory. REQUIRES: a size class has so many bytes.
  std::byte* Allocate(uint64_t bytes);
  void Free(std::byte* block, uint64_t bytes);

  // Begins with the slabs of a former process. Internal: jemalloc does not give exactly these
  // blocks. Returns the bytes of all blocks in use.
  absl::StatusOr<uint64_t> Replay(const HeapMap& map);
  // Gives the length of each kind of blocks, and how many are in use. Takes some 10 us.
  void ForEachKind(absl::FunctionRef<void(uint64_t bytes, uint64_t blocks)> visit) const;

 private:
  SmallBlocks(std::byte* begin, uint64_t unit_bytes, RunAllocator& runs);
  absl::Status MakeArena();
  // Allocates all blocks of a slab.
  absl::Status Retake(const HeapMap::Slab& slab);
  // Frees those blocks that are not in use. Returns the bytes of the others.
  uint64_t FreeUnused(const HeapMap& map);

  std::byte* const begin_;
  const std::unique_ptr<HeapExtents> extents_;  // outlives the arena
  unsigned arena_ = 0;
  bool open_ = false;
  int flags_ = 0;  // for mallocx: this arena, no thread cache
};

// Returns the error for a block of a former process that the heap cannot have.
absl::Status BlockIsElsewhere(uint64_t offset);

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_HEAP_SMALL_BLOCKS_H_
