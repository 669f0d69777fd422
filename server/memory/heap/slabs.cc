#include "server/memory/heap/slabs.h"

#include <glog/logging.h>

namespace gannet {

Slabs::Slabs(uint64_t heap_bytes, RunAllocator& runs)
    : heap_units_(heap_bytes / kUnitBytes),
      runs_(runs),
      cells_(static_cast<Cell*>(std::calloc(heap_units_ / kUnitsPerCell + 1, sizeof(Cell)))) {
  static_assert(KindOf(136) == 0 && KindOf(256) == 15 && KindOf(272) == 16 && KindOf(4096) == 79);
  static_assert(BytesOfKind(0) == 136 && BytesOfKind(16) == 272 && BytesOfKind(79) == 4096);
  CHECK(cells_ != nullptr);
  for (uint32_t i = 0; i < kKinds; ++i) {
    kinds_[i].bytes = BytesOfKind(i);
    kinds_[i].per_slab = static_cast<uint32_t>(kUnitBytes / StepFor(BytesOfKind(i)));
  }
}

std::optional<Slabs::Block> Slabs::Allocate(uint64_t bytes) {
  Kind& kind = kinds_[KindOf(BlockBytes(bytes))];
  MutexLock lock(kind.mutex);
  if (kind.with_free.empty() && !AddSlab(kind)) return std::nullopt;
  return TakeLowest(kind);
}

std::optional<Slabs::Block> Slabs::AllocateLonger(uint64_t bytes) {
  const uint64_t class_bytes = SizeClassBytes(SizeClassFor(bytes));
  for (uint32_t i = KindOf(BlockBytes(bytes)) + 1; i < kKinds && kinds_[i].bytes <= class_bytes;
       ++i) {
    Kind& kind = kinds_[i];
    MutexLock lock(kind.mutex);
    if (!kind.with_free.empty()) return TakeLowest(kind);
  }
  return std::nullopt;
}

// What a block's class has more than the block is less than the longest block that may follow.
bool Slabs::AddSlab(Kind& kind) {
  const uint64_t units = SlabUnits(kind);
  const uint64_t class_bytes = SizeClassBytes(SizeClassFor(kind.bytes));
  const uint64_t reach = units + AlignUp(class_bytes - kind.bytes, kUnitBytes) / kUnitBytes;
  if (reach > heap_units_) return false;
  const auto first = runs_.Take(units, 1, heap_units_ - reach + 1);
  if (!first) return false;
  const auto number = static_cast<uint32_t>(*first / kUnitsPerCell);
  Cell& cell = cells_[number];
  cell.free = AllFree(kind);
  const uint64_t begin = (KindOf(kind.bytes) + 1) * kUnitsPerCell + *first % kUnitsPerCell;
  cell.begin.store(static_cast<uint16_t>(begin), std::memory_order_relaxed);
  kind.with_free.insert(number);
  return true;
}

Slabs::Block Slabs::TakeLowest(Kind& kind) {
  const uint32_t number = *kind.with_free.begin();
  Cell& cell = cells_[number];
  const auto i = static_cast<uint64_t>(std::countr_zero(cell.free));
  cell.free &= cell.free - 1;
  if (cell.free == 0) kind.with_free.erase(kind.with_free.begin());
  kind.blocks.fetch_add(1, std::memory_order_relaxed);
  const uint64_t first_unit =
      number * kUnitsPerCell + cell.begin.load(std::memory_order_relaxed) % kUnitsPerCell;
  return {first_unit * kUnitBytes + i * kind.bytes, kind.bytes};
}

Slabs::Slab Slabs::SlabOf(uint64_t offset) const {
  const uint64_t unit = offset / kUnitBytes;
  for (uint64_t number = unit / kUnitsPerCell;; --number) {
    const uint16_t begin = cells_[number].begin.load(std::memory_order_relaxed);
    const uint64_t first_unit = number * kUnitsPerCell + begin % kUnitsPerCell;
    if (begin != 0 && first_unit <= unit) {
      return {static_cast<uint32_t>(number), static_cast<uint32_t>(begin / kUnitsPerCell - 1),
              first_unit};
    }
    CHECK_NE(number, 0u) << "no slab has a block at " << offset;
  }
}

uint64_t Slabs::Free(uint64_t offset) {
  const Slab slab = SlabOf(offset);
  Kind& kind = kinds_[slab.kind];
  const uint64_t i = (offset - slab.first_unit * kUnitBytes) / kind.bytes;
  MutexLock lock(kind.mutex);
  Cell& cell = cells_[slab.cell];
  DCHECK_EQ(cell.free >> i & 1, 0u);
  if (cell.free == 0) kind.with_free.insert(slab.cell);
  cell.free |= uint64_t{1} << i;
  kind.blocks.fetch_sub(1, std::memory_order_relaxed);
  if (cell.free == AllFree(kind)) {
    kind.with_free.erase(slab.cell);
    // First, because another slab may begin here as soon as the run is free.
    cell.begin.store(0, std::memory_order_relaxed);
    runs_.Free(slab.first_unit, SlabUnits(kind));
  }
  return kind.bytes;
}

}  // namespace gannet
