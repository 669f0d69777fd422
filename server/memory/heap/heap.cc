// Hands out blocks of the region from three places: runs of units for what is longer than 4 KiB and
// for tables of the index, slabs of our own for lengths that have finer steps (IsFine), and
// jemalloc for the rest. Who frees a block must find the same place by its class alone. The
// exception are "singles": runs that an item of a short class has got, which are kept in a set.

#include "server/memory/heap/heap.h"

#include <glog/logging.h>
#include <jemalloc/jemalloc.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/page_size.h"
#include "common/base/status_macros.h"
#include "server/memory/heap/heap_extents.h"
#include "server/memory/heap/heap_map.h"
#include "server/memory/heap/jemalloc_control.h"

namespace gannet {
namespace {

// The argument of experimental.arenas_create_ext (jemalloc 5.3, arena_config_s). metadata_use_hooks
// = false keeps jemalloc's metadata in ordinary memory. Inside the heap it would take more than
// half of it, and clients could READ it.
struct ArenaConfig {
  extent_hooks_t* extent_hooks;
  bool metadata_use_hooks;
};

absl::Status MallctlError(std::string_view what, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("jemalloc: ", std::string(what), ": errno ", error));
}

template <class T>
absl::Status Set(const std::string& name, T value) {
  if (int error = mallctl(name.c_str(), nullptr, nullptr, &value, sizeof(value)); error != 0) {
    return MallctlError(name, error);
  }
  return absl::OkStatus();
}

// Makes jemalloc take its statistics. What it says of its use of memory is as of the last call.
void TakeStatistics() {
  uint64_t epoch = 1;  // any value
  CHECK_EQ(mallctl("epoch", nullptr, nullptr, &epoch, sizeof(epoch)), 0);
}

}  // namespace

uint64_t Heap::PageBytes() {
  return std::max<uint64_t>(JemallocGet<size_t>("arenas.page"), SystemPageBytes());
}

uint64_t Heap::AllocatorVersion() {
  const char* version = nullptr;
  size_t size = sizeof(version);
  CHECK_EQ(mallctl("version", &version, &size, nullptr, 0), 0);
  return Xxh3(version, std::strlen(version), 0);
}

absl::StatusOr<std::unique_ptr<Heap>> Heap::Open(std::span<std::byte> memory, bool fine) {
  const uint64_t page_bytes = PageBytes();
  CHECK_EQ(reinterpret_cast<uintptr_t>(memory.data()) % page_bytes, 0u);
  const size_t usable = memory.size() / page_bytes * page_bytes;
  if (usable == 0) return absl::InvalidArgumentError("a heap needs at least one page of memory");
  std::unique_ptr<Heap> heap(new Heap(memory.first(usable), fine));
  GANNET_RETURN_IF_ERROR(heap->MakeArena());
  return heap;
}

absl::StatusOr<std::unique_ptr<Heap>> Heap::Create(std::span<std::byte> memory) {
  return Open(memory, /*fine=*/true);
}

absl::StatusOr<std::unique_ptr<Heap>> Heap::Create(std::span<std::byte> memory,
                                                   const HeapMap& map) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<Heap> heap, Open(memory, /*fine=*/false));
  GANNET_RETURN_IF_ERROR(heap->Replay(map));
  return heap;
}

Heap::Heap(std::span<std::byte> memory, bool fine)
    : begin_(memory.data()),
      capacity_bytes_(memory.size()),
      runs_(memory.size() / kUnitBytes),
      slabs_(fine ? std::make_unique<Slabs>(memory.size(), runs_) : nullptr),
      extents_(std::make_unique<HeapExtents>(begin_, kUnitBytes, runs_)) {}

absl::Status Heap::MakeArena() {
  ArenaConfig config{extents_->hooks(), false};
  size_t size = sizeof(arena_);
  int error = mallctl("experimental.arenas_create_ext", &arena_, &size, &config, sizeof(config));
  if (error != 0) return MallctlError("experimental.arenas_create_ext", error);
  open_ = true;
  flags_ = MALLOCX_ARENA(arena_) | MALLOCX_TCACHE_NONE;
  // Makes freed slabs go back to the runs at once.
  const std::string arena = absl::StrCat("arena.", arena_, ".");
  GANNET_RETURN_IF_ERROR(Set<ssize_t>(arena + "dirty_decay_ms", 0));
  return Set<ssize_t>(arena + "muzzy_decay_ms", 0);
}

