// Heap: begins with the blocks of a former process.
//
// A run is taken where it was. jemalloc cannot be told which small blocks are in use. But it takes
// a new slab when it has no free block of a size, and HeapExtents tells it where that begins. So
// this allocates all blocks of each slab, one slab after the other, and then frees those that were
// free. From then on the heap is like any other.

#include <glog/logging.h>
#include <jemalloc/jemalloc.h>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/heap/heap.h"
#include "server/heap/heap_extents.h"
#include "server/heap/heap_map.h"

namespace gannet {
namespace {

absl::Status Elsewhere(uint64_t offset) {
  return absl::InternalError(absl::StrCat(
      "jemalloc does not give the block at ", offset,
      " of the heap again: start kvserver with the jemalloc, and the MALLOC_CONF, that the memory "
      "file was written with"));
}

}  // namespace

absl::Status Heap::Replay(const HeapMap& map) {
  if (map.heap_bytes() != capacity_bytes_) return absl::InternalError("a map of another heap");
  for (const auto& [offset, run] : map.runs()) {
    if (!runs_.TakeAt(offset / kUnitBytes, run.bytes / kUnitBytes)) return Elsewhere(offset);
    if (run.size_class != kSizeClassNone) {
      CountRun(run.size_class, run.bytes);
    } else {
      MutexLock lock(tables_mutex_);
      tables_.push_back(offset / kUnitBytes);
    }
  }
  for (auto slab = map.NextSlab(0); slab.kind != nullptr;
       slab = map.NextSlab(slab.offset + slab.kind->pages * HeapMap::kPageBytes)) {
    GANNET_RETURN_IF_ERROR(Retake(slab));
  }
  FreeUnused(map);
  table_bytes_.store(map.table_bytes(), std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Heap::Retake(const HeapMap::Slab& slab) {
  const std::byte* const begin = begin_ + slab.offset;
  const std::byte* const end = begin + slab.kind->pages * HeapMap::kPageBytes;
  extents_->PlaceNext(slab.offset);
  for (uint32_t i = 0; i < slab.kind->blocks; ++i) {
    const auto* const block =
        static_cast<const std::byte*>(mallocx(slab.kind->block_bytes, flags_));
    if (block < begin || block >= end) return Elsewhere(slab.offset);
  }
  return absl::OkStatus();
}

void Heap::FreeUnused(const HeapMap& map) {
  uint64_t used = 0;
  for (auto slab = map.NextSlab(0); slab.kind != nullptr;
       slab = map.NextSlab(slab.offset + slab.kind->pages * HeapMap::kPageBytes)) {
    for (uint32_t i = 0; i < slab.kind->blocks; ++i) {
      const uint64_t offset = slab.offset + uint64_t{i} * slab.kind->block_bytes;
      if (map.InUse(offset)) {
        used += slab.kind->block_bytes;
      } else {
        sdallocx(begin_ + offset, slab.kind->block_bytes, flags_);
      }
    }
  }
  taken_bytes_.fetch_add(used, std::memory_order_relaxed);
}

}  // namespace gannet
