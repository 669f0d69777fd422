#include "server/memory/heap/heap_extents.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/memory/heap/jemalloc_control.h"

namespace gannet {
namespace {

// In jemalloc's convention true means refused.
bool RefuseRange(extent_hooks_t*, void*, size_t, size_t, size_t, unsigned) { return true; }
bool AllowCommit(extent_hooks_t*, void*, size_t, size_t, size_t, unsigned) { return false; }
bool AllowSplit(extent_hooks_t*, void*, size_t, size_t, size_t, bool, unsigned) { return false; }
bool AllowMerge(extent_hooks_t*, void*, size_t, void*, size_t, bool, unsigned) { return false; }

uint64_t LongestSlab() {
  uint64_t bytes = 0;
  const auto bins = JemallocGet<unsigned>("arenas.nbins");
  for (unsigned i = 0; i < bins; ++i) {
    bytes = std::max<uint64_t>(bytes,
                               JemallocGet<size_t>(absl::StrCat("arenas.bin.", i, ".slab_size")));
  }
  return bytes;
}

}  // namespace

HeapExtents::HeapExtents(std::byte* begin, uint64_t unit_bytes, RunAllocator& runs)
    : hooks_{{.alloc = Alloc,
              .dalloc = Dalloc,
              .destroy = Destroy,
              .commit = AllowCommit,
              .decommit = RefuseRange,
              .purge_lazy = RefuseRange,
              .purge_forced = RefuseRange,
              .split = AllowSplit,
              .merge = AllowMerge},
             this},
      begin_(begin),
      unit_bytes_(unit_bytes),
      bytes_max_(LongestSlab()),
      runs_(runs) {}

void* HeapExtents::Alloc(extent_hooks_t* hooks, void* address, size_t size, size_t alignment,
                         bool* zero, bool* commit, unsigned) {
  // `address` is where jemalloc would like an extent to continue. If *zero is set, the hook must
  // deliver zeroed memory. Slabs never ask for either.
  if (address != nullptr || *zero) return nullptr;
  void* extent = OwnerOf(hooks)->Take(size, alignment);
  *commit = true;
  return extent;
}

bool HeapExtents::Dalloc(extent_hooks_t* hooks, void* address, size_t size, bool, unsigned) {
  OwnerOf(hooks)->Free(address, size);
  return false;
}

void HeapExtents::Destroy(extent_hooks_t* hooks, void* address, size_t size, bool, unsigned) {
  OwnerOf(hooks)->Free(address, size);
}

void* HeapExtents::Take(size_t size, size_t alignment) {
  if (size > bytes_max_) return nullptr;
  const uint64_t units = size / unit_bytes_;
  const uint64_t placed = placed_.exchange(kNotPlaced, std::memory_order_relaxed);
  if (placed != kNotPlaced) {
    return runs_.TakeAt(placed / unit_bytes_, units) ? begin_ + placed : nullptr;
  }
  const auto first = runs_.Take(units, std::max<uint64_t>(alignment / unit_bytes_, 1));
  return first ? begin_ + *first * unit_bytes_ : nullptr;
}

void HeapExtents::Free(void* address, size_t size) {
  const auto offset = static_cast<uint64_t>(static_cast<std::byte*>(address) - begin_);
  runs_.Free(offset / unit_bytes_, size / unit_bytes_);
}

}  // namespace gannet
