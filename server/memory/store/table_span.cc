#include "server/memory/store/table_span.h"

#include <algorithm>

namespace gannet {
namespace {

// Memory for a table is cleared in steps of some 1 ms, if so many times the table is free.
constexpr uint64_t kTableBytesPerStep = 512 << 10;
constexpr uint64_t kFreeTablesMin = 2;
// What other threads write into it meanwhile is cleared in the next passes. The next piece is tried
// when this share of the heap was freed; if the last ones did not become free as a whole, because
// something in them stays, twice as much for each of them.
constexpr uint64_t kTablePlaces = 16;
constexpr uint64_t kTableFreedShare = 64;
constexpr uint32_t kTableFailuresMax = 3;
constexpr uint32_t kTablePassesMax = 4;

}  // namespace

// Near the end of the heap, which hands out the lowest memory: there is the least of what stays.
bool TableSpan::Choose(uint64_t table_bytes) {
  const Heap& heap = items_.heap();
  const uint64_t capacity = heap.capacity_bytes();
  if (capacity - heap.use().occupied_bytes() < kFreeTablesMin * table_bytes) return false;
  if (heap.use().freed_bytes() < freed_next_) return false;
  // Meanwhile the table that is wanted becomes a little longer, as more memory becomes free.
  const uint64_t bytes = table_bytes + table_bytes / 8;
  for (uint64_t i = 0; i < kTablePlaces; ++i) {
    const uint64_t from_end = (1 + tries_++ % kTablePlaces) * bytes;
    if (from_end > capacity) continue;
    const std::span<std::byte> memory = heap.WholeRuns(capacity - from_end, bytes);
    if (memory.size() < bytes) continue;
    memory_ = memory;
    cleared_ = 0;
    passes_ = 0;
    Claim(memory);
    return true;
  }
  return false;
}

void TableSpan::Claim(std::span<std::byte> runs) {
  const size_t before = claims_.size();
  items_.heap().ClaimFree(runs, &claims_);
  for (size_t i = before; i < claims_.size(); ++i) claimed_ += claims_[i].size();
}

void TableSpan::Release() {
  if (memory_.empty()) return;
  const bool whole = claimed_ == memory_.size();
  items_.heap().GiveBack(&claims_);
  failures_ = whole ? 0 : std::min(failures_ + 1, kTableFailuresMax);
  const uint64_t share = items_.heap().capacity_bytes() / kTableFreedShare;
  freed_next_ = items_.heap().use().freed_bytes() + (share << failures_);
  memory_ = {};
  claimed_ = 0;
}

// Clears whole slabs at once: writes would take the blocks that are free in a part of one.
bool TableSpan::ClearFor(uint64_t table_bytes) {
  if (table_bytes == 0) {
    Release();
    return false;
  }
  if (memory_.empty() && !Choose(table_bytes)) return false;
  const std::byte* const end = memory_.data() + memory_.size();
  std::byte* const from = memory_.data() + cleared_;
  std::byte* const heap_begin = items_.Block(items_.first_superblock().heap_offset);
  const std::span<std::byte> runs =
      items_.heap().WholeRuns(static_cast<uint64_t>(from - heap_begin), kTableBytesPerStep);
  if (runs.empty()) {
    Release();
    return false;
  }
  const std::byte* const to = std::min<const std::byte*>(runs.data() + runs.size(), end);
  const std::span<std::byte> part(from, static_cast<size_t>(to - from));
  clearer_.ClearPart(memory_, part, Unwritten::kGoes);
  Claim(part);
  cleared_ = static_cast<uint64_t>(to - memory_.data());
  if (cleared_ < memory_.size()) return true;
  cleared_ = 0;
  const bool whole = claimed_ == memory_.size();
  if (whole || ++passes_ == kTablePassesMax) Release();
  return true;
}

}  // namespace gannet
