#ifndef GANNET_SERVER_HEAP_HEAP_H_
#define GANNET_SERVER_HEAP_HEAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/layout/size_class.h"

namespace gannet {

class HeapExtents;

// The blocks that items live in: jemalloc over one fixed piece of registered memory. A block of
// class c has exactly SizeClassBytes(c) bytes; jemalloc never writes into the memory it hands out
// and keeps its own metadata outside of it, so freed blocks keep their last (dead) commit word.
//
// Invariants:
// 1. Every block lies inside `memory`; when there is no room Allocate says so.
// 2. Nothing is cached per thread: what is freed can be allocated by any thread at once.
//
// Ownership: `memory` outlives the Heap. Thread safety: all methods, from any thread. A block that
// one thread frees and another allocates is handed over with a happens-before edge (jemalloc's own
// locks). docs/memory-layout.md has the measured fragmentation and the rejected alternatives.
class Heap {
 public:
  // Bytes that its memory must be aligned to: a page of jemalloc, as it was built, or of the
  // system.
  static uint64_t PageBytes();
  // REQUIRES: memory starts on a page. InvalidArgument: less than one page of it.
  // ResourceExhausted: jemalloc has no more arenas (4,095 a process).
  static absl::StatusOr<std::unique_ptr<Heap>> Create(std::span<std::byte> memory);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // 16-byte aligned, contents arbitrary; nullptr: the heap is full.
  // REQUIRES: 1 <= size_class <= kSizeClassMax.
  std::byte* Allocate(uint32_t size_class);
  // REQUIRES: block came from Allocate(size_class).
  void Free(std::byte* block, uint32_t size_class);

  uint64_t capacity_bytes() const { return capacity_bytes_; }
  // Of all blocks in use.
  uint64_t allocated_bytes() const {
    const uint64_t freed = freed_bytes();
    return taken_bytes_.load(std::memory_order_relaxed) - freed;
  }
  // Of all blocks that were ever given back.
  uint64_t freed_bytes() const { return freed_bytes_.load(std::memory_order_relaxed); }
  // Of all pages with a block in use: what is free in them serves blocks of one class only. Asks
  // jemalloc for its statistics, which takes some 10 us.
  uint64_t ActiveBytes() const;

 private:
  explicit Heap(std::span<std::byte> memory);
  absl::Status Open();
  // Makes all of the memory known to the arena, as free extents.
  void Seed();

  const uint64_t capacity_bytes_;
  std::unique_ptr<HeapExtents> extents_;  // outlives the arena
  unsigned arena_ = 0;
  bool open_ = false;
  int flags_ = 0;  // of mallocx: this arena, no thread cache
  // Statistics: ordered with nothing.
  std::atomic<uint64_t> taken_bytes_{0};
  std::atomic<uint64_t> freed_bytes_{0};
};

}  // namespace gannet

#endif  // GANNET_SERVER_HEAP_HEAP_H_
