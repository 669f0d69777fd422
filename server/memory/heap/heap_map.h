#ifndef GANNET_SERVER_MEMORY_HEAP_HEAP_MAP_H_
#define GANNET_SERVER_MEMORY_HEAP_HEAP_MAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"

namespace gannet {

// How jemalloc lays out small blocks of one size: a slab is a run of pages with blocks of that
// size, one behind the other.
struct SlabKind {
  uint32_t block_bytes = 0;
  uint32_t pages = 0;
  uint32_t blocks = 0;
};

// Says which blocks of a heap are in use, for a heap that begins with them (Heap::Create). A former
// process allocated them from a heap of the same size. The map takes a bit for each 16 bytes of the
// heap, a bit for each unit, and two bytes a page.
//
// Thread safety: several threads may call Take and Prefetch. If two of them take blocks that
// exclude each other, one of them gets its block. Call the other methods when these threads are
// done.
class HeapMap {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  explicit HeapMap(uint64_t heap_bytes);

  enum class Taken : uint8_t {
    kNow,         // it was free
    kBefore,      // this block was taken already
    kImpossible,  // no heap can have this block together with the taken ones
  };
  // Takes the block that begins `offset` bytes behind the heap's begin, of an item of `bytes`.
  Taken Take(uint64_t offset, uint64_t bytes);
  // Fetches into the cache what Take needs for a small block.
  void Prefetch(uint64_t offset) const {
    if (offset >= heap_bytes_) return;
    __builtin_prefetch(&pages_[offset / kPageBytes]);
    __builtin_prefetch(&blocks_[offset / kGrain / 64], 1);
  }
  // Takes the block of a table of the index (Heap::AllocateTable).
  Taken TakeTable(uint64_t offset, uint64_t bytes);

  uint64_t heap_bytes() const { return heap_bytes_; }
  // Bytes of the tables that were taken.
  uint64_t table_bytes() const { return table_bytes_; }

  // A slab with taken blocks.
  struct Slab {
    uint64_t offset = 0;
    const SlabKind* kind = nullptr;
  };
  // Returns the first slab at page `offset`, or behind it. Its kind is nullptr if there is none.
  Slab NextSlab(uint64_t offset) const;
  bool InUse(uint64_t offset) const {
    return blocks_[offset / kGrain / 64] >> (offset / kGrain % 64) & 1;
  }
  // The block of a large item, or a table.
  struct Run {
    uint64_t bytes = 0;
    uint32_t size_class = 0;  // kSizeClassNone: a table
  };
  // By offset.
  GANNET_UNCHECKED_LOCKS const absl::flat_hash_map<uint64_t, Run>& runs() const { return runs_; }

 private:
  static constexpr uint64_t kGrain = 16;

  Taken TakeSmall(uint64_t offset, uint32_t kind);
  Taken TakeSlab(uint64_t first_page, uint32_t kind);
  uint16_t PageEntry(uint64_t page) const;
  Taken TakeRun(uint64_t offset, const Run& run);
  bool TakeUnits(uint64_t offset, uint64_t bytes) GANNET_REQUIRES(*mutex_);
  Taken Mark(uint64_t offset);

  const uint64_t heap_bytes_;
  std::vector<SlabKind> kinds_;        // by jemalloc's number of them
  std::vector<uint8_t> kind_of_size_;  // by bytes / 16: kind + 1, or 0
  // While threads take blocks, these two are changed by atomic accesses only. They may be relaxed:
  // an entry is complete by itself, and whoever reads more waits for the threads.
  std::vector<uint64_t> blocks_;  // a bit where a small block begins
  std::vector<uint16_t> pages_;   // stored under the mutex
  // Locked for each slab and each run, not for each block.
  std::unique_ptr<Mutex> mutex_ = std::make_unique<Mutex>();
  std::vector<uint64_t> units_
      GANNET_GUARDED_BY(*mutex_);  // a bit for each unit of a slab or a run
  absl::flat_hash_map<uint64_t, Run> runs_ GANNET_GUARDED_BY(*mutex_);
  uint64_t table_bytes_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_HEAP_HEAP_MAP_H_