Heap::~Heap() {
  if (!open_) return;
  const std::string name = absl::StrCat("arena.", arena_, ".destroy");
  const int error = mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
  LOG_IF(DFATAL, error != 0) << name << ": errno " << error;
}

std::byte* Heap::Allocate(uint64_t bytes) {
  if (bytes > SizeClassBytes(kSealedClassMax)) return AllocateRun(bytes, RunAllocator::kAnywhere);
  std::byte* const block = AllocateTight(bytes);
  if (block != nullptr || !IsFine(bytes)) return block;
  return Count(slabs_->AllocateLonger(bytes));
}

std::byte* Heap::AllocateTight(uint64_t bytes) {
  return IsFine(bytes) ? Count(slabs_->Allocate(bytes)) : AllocateSmall(bytes);
}

std::byte* Heap::Count(const std::optional<Slabs::Block>& block) {
  if (!block) return nullptr;
  taken_bytes_.fetch_add(block->bytes, std::memory_order_relaxed);
  return begin_ + block->offset;
}

std::byte* Heap::AllocateBelow(uint64_t bytes, const std::byte* end) {
  return AllocateRun(bytes, static_cast<uint64_t>(end - begin_) / kUnitBytes);
}

std::byte* Heap::AllocateSmall(uint64_t bytes) {
  const uint64_t block_bytes = SizeClassBytes(SizeClassFor(bytes));
  void* block = mallocx(block_bytes, flags_);
  if (block == nullptr) return nullptr;
  taken_bytes_.fetch_add(block_bytes, std::memory_order_relaxed);
  return static_cast<std::byte*>(block);
}

