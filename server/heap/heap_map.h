#ifndef GANNET_SERVER_HEAP_HEAP_MAP_H_
#define GANNET_SERVER_HEAP_HEAP_MAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gannet {

// How jemalloc lays out small blocks of one size: a slab is a run of pages with blocks of that
// size, one behind the other.
struct SlabKind {
  uint32_t block_bytes = 0;
  uint32_t pages = 0;
  uint32_t blocks = 0;
};

// Which blocks of a heap are in use, for a heap that begins with them (Heap::Create). A former
// process allocated them from a heap of the same size. It takes a bit for each 16 bytes of the
// heap, and two bytes a page.
//
// Thread safety: none.
class HeapMap {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  explicit HeapMap(uint64_t heap_bytes);

  enum class Taken : uint8_t {
    kNow,         // it was free
    kBefore,      // this very block was taken already
    kImpossible,  // no heap has such a block together with those that were taken
  };
  // Takes the block that begins `offset` bytes behind the heap's begin. `bytes` is what jemalloc
  // allocates for the block: that of a size class.
  Taken Take(uint64_t offset, uint64_t bytes);
  // Takes the block of a table of the index (Heap::AllocateTable).
  Taken TakeTable(uint64_t offset, uint64_t bytes);

  uint64_t heap_bytes() const { return heap_bytes_; }
  // Of the blocks that were taken: those of items, those of tables as they were asked for, and what
  // jemalloc adds to long blocks.
  uint64_t item_bytes() const { return item_bytes_; }
  uint64_t table_bytes() const { return table_bytes_; }
  uint64_t padding_bytes() const { return padding_bytes_; }
  // The bytes of each table.
  const std::vector<uint64_t>& tables() const { return tables_; }

  // A slab with taken blocks, or one long block.
  struct Extent {
    uint64_t offset = 0;
    uint64_t pages = 0;
    const SlabKind* slab = nullptr;  // nullptr: a long block
  };
  // Returns the first extent at `offset`, which is a page, or behind. It has no pages if there is
  // none.
  Extent Next(uint64_t offset) const;
  bool InUse(uint64_t offset) const {
    return blocks_[offset / kUnit / 64] >> (offset / kUnit % 64) & 1;
  }

 private:
  static constexpr uint64_t kUnit = 16;

  Taken TakeIn(uint64_t first_page, uint32_t kind);
  Taken TakeSmall(uint64_t offset, uint32_t kind);
  Taken TakeLong(uint64_t offset, uint64_t bytes);
  Taken Mark(uint64_t offset);

  const uint64_t heap_bytes_;
  std::vector<SlabKind> kinds_;        // by jemalloc's number of them
  std::vector<uint8_t> kind_of_size_;  // by bytes / 16: kind + 1, or 0
  std::vector<uint64_t> blocks_;       // a bit where a block begins
  std::vector<uint16_t> pages_;
  uint64_t item_bytes_ = 0;
  uint64_t table_bytes_ = 0;
  std::vector<uint64_t> tables_;
  uint64_t padding_bytes_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_HEAP_HEAP_MAP_H_
