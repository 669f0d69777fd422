#ifndef GANNET_SERVER_HEAP_HEAP_EXTENTS_H_
#define GANNET_SERVER_HEAP_HEAP_EXTENTS_H_

#include <jemalloc/jemalloc.h>

#include <cstddef>
#include <span>

#include "common/base/mutex.h"

namespace gannet {

// The extent hooks through which a jemalloc arena gets its memory: a bump pointer over one fixed
// span. The arena keeps for ever what it got (deallocation is refused), and splits and merges it
// for free. It never decommits or purges memory, because the memory is registered with the NIC.
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
  // jemalloc passes the table's address to each hook, which finds the owner behind it.
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
