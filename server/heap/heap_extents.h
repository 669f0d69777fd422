#ifndef GANNET_SERVER_HEAP_HEAP_EXTENTS_H_
#define GANNET_SERVER_HEAP_HEAP_EXTENTS_H_

#include <jemalloc/jemalloc.h>

#include <cstddef>
#include <span>

#include "common/base/mutex.h"

namespace gannet {

// The extent hooks through which a jemalloc arena gets its memory: a bump pointer over one fixed
// span. What the arena once got it keeps for ever (deallocation is refused), splits and merges for
// free, and is never decommitted or purged: the memory is registered with the NIC.
//
// Thread safety: jemalloc calls the hooks from any thread.
class HeapExtents {
 public:
  explicit HeapExtents(std::span<std::byte> memory);
  HeapExtents(const HeapExtents&) = delete;
  HeapExtents& operator=(const HeapExtents&) = delete;

  extent_hooks_t* hooks() { return &hooks_.table; }
  // Bytes not handed out yet.
  size_t remaining();

 private:
  // jemalloc hands the table's address back to each hook; it leads to the owner.
  struct Hooks {
    extent_hooks_t table;
    HeapExtents* owner;
  };
  static void* Alloc(extent_hooks_t* hooks, void* address, size_t size, size_t alignment,
                     bool* zero, bool* commit, unsigned arena);
  void* Take(void* address, size_t size, size_t alignment);

  Hooks hooks_;
  Mutex mutex_;
  std::span<std::byte> rest_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_HEAP_HEAP_EXTENTS_H_
