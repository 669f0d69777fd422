#include "server/heap/heap_extents.h"

#include <algorithm>
#include <cstdint>

namespace gannet {
namespace {

// In jemalloc's convention true means refused. After a refused deallocation the arena retains the
// extent.
bool RefuseDalloc(extent_hooks_t*, void*, size_t, bool, unsigned) { return true; }
bool RefuseRange(extent_hooks_t*, void*, size_t, size_t, size_t, unsigned) { return true; }
void ForgetExtent(extent_hooks_t*, void*, size_t, bool, unsigned) {}
bool AllowCommit(extent_hooks_t*, void*, size_t, size_t, size_t, unsigned) { return false; }
bool AllowSplit(extent_hooks_t*, void*, size_t, size_t, size_t, bool, unsigned) { return false; }
bool AllowMerge(extent_hooks_t*, void*, size_t, void*, size_t, bool, unsigned) { return false; }

}  // namespace

HeapExtents::HeapExtents(std::span<std::byte> memory)
    : hooks_{{.alloc = Alloc,
              .dalloc = RefuseDalloc,
              .destroy = ForgetExtent,
              .commit = AllowCommit,
              .decommit = RefuseRange,
              .purge_lazy = RefuseRange,
              .purge_forced = RefuseRange,
              .split = AllowSplit,
              .merge = AllowMerge},
             this},
      begin_(memory.data()),
      rest_(memory) {}

size_t HeapExtents::remaining() {
  MutexLock lock(mutex_);
  return rest_.size();
}

void HeapExtents::Close() {
  MutexLock lock(mutex_);
  rest_ = {};
}

uint64_t HeapExtents::PieceEnd(uint64_t offset) {
  MutexLock lock(mutex_);
  const auto end = std::ranges::upper_bound(piece_ends_, offset);
  return end == piece_ends_.end() ? offset : *end;
}

void* HeapExtents::Alloc(extent_hooks_t* hooks, void* address, size_t size, size_t alignment,
                         bool* zero, bool* commit, unsigned) {
  void* extent = reinterpret_cast<Hooks*>(hooks)->owner->Take(address, size, alignment);
  // If *zero is set, the hook must deliver zeroed memory. Items never ask for that.
  if (extent == nullptr || *zero) return nullptr;
  *commit = true;
  return extent;
}

void* HeapExtents::Take(void* address, size_t size, size_t alignment) {
  MutexLock lock(mutex_);
  if (address != nullptr && address != rest_.data()) return nullptr;
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(rest_.data()) & (alignment - 1);
  if (misaligned != 0 || size > rest_.size()) return nullptr;
  void* extent = rest_.data();
  rest_ = rest_.subspan(size);
  piece_ends_.push_back(static_cast<uint64_t>(rest_.data() - begin_));
  return extent;
}

}  // namespace gannet
