// Bits of what a former process had allocated: a bit for each 16 bytes, and one for each unit.
// Take marks a block, and refuses one that another block excludes: another kind of slab in the
// same page, or bytes that are taken.

#include "server/memory/heap/heap_map.h"

#include <glog/logging.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/memory/heap/heap.h"
#include "server/memory/heap/jemalloc_control.h"

namespace gannet {
namespace {

// The value of a page that is in no slab. For a page of a slab, the first byte is the slab's kind +
// 1, and the second one the number of the slab's pages before it.
constexpr uint16_t kNoSlab = 0;

constexpr uint64_t kKindsMax = 0xfe;

}  // namespace

HeapMap::HeapMap(uint64_t heap_bytes)
    : heap_bytes_(heap_bytes / kPageBytes * kPageBytes),
      blocks_(heap_bytes_ / kGrain / 64 + 1),
      pages_(heap_bytes_ / kPageBytes),
      units_(heap_bytes_ / Heap::kUnitBytes / 64 + 1) {
  const auto kinds = JemallocGet<unsigned>("arenas.nbins");
  CHECK_LE(kinds, kKindsMax);
  for (unsigned i = 0; i < kinds; ++i) {
    const std::string bin = absl::StrCat("arenas.bin.", i, ".");
    const uint64_t bytes = JemallocGet<size_t>(bin + "size");
    const uint64_t pages = JemallocGet<size_t>(bin + "slab_size") / kPageBytes;
    kinds_.push_back({static_cast<uint32_t>(bytes), static_cast<uint32_t>(pages),
                      JemallocGet<uint32_t>(bin + "nregs")});
    if (bytes % kGrain != 0) continue;
    kind_of_size_.resize(bytes / kGrain + 1);
    kind_of_size_[bytes / kGrain] = static_cast<uint8_t>(i + 1);
  }
}

HeapMap::Taken HeapMap::Take(uint64_t offset, uint64_t bytes) {
  const uint32_t size_class = SizeClassFor(bytes);
  const uint64_t block_bytes = Heap::BlockBytes(bytes);
  if (block_bytes == 0 || block_bytes > heap_bytes_ || offset > heap_bytes_ - block_bytes ||
      offset % kGrain != 0) {
    return Taken::kImpossible;
  }
  if (IsLargeClass(size_class)) return TakeRun(offset, {block_bytes, size_class});
  return TakeSmall(offset, kind_of_size_[block_bytes / kGrain] - 1u);
}

HeapMap::Taken HeapMap::TakeTable(uint64_t offset, uint64_t bytes) {
  if (bytes == 0 || bytes > heap_bytes_) return Taken::kImpossible;
  const uint64_t block_bytes = Heap::TableBytes(bytes);
  const Taken taken = TakeRun(offset, {block_bytes, kSizeClassNone});
  if (taken == Taken::kNow) table_bytes_ += block_bytes;
  return taken;
}

// A slab that could hold the block may begin on one of several pages. Its blocks lie at multiples
// of their size from there, so it begins on one of them at most. Most blocks are in a slab that was
// found before, and their page says where that begins.
HeapMap::Taken HeapMap::TakeSmall(uint64_t offset, uint32_t kind) {
  const SlabKind& slab = kinds_[kind];
  const uint64_t page = offset / kPageBytes;
  const auto fits = [&](uint64_t before) {
    const auto in_slab = static_cast<uint32_t>(offset - (page - before) * kPageBytes);
    return in_slab % slab.block_bytes == 0 && in_slab / slab.block_bytes < slab.blocks;
  };
  const uint16_t known = PageEntry(page);
  if (known != kNoSlab) {
    const bool same = (known & 0xff) == kind + 1;
    return same && fits(known >> 8) ? Mark(offset) : Taken::kImpossible;
  }
  for (uint64_t before = 0; before < slab.pages && before <= page; ++before) {
    if (!fits(before)) continue;
    const Taken taken = TakeSlab(page - before, kind);
    return taken == Taken::kImpossible ? taken : Mark(offset);
  }
  return Taken::kImpossible;
}

uint16_t HeapMap::PageEntry(uint64_t page) const {
  return __atomic_load_n(&pages_[page], __ATOMIC_RELAXED);
}

HeapMap::Taken HeapMap::TakeSlab(uint64_t first_page, uint32_t kind) {
  const uint32_t pages = kinds_[kind].pages;
  const auto entry = [kind](uint64_t i) { return static_cast<uint16_t>(i << 8 | (kind + 1)); };
  if (first_page + pages > pages_.size()) return Taken::kImpossible;
  MutexLock lock(*mutex_);
  if (pages_[first_page] == entry(0)) return Taken::kBefore;
  if (!TakeUnits(first_page * kPageBytes, pages * kPageBytes)) return Taken::kImpossible;
  for (uint32_t i = 0; i < pages; ++i) {
    __atomic_store_n(&pages_[first_page + i], entry(i), __ATOMIC_RELAXED);
  }
  return Taken::kNow;
}

HeapMap::Taken HeapMap::TakeRun(uint64_t offset, const Run& run) {
  if (offset % Heap::kUnitBytes != 0 || offset > heap_bytes_ - run.bytes) {
    return Taken::kImpossible;
  }
  MutexLock lock(*mutex_);
  if (const auto before = runs_.find(offset); before != runs_.end()) {
    return before->second.bytes == run.bytes ? Taken::kBefore : Taken::kImpossible;
  }
  if (!TakeUnits(offset, run.bytes)) return Taken::kImpossible;
  runs_[offset] = run;
  return Taken::kNow;
}

bool HeapMap::TakeUnits(uint64_t offset, uint64_t bytes) {
  const uint64_t first = offset / Heap::kUnitBytes;
  const uint64_t end = (offset + bytes) / Heap::kUnitBytes;
  for (uint64_t unit = first; unit < end; ++unit) {
    if ((units_[unit / 64] >> (unit % 64) & 1) != 0) return false;
  }
  for (uint64_t unit = first; unit < end; ++unit) units_[unit / 64] |= uint64_t{1} << (unit % 64);
  return true;
}

HeapMap::Taken HeapMap::Mark(uint64_t offset) {
  const uint64_t bit = uint64_t{1} << (offset / kGrain % 64);
  const uint64_t before = __atomic_fetch_or(&blocks_[offset / kGrain / 64], bit, __ATOMIC_RELAXED);
  return (before & bit) != 0 ? Taken::kBefore : Taken::kNow;
}

HeapMap::Slab HeapMap::NextSlab(uint64_t offset) const {
  uint64_t page = offset / kPageBytes;
  while (page < pages_.size() && pages_[page] == kNoSlab) ++page;
  if (page == pages_.size()) return {heap_bytes_, nullptr};
  return {page * kPageBytes, &kinds_[(pages_[page] & 0xff) - 1]};
}

}  // namespace gannet
