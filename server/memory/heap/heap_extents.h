#ifndef GANNET_SERVER_MEMORY_HEAP_HEAP_EXTENTS_H_
#define GANNET_SERVER_MEMORY_HEAP_HEAP_EXTENTS_H_

#include <jemalloc/jemalloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/memory/heap/run_allocator.h"

namespace gannet {

// The extent hooks through which a jemalloc arena gets its memory: runs of whole pages. Freed runs
// go back at once, for other sizes. Splitting and merging costs nothing. The arena never decommits
// or purges memory, because the memory is registered with the NIC.
//
// It serves slabs (of small blocks) only. When it can, jemalloc asks for much more than it needs. A
// request for more than a slab is refused, and then jemalloc asks for a slab.
//
// Thread safety: jemalloc calls the hooks from any thread.
class HeapExtents {
 public:
  // `runs` outlives this, and has a unit for each `unit_bytes` of the memory at `begin`.
  HeapExtents(std::byte* begin, uint64_t unit_bytes, RunAllocator& runs);
  HeapExtents(const HeapExtents&) = delete;
  HeapExtents& operator=(const HeapExtents&) = delete;

  extent_hooks_t* hooks() { return &hooks_.table; }
  // Sets where the next extent begins. If it cannot begin there, it is refused.
  void PlaceNext(uint64_t offset) { placed_.store(offset, std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kNotPlaced = UINT64_MAX;
  // jemalloc passes the table's address to each hook. The hook finds the owner behind the table.
  struct Hooks {
    extent_hooks_t table;
    HeapExtents* owner;
  };
  static HeapExtents* OwnerOf(extent_hooks_t* hooks) {
    return reinterpret_cast<Hooks*>(hooks)->owner;
  }
  static void* Alloc(extent_hooks_t* hooks, void* address, size_t size, size_t alignment,
                     bool* zero, bool* commit, unsigned arena);
  static bool Dalloc(extent_hooks_t* hooks, void* address, size_t size, bool committed,
                     unsigned arena);
  static void Destroy(extent_hooks_t* hooks, void* address, size_t size, bool committed,
                      unsigned arena);
  void* Take(size_t size, size_t alignment);
  void Free(void* address, size_t size);

  Hooks hooks_;
  std::byte* const begin_;
  const uint64_t unit_bytes_;
  const uint64_t bytes_max_;  // of an extent
  RunAllocator& runs_;
  // Relaxed: only the thread that creates a heap sets it, and no other thread uses that heap yet.
  std::atomic<uint64_t> placed_{kNotPlaced};
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_HEAP_HEAP_EXTENTS_H_
