// Heap: begins with the blocks of a former process.
//
// jemalloc cannot be told which blocks are in use. But it always takes the lowest free memory that
// is long enough. So this allocates, from an empty heap and in the order of addresses, just what is
// in use, and fills the gaps between. What it gets lies where it has to lie, and this checks that.
// Then it frees the gaps. From then on the heap is like any other.

#include <glog/logging.h>
#include <jemalloc/jemalloc.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/heap/heap.h"
#include "server/heap/heap_extents.h"
#include "server/heap/heap_map.h"

namespace gannet {
namespace {

constexpr uint64_t kPage = HeapMap::kPageBytes;

absl::Status Elsewhere(uint64_t offset) {
  return absl::InternalError(absl::StrCat(
      "jemalloc does not give the block at ", offset,
      " of the heap again: start kvserver with the jemalloc, and the MALLOC_CONF, that the memory "
      "file was written with"));
}

// Returns the largest size of a long block that takes at most `bytes` with its padding. REQUIRES:
// `bytes` is enough for one.
uint64_t LongBlockWithin(uint64_t bytes) {
  uint64_t size = bytes - kPage;
  for (uint64_t rounded = nallocx(size, 0); rounded + kPage > bytes; rounded = nallocx(size, 0)) {
    size -= std::max(kPage, size / 16 / kPage * kPage);
  }
  return nallocx(size, 0);
}

}  // namespace

absl::Status Heap::Replay(const HeapMap& map) {
  if (map.heap_bytes() != capacity_bytes_) return absl::InternalError("a map of another heap");
  // What jemalloc did not ask for yet, it would ask for in another order.
  extents_->Close();
  std::vector<void*> fillers;
  uint64_t at = 0;
  absl::Status status;
  for (auto extent = map.Next(0); extent.pages != 0 && status.ok(); extent = map.Next(at)) {
    status = Fill(at, extent.offset, &fillers);
    if (status.ok()) status = Retake(extent);
    at = extent.offset + extent.pages * kPage;
  }
  for (void* filler : fillers) dallocx(filler, flags_);
  GANNET_RETURN_IF_ERROR(status);
  FreeUnused(map);
  taken_bytes_.store(map.item_bytes(), std::memory_order_relaxed);
  table_bytes_.store(map.table_bytes(), std::memory_order_relaxed);
  padding_bytes_.store(map.padding_bytes(), std::memory_order_relaxed);
  MutexLock lock(tables_mutex_);
  for (const uint64_t bytes : map.tables()) tables_.push_back(TableBytes(bytes));
  return absl::OkStatus();
}

// A filler never reaches from one piece of the arena's memory into the next, because jemalloc has
// no such blocks.
absl::Status Heap::Fill(uint64_t begin, uint64_t end, std::vector<void*>* fillers) {
  const std::byte* const memory = extents_->begin();
  while (begin < end) {
    const uint64_t piece_end = std::min(end, extents_->PieceEnd(begin));
    const uint64_t gap = piece_end - begin;
    const bool is_long = gap >= kPaddedBytesMin + kPage;
    const uint64_t bytes = is_long ? LongBlockWithin(gap) : kPage;
    void* const filler = gap == 0 ? nullptr : mallocx(bytes, flags_);
    if (filler == nullptr) return Elsewhere(begin);
    fillers->push_back(filler);
    const uint64_t got = static_cast<std::byte*>(filler) - memory;
    if (got / kPage * kPage != begin) return Elsewhere(begin);
    begin += bytes + (is_long ? kPage : 0);
  }
  return absl::OkStatus();
}

absl::Status Heap::Retake(const HeapMap::Extent& extent) {
  const std::byte* const begin = extents_->begin() + extent.offset;
  const std::byte* const end = begin + extent.pages * kPage;
  const uint64_t bytes =
      extent.slab != nullptr ? extent.slab->block_bytes : (extent.pages - 1) * kPage;
  const uint32_t blocks = extent.slab != nullptr ? extent.slab->blocks : 1;
  for (uint32_t i = 0; i < blocks; ++i) {
    const auto* const block = static_cast<const std::byte*>(mallocx(bytes, flags_));
    if (block < begin || block >= end) return Elsewhere(extent.offset);
  }
  return absl::OkStatus();
}

void Heap::FreeUnused(const HeapMap& map) {
  for (auto extent = map.Next(0); extent.pages != 0;
       extent = map.Next(extent.offset + extent.pages * kPage)) {
    if (extent.slab == nullptr) continue;
    for (uint32_t i = 0; i < extent.slab->blocks; ++i) {
      const uint64_t offset = extent.offset + uint64_t{i} * extent.slab->block_bytes;
      if (!map.InUse(offset))
        sdallocx(extents_->begin() + offset, extent.slab->block_bytes, flags_);
    }
  }
}

}  // namespace gannet