// Clients READ no more than the item. But they take a slot for damaged if the bytes of its class do
// not lie within the region.
std::byte* Heap::AllocateRun(uint64_t bytes, uint64_t end) {
  const uint32_t size_class = SizeClassFor(bytes);
  if (SizeClassBytes(size_class) > capacity_bytes_) return nullptr;
  const uint64_t last = (capacity_bytes_ - SizeClassBytes(size_class)) / kUnitBytes;
  const uint64_t block_bytes = AlignUp(bytes, kUnitBytes);
  const bool moves = end != RunAllocator::kAnywhere;
  const auto first = runs_.Take(block_bytes / kUnitBytes, 1, std::min(end, last + 1), moves);
  if (!first) return nullptr;
  CountRun(size_class, block_bytes);
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

void Heap::CountRun(uint32_t size_class, uint64_t bytes) {
  taken_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  run_uses_[size_class].blocks.fetch_add(1, std::memory_order_relaxed);
  run_uses_[size_class].bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void Heap::FreeRun(uint64_t first_unit, uint32_t size_class) {
  const uint64_t units = runs_.UnitsAt(first_unit);
  freed_bytes_.fetch_add(units * kUnitBytes, std::memory_order_relaxed);
  run_uses_[size_class].blocks.fetch_sub(1, std::memory_order_relaxed);
  run_uses_[size_class].bytes.fetch_sub(units * kUnitBytes, std::memory_order_relaxed);
  runs_.Free(first_unit, units);
}

void Heap::Free(std::byte* block, uint32_t size_class) {
  if (IsLargeClass(size_class)) return FreeRun(UnitOf(block), size_class);
  if (single_count_.load(std::memory_order_relaxed) != 0 && FreeSingle(block, size_class)) return;
  const uint64_t bytes = SizeClassBytes(size_class);
  if (IsFine(bytes)) {
    const uint64_t freed = slabs_->Free(static_cast<uint64_t>(block - begin_));
    freed_bytes_.fetch_add(freed, std::memory_order_relaxed);
    return;
  }
  freed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  sdallocx(block, bytes, flags_);
}

uint64_t Heap::RoomAt(const std::byte* block) const {
  return runs_.UnitsAt(UnitOf(block)) * kUnitBytes;
}

void Heap::Shrink(std::byte* block, uint32_t old_class, uint64_t bytes) {
  const uint64_t first = UnitOf(block);
  const uint32_t size_class = SizeClassFor(bytes);
  const uint64_t now = AlignUp(BlockBytes(bytes), kUnitBytes);
  if (!IsLargeClass(size_class)) NoteSingle(first);
  const uint64_t before = runs_.Shrink(first, now / kUnitBytes) * kUnitBytes;
  freed_bytes_.fetch_add(before - now, std::memory_order_relaxed);
  run_uses_[old_class].blocks.fetch_sub(1, std::memory_order_relaxed);
  run_uses_[old_class].bytes.fetch_sub(before, std::memory_order_relaxed);
  run_uses_[size_class].blocks.fetch_add(1, std::memory_order_relaxed);
  run_uses_[size_class].bytes.fetch_add(now, std::memory_order_relaxed);
}

void Heap::NoteSingle(uint64_t first_unit) {
  MutexLock lock(singles_mutex_);
  singles_.insert(first_unit);
  single_count_.fetch_add(1, std::memory_order_relaxed);
}

std::byte* Heap::AllocateSingleBelow(uint32_t size_class, const std::byte* end) {
  const uint64_t bytes = AlignUp(SizeClassBytes(size_class), kUnitBytes);
  const auto first = runs_.Take(bytes / kUnitBytes, 1, UnitOf(end), /*also_kept=*/true);
  if (!first) return nullptr;
  CountRun(size_class, bytes);
  NoteSingle(*first);
  return begin_ + *first * kUnitBytes;
}

bool Heap::IsSingle(const std::byte* block) const {
  if (single_count_.load(std::memory_order_relaxed) == 0) return false;
  if (static_cast<uint64_t>(block - begin_) % kUnitBytes != 0) return false;
  MutexLock lock(singles_mutex_);
  return singles_.contains(UnitOf(block));
}

bool Heap::FreeSingle(std::byte* block, uint32_t size_class) {
  const uint64_t first = UnitOf(block);
  {
    MutexLock lock(singles_mutex_);
    if (static_cast<uint64_t>(block - begin_) % kUnitBytes != 0 || singles_.erase(first) == 0) {
      return false;
    }
  }
  single_count_.fetch_sub(1, std::memory_order_relaxed);
  FreeRun(first, size_class);
  return true;
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
  table_bytes_.fetch_add(TableBytes(bytes), std::memory_order_relaxed);
  MutexLock lock(tables_mutex_);
  tables_.push_back(*first);
  return begin_ + *first * kUnitBytes;
}

void Heap::FreeTable(std::byte* block, uint64_t bytes) {
  table_bytes_.fetch_sub(TableBytes(bytes), std::memory_order_relaxed);
  const uint64_t first = static_cast<uint64_t>(block - begin_) / kUnitBytes;
  {
    MutexLock lock(tables_mutex_);
    std::erase(tables_, first);
  }
  runs_.Free(first, TableBytes(bytes) / kUnitBytes);
}

std::array<Heap::ClassUse, kSizeClassMax + 1> Heap::UseByClass() const {
  TakeStatistics();
  std::array<ClassUse, kSizeClassMax + 1> uses{};
  for (uint32_t size_class = 1; size_class <= kSizeClassMax; ++size_class) {
    const RunUse& runs = run_uses_[size_class];
    uses[size_class] = {runs.blocks.load(std::memory_order_relaxed),
                        runs.bytes.load(std::memory_order_relaxed)};
  }
  const auto bins = JemallocGet<unsigned>("arenas.nbins");
  for (unsigned i = 0; i < bins; ++i) {
    const auto bytes = JemallocGet<size_t>(absl::StrCat("arenas.bin.", i, ".size"));
    const uint32_t size_class = SizeClassFor(bytes);
    if (SizeClassBytes(size_class) != bytes || IsLargeClass(size_class)) continue;
    const auto blocks =
        JemallocGet<size_t>(absl::StrCat("stats.arenas.", arena_, ".bins.", i, ".curregs"));
    uses[size_class].blocks += blocks;
    uses[size_class].bytes += blocks * bytes;
  }
  if (slabs_ == nullptr) return uses;
  slabs_->ForEachKind([&](uint64_t bytes, uint64_t blocks) {
    ClassUse& use = uses[SizeClassFor(bytes)];
    use.blocks += blocks;
    use.bytes += blocks * bytes;
  });
  return uses;
}

// Begins with the blocks of a former process.
//
// A run is taken where it was. jemalloc cannot be told which small blocks are in use. But it takes
// a new slab when it has no free block of a size, and HeapExtents tells it where that begins. So
// this allocates all blocks of each slab, one slab after the other, and then frees those that were
// free. From then on the heap is like any other.

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
