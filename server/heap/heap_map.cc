#include "server/heap/heap_map.h"

#include <glog/logging.h>
#include <jemalloc/jemalloc.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/heap/heap.h"

namespace gannet {
namespace {

// What a page holds. The first byte of a page of a slab is the slab's kind + 1, the second one the
// number of pages of the slab before it.
constexpr uint16_t kFree = 0;
constexpr uint16_t kLongFirst = 0x00ff;
constexpr uint16_t kLongRest = 0x01ff;

constexpr uint64_t kKindsMax = 0xfe;

template <class T>
T Ask(const std::string& name) {
  T value{};
  size_t size = sizeof(value);
  CHECK_EQ(mallctl(name.c_str(), &value, &size, nullptr, 0), 0) << name;
  return value;
}

}  // namespace

HeapMap::HeapMap(uint64_t heap_bytes)
    : heap_bytes_(heap_bytes / kPageBytes * kPageBytes),
      blocks_(heap_bytes_ / kUnit / 64 + 1),
      pages_(heap_bytes_ / kPageBytes) {
  const auto kinds = Ask<unsigned>("arenas.nbins");
  CHECK_LE(kinds, kKindsMax);
  for (unsigned i = 0; i < kinds; ++i) {
    const std::string bin = absl::StrCat("arenas.bin.", i, ".");
    const uint64_t bytes = Ask<size_t>(bin + "size");
    const uint64_t pages = Ask<size_t>(bin + "slab_size") / kPageBytes;
    kinds_.push_back(
        {static_cast<uint32_t>(bytes), static_cast<uint32_t>(pages), Ask<uint32_t>(bin + "nregs")});
    if (bytes % kUnit != 0) continue;
    kind_of_size_.resize(bytes / kUnit + 1);
    kind_of_size_[bytes / kUnit] = static_cast<uint8_t>(i + 1);
  }
}

HeapMap::Taken HeapMap::Take(uint64_t offset, uint64_t bytes) {
  if (bytes == 0 || bytes > heap_bytes_ || offset > heap_bytes_ - bytes || offset % kUnit != 0 ||
      bytes % kUnit != 0) {
    return Taken::kImpossible;
  }
  const uint32_t kind = bytes / kUnit < kind_of_size_.size() ? kind_of_size_[bytes / kUnit] : 0;
  const Taken taken = kind != 0 ? TakeSmall(offset, kind - 1) : TakeLong(offset, bytes);
  if (taken != Taken::kNow) return taken;
  item_bytes_ += bytes;
  if (bytes >= Heap::kPaddedBytesMin) padding_bytes_ += kPageBytes;
  return taken;
}

HeapMap::Taken HeapMap::TakeTable(uint64_t offset, uint64_t bytes) {
  if (bytes == 0 || bytes > heap_bytes_) return Taken::kImpossible;
  const uint64_t allocated = nallocx(bytes, MALLOCX_ALIGN(Heap::kTableAlignment));
  const uint64_t padding = padding_bytes_;
  const Taken taken = Take(offset, allocated);
  if (taken != Taken::kNow) return taken;
  item_bytes_ -= allocated;
  padding_bytes_ = padding;
  table_bytes_ += bytes;
  tables_.push_back(bytes);
  return taken;
}

// A slab that could hold the block may begin on each of some pages. Its blocks lie at multiples of
// their size from there, so it does begin on one of them at most.
HeapMap::Taken HeapMap::TakeSmall(uint64_t offset, uint32_t kind) {
  const SlabKind& slab = kinds_[kind];
  const uint64_t page = offset / kPageBytes;
  for (uint64_t before = 0; before < slab.pages && before <= page; ++before) {
    const uint64_t in_slab = offset - (page - before) * kPageBytes;
    if (in_slab % slab.block_bytes != 0 || in_slab / slab.block_bytes >= slab.blocks) continue;
    const Taken taken = TakeIn(page - before, kind);
    return taken == Taken::kImpossible ? taken : Mark(offset);
  }
  return Taken::kImpossible;
}

HeapMap::Taken HeapMap::TakeIn(uint64_t first_page, uint32_t kind) {
  const uint32_t pages = kinds_[kind].pages;
  const auto entry = [kind](uint64_t i) { return static_cast<uint16_t>(i << 8 | (kind + 1)); };
  if (first_page + pages > pages_.size()) return Taken::kImpossible;
  if (pages_[first_page] == entry(0)) return Taken::kBefore;
  for (uint32_t i = 0; i < pages; ++i) {
    if (pages_[first_page + i] != kFree) return Taken::kImpossible;
  }
  for (uint32_t i = 0; i < pages; ++i) pages_[first_page + i] = entry(i);
  return Taken::kNow;
}

// jemalloc adds a page, and begins the block somewhere in the first one.
HeapMap::Taken HeapMap::TakeLong(uint64_t offset, uint64_t bytes) {
  const uint64_t first = offset / kPageBytes;
  if (bytes < Heap::kPaddedBytesMin || bytes % kPageBytes != 0) return Taken::kImpossible;
  const uint64_t pages = bytes / kPageBytes + 1;
  if (pages > pages_.size() - first) return Taken::kImpossible;
  if (pages_[first] == kLongFirst && InUse(offset)) {
    return Next(first * kPageBytes).pages == pages ? Taken::kBefore : Taken::kImpossible;
  }
  for (uint64_t i = 0; i < pages; ++i) {
    if (pages_[first + i] != kFree) return Taken::kImpossible;
  }
  pages_[first] = kLongFirst;
  for (uint64_t i = 1; i < pages; ++i) pages_[first + i] = kLongRest;
  return Mark(offset);
}

HeapMap::Taken HeapMap::Mark(uint64_t offset) {
  uint64_t& word = blocks_[offset / kUnit / 64];
  const uint64_t bit = uint64_t{1} << (offset / kUnit % 64);
  if ((word & bit) != 0) return Taken::kBefore;
  word |= bit;
  return Taken::kNow;
}

HeapMap::Extent HeapMap::Next(uint64_t offset) const {
  uint64_t page = offset / kPageBytes;
  while (page < pages_.size() && pages_[page] == kFree) ++page;
  if (page == pages_.size()) return {heap_bytes_, 0, nullptr};
  if (pages_[page] != kLongFirst) {
    const SlabKind& slab = kinds_[(pages_[page] & 0xff) - 1];
    return {page * kPageBytes, slab.pages, &slab};
  }
  uint64_t end = page + 1;
  while (end < pages_.size() && pages_[end] == kLongRest) ++end;
  return {page * kPageBytes, end - page, nullptr};
}

}  // namespace gannet
