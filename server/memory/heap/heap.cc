// Hands out blocks of the region from three places: runs of units for what is longer than 4 KiB and
// for tables of the index, slabs of our own for lengths that have finer steps (IsFine), and
// jemalloc for the rest. Who frees a block must find the same place by its class alone. The
// exception are "singles": runs that an item of a short class has got, which are kept in a set.

#include "server/memory/heap/heap.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/base/status_macros.h"

namespace gannet {
absl::StatusOr<std::unique_ptr<Heap>> Heap::Create(std::span<std::byte> memory,
                                                   const HeapMap* map) {
  const uint64_t page_bytes = SmallBlocks::PageBytes();
  CHECK_EQ(reinterpret_cast<uintptr_t>(memory.data()) % page_bytes, 0u);
  const size_t usable = memory.size() / page_bytes * page_bytes;
  if (usable == 0) return absl::InvalidArgumentError("a heap needs at least one page of memory");
  std::unique_ptr<Heap> heap(new Heap(memory.first(usable), /*fine=*/map == nullptr));
  GANNET_ASSIGN_OR_RETURN(heap->small_, SmallBlocks::Create(heap->begin_, kUnitBytes, heap->runs_));
  if (map != nullptr) GANNET_RETURN_IF_ERROR(heap->Replay(*map));
  return heap;
}

Heap::Heap(std::span<std::byte> memory, bool fine)
    : begin_(memory.data()),
      capacity_bytes_(memory.size()),
      runs_(memory.size() / kUnitBytes),
      slabs_(fine ? std::make_unique<Slabs>(memory.size(), runs_) : nullptr) {}

Heap::~Heap() = default;

std::byte* Heap::Allocate(uint64_t bytes) {
  if (bytes > SizeClassBytes(kSealedClassMax)) return AllocateBelow(bytes, nullptr);
  std::byte* const block = AllocateTight(bytes);
  if (block != nullptr || !IsFine(bytes)) return block;
  return Count(slabs_->AllocateLonger(bytes));
}

std::byte* Heap::AllocateTight(uint64_t bytes) {
  if (IsFine(bytes)) return Count(slabs_->Allocate(bytes));
  const uint64_t block_bytes = SizeClassBytes(SizeClassFor(bytes));
  std::byte* const block = small_->Allocate(block_bytes);
  if (block != nullptr) use_.Took(block_bytes);
  return block;
}

std::byte* Heap::Count(const std::optional<Slabs::Block>& block) {
  if (!block) return nullptr;
  use_.Took(block->bytes);
  return begin_ + block->offset;
}

// Clients READ no more than the item. But they take a slot for damaged if the bytes of its class do
// not lie within the region.
std::byte* Heap::AllocateBelow(uint64_t bytes, const std::byte* end) {
  const uint32_t size_class = SizeClassFor(bytes);
  if (SizeClassBytes(size_class) > capacity_bytes_) return nullptr;
  const uint64_t last = (capacity_bytes_ - SizeClassBytes(size_class)) / kUnitBytes;
  const uint64_t block_bytes = AlignUp(bytes, kUnitBytes);
  const bool moves = end != nullptr;
  const uint64_t below = moves ? std::min(UnitOf(end), last + 1) : last + 1;
  const auto first = runs_.Take(block_bytes / kUnitBytes, 1, below, moves);
  if (!first) return nullptr;
  use_.TookRun(size_class, block_bytes);
  return begin_ + *first * kUnitBytes;
}

std::optional<uint64_t> Heap::PlaceAlone(uint64_t bytes) const {
  const uint64_t class_bytes = SizeClassBytes(SizeClassFor(bytes));
  const uint64_t block_bytes = AlignUp(BlockBytes(bytes), kUnitBytes);
  uint64_t table = 0;
  uint64_t table_end = 0;
  {
    MutexLock lock(tables_mutex_);
    if (!tables_.empty()) {
      table = tables_.back() * kUnitBytes;
      table_end = table + runs_.UnitsAt(tables_.back()) * kUnitBytes;
    }
  }
  if (block_bytes + (table_end - table) + kept_bytes() > capacity_bytes_) return std::nullopt;
  if (block_bytes <= table && class_bytes <= capacity_bytes_) return 0;
  if (table_end + class_bytes <= capacity_bytes_) return table_end;
  return std::nullopt;
}

void Heap::FreeRun(uint64_t first_unit, uint32_t size_class) {
  const uint64_t units = runs_.UnitsAt(first_unit);
  use_.FreedRun(size_class, units * kUnitBytes);
  runs_.Free(first_unit, units);
}

void Heap::Free(std::byte* block, uint32_t size_class) {
  if (IsLargeClass(size_class)) return FreeRun(UnitOf(block), size_class);
  if (IsSingle(block)) {
    singles_.Remove(UnitOf(block));
    return FreeRun(UnitOf(block), size_class);
  }
  const uint64_t bytes = SizeClassBytes(size_class);
  if (IsFine(bytes)) {
    return use_.Freed(slabs_->Free(static_cast<uint64_t>(block - begin_)));
  }
  use_.Freed(bytes);
  small_->Free(block, bytes);
}

uint64_t Heap::RoomAt(const std::byte* block) const {
  return runs_.UnitsAt(UnitOf(block)) * kUnitBytes;
}

void Heap::Shrink(std::byte* block, uint32_t old_class, uint64_t bytes) {
  const uint64_t first = UnitOf(block);
  const uint32_t size_class = SizeClassFor(bytes);
  const uint64_t now = AlignUp(BlockBytes(bytes), kUnitBytes);
  if (!IsLargeClass(size_class)) singles_.Add(first);
  const uint64_t before = runs_.Shrink(first, now / kUnitBytes) * kUnitBytes;
  use_.ShrankRun(old_class, before, size_class, now);
}

std::byte* Heap::AllocateSingleBelow(uint32_t size_class, const std::byte* end) {
  const uint64_t bytes = AlignUp(SizeClassBytes(size_class), kUnitBytes);
  const auto first = runs_.Take(bytes / kUnitBytes, 1, UnitOf(end), /*also_kept=*/true);
  if (!first) return nullptr;
  use_.TookRun(size_class, bytes);
  singles_.Add(*first);
  return begin_ + *first * kUnitBytes;
}

bool Heap::IsSingle(const std::byte* block) const {
  if (singles_.empty()) return false;
  return static_cast<uint64_t>(block - begin_) % kUnitBytes == 0 &&
         singles_.Contains(UnitOf(block));
}

std::span<std::byte> Heap::WholeRuns(uint64_t offset, uint64_t bytes) const {
  const RunAllocator::Range range =
      runs_.WholeRuns(offset / kUnitBytes, AlignUp(bytes, kUnitBytes) / kUnitBytes);
  MutexLock lock(tables_mutex_);
  const auto within = [&](uint64_t table) { return range.begin <= table && table < range.end; };
  if (std::ranges::any_of(tables_, within)) return {};
  return {begin_ + range.begin * kUnitBytes, (range.end - range.begin) * kUnitBytes};
}

void Heap::ClaimFree(std::span<std::byte> memory, Claims* claims) {
  const uint64_t first = static_cast<uint64_t>(memory.data() - begin_) / kUnitBytes;
  runs_.TakeFree(first, memory.size() / kUnitBytes, [&](uint64_t taken, uint64_t units) {
    claims->push_back({begin_ + taken * kUnitBytes, units * kUnitBytes});
  });
}

void Heap::GiveBack(Claims* claims) {
  for (const std::span<std::byte> piece : *claims) {
    runs_.Free(static_cast<uint64_t>(piece.data() - begin_) / kUnitBytes,
               piece.size() / kUnitBytes);
  }
  claims->clear();
}

std::byte* Heap::AllocateTable(uint64_t bytes) {
  const auto first = runs_.Take(TableBytes(bytes) / kUnitBytes);
  if (!first) return nullptr;
  use_.TookTable(TableBytes(bytes));
  MutexLock lock(tables_mutex_);
  tables_.push_back(*first);
  return begin_ + *first * kUnitBytes;
}

void Heap::FreeTable(std::byte* block, uint64_t bytes) {
  use_.FreedTable(TableBytes(bytes));
  const uint64_t first = static_cast<uint64_t>(block - begin_) / kUnitBytes;
  {
    MutexLock lock(tables_mutex_);
    std::erase(tables_, first);
  }
  runs_.Free(first, TableBytes(bytes) / kUnitBytes);
}

std::array<HeapUse::OfClass, kSizeClassMax + 1> Heap::UseByClass() const {
  std::array<HeapUse::OfClass, kSizeClassMax + 1> uses{};
  for (uint32_t size_class = 1; size_class <= kSizeClassMax; ++size_class) {
    uses[size_class] = use_.RunsOf(size_class);
  }
  const auto add = [&](uint64_t bytes, uint64_t blocks) {
    HeapUse::OfClass& use = uses[SizeClassFor(bytes)];
    use.blocks += blocks;
    use.bytes += blocks * bytes;
  };
  small_->ForEachKind([&](uint64_t bytes, uint64_t blocks) {
    const uint32_t size_class = SizeClassFor(bytes);
    if (SizeClassBytes(size_class) == bytes && !IsLargeClass(size_class)) add(bytes, blocks);
  });
  if (slabs_ != nullptr) slabs_->ForEachKind(add);
  return uses;
}

// Begins with the blocks of a former process. A run is taken where it was.
absl::Status Heap::Replay(const HeapMap& map) {
  if (map.heap_bytes() != capacity_bytes_) return absl::InternalError("a map of another heap");
  for (const auto& [offset, run] : map.runs()) {
    if (!runs_.TakeAt(offset / kUnitBytes, run.bytes / kUnitBytes)) return BlockIsElsewhere(offset);
    if (run.size_class != kSizeClassNone) {
      use_.TookRun(run.size_class, run.bytes);
    } else {
      MutexLock lock(tables_mutex_);
      tables_.push_back(offset / kUnitBytes);
    }
  }
  GANNET_ASSIGN_OR_RETURN(const uint64_t used, small_->Replay(map));
  use_.Took(used);
  use_.TookTable(map.table_bytes());
  return absl::OkStatus();
}

}  // namespace gannet
