#ifndef GANNET_SERVER_HEAP_HEAP_H_
#define GANNET_SERVER_HEAP_HEAP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/layout/size_class.h"
#include "server/heap/heap_map.h"

namespace gannet {

class HeapExtents;

// The blocks that items live in: jemalloc over one fixed span of registered memory. A block of
// class c has exactly SizeClassBytes(c) bytes. jemalloc never writes into the memory that it hands
// out, and keeps its own metadata outside of it. So a freed block keeps its last (dead) commit
// word.
//
// Invariants:
//   1. Every block lies inside `memory`. Allocate fails if there is no room.
//   2. Nothing is cached per thread: any thread can allocate at once what another freed.
//
// Ownership: `memory` outlives the Heap. Thread safety: all methods may be called from any thread.
// When one thread frees a block and another allocates it, jemalloc's locks make the first happen
// before the second. docs/memory-layout.md has the measured fragmentation and the rejected
// alternatives.
class Heap {
 public:
  // The alignment that its memory needs: a page of jemalloc as it was built, or of the system.
  static uint64_t PageBytes();
  // A number that differs if jemalloc's version does.
  static uint64_t AllocatorVersion();
  // REQUIRES: memory starts on a page. InvalidArgument: it is less than one page.
  // ResourceExhausted: jemalloc has no more arenas (4,095 per process).
  static absl::StatusOr<std::unique_ptr<Heap>> Create(std::span<std::byte> memory);
  // Begins with the blocks in use that `map` says (heap_replay.cc). Does not touch the memory.
  // Internal: jemalloc does not give just these blocks.
  static absl::StatusOr<std::unique_ptr<Heap>> Create(std::span<std::byte> memory,
                                                      const HeapMap& map);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Returns a 16-byte aligned block with arbitrary contents, or nullptr if the heap is full.
  // REQUIRES: 1 <= size_class <= kSizeClassMax.
  std::byte* Allocate(uint32_t size_class);
  // REQUIRES: block came from Allocate(size_class).
  void Free(std::byte* block, uint32_t size_class);

  // Blocks for tables of the index, kTableAlignment aligned. They are not counted as blocks in use.
  // TableBytes returns the least bytes, `bytes` or more, of a block that wastes nothing.
  static constexpr uint64_t kTableAlignment = 128;
  // jemalloc adds a page to blocks of this size and more.
  static constexpr uint64_t kPaddedBytesMin = 16 * 1024;
  uint64_t TableBytes(uint64_t bytes) const;
  std::byte* AllocateTable(uint64_t bytes);
  void FreeTable(std::byte* block, uint64_t bytes);
  uint64_t table_bytes() const { return table_bytes_.load(std::memory_order_relaxed); }

  uint64_t capacity_bytes() const { return capacity_bytes_; }
  // Bytes of all blocks in use.
  uint64_t allocated_bytes() const {
    const uint64_t freed = freed_bytes();
    return taken_bytes_.load(std::memory_order_relaxed) - freed;
  }
  // Bytes of all blocks in use, of tables, and of what jemalloc adds to long blocks.
  uint64_t occupied_bytes() const {
    return allocated_bytes() + table_bytes() + padding_bytes_.load(std::memory_order_relaxed);
  }
  // Bytes of all blocks that were ever freed.
  uint64_t freed_bytes() const { return freed_bytes_.load(std::memory_order_relaxed); }
  // Bytes of all pages with a block in use. Free memory in such a page serves blocks of one class
  // only. Asks jemalloc for its statistics, which takes some 10 us.
  uint64_t ActiveBytes() const;
  // Returns how many blocks of each class are in use. Asks jemalloc, so that counting costs
  // nothing.
  std::array<uint64_t, kSizeClassMax + 1> BlocksByClass() const;

 private:
  explicit Heap(std::span<std::byte> memory);
  absl::Status Open();
  // Gives all of the memory to the arena, as free extents.
  void Seed();
  absl::Status Replay(const HeapMap& map);
  // Allocates all of [begin, end).
  absl::Status Fill(uint64_t begin, uint64_t end, std::vector<void*>* fillers);
  // Allocates all blocks of an extent.
  absl::Status Retake(const HeapMap::Extent& extent);
  void FreeUnused(const HeapMap& map);

  const uint64_t capacity_bytes_;
  std::unique_ptr<HeapExtents> extents_;  // outlives the arena
  unsigned arena_ = 0;
  bool open_ = false;
  int flags_ = 0;  // for mallocx: this arena, no thread cache
  // Statistics. Relaxed: no other memory depends on them.
  std::atomic<uint64_t> taken_bytes_{0};
  std::atomic<uint64_t> freed_bytes_{0};
  std::atomic<uint64_t> table_bytes_{0};
  std::atomic<uint64_t> padding_bytes_{0};
  // The sizes of tables, which jemalloc counts as blocks like any other. There are two or three.
  mutable Mutex tables_mutex_;
  std::vector<uint64_t> tables_ GANNET_GUARDED_BY(tables_mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_HEAP_HEAP_H_
