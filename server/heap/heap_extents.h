#ifndef GANNET_SERVER_HEAP_HEAP_EXTENTS_H_
#define GANNET_SERVER_HEAP_HEAP_EXTENTS_H_

#include <jemalloc/jemalloc.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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
  // Hands out nothing any more.
  void Close();
  // Where all of the memory begins.
  std::byte* begin() const { return begin_; }
  // The arena got the memory in pieces, and never has a block in two of them. Returns where the
  // piece ends that `offset` is in, or `offset` if it was not handed out.
  uint64_t PieceEnd(uint64_t offset);

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
  std::byte* const begin_;
  Mutex mutex_;
  std::vector<uint64_t> piece_ends_ GANNET_GUARDED_BY(mutex_);
  std::span<std::byte> rest_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_HEAP_HEAP_EXTENTS_H_
