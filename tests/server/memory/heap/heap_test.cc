#include "server/memory/heap/heap.h"

#include <gtest/gtest.h>
#include <jemalloc/jemalloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace gannet {
namespace {

// Page-aligned zeroed memory that only takes pages when touched.
class Memory {
 public:
  explicit Memory(size_t size)
      : span_(static_cast<std::byte*>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
              size) {}
  ~Memory() { munmap(span_.data(), span_.size()); }
  std::span<std::byte> span() const { return span_; }

 private:
  std::span<std::byte> span_;
};

std::unique_ptr<Heap> MakeHeap(const Memory& memory) {
  auto heap = Heap::Create(memory.span());
  EXPECT_TRUE(heap.ok()) << heap.status();
  return std::move(heap).value();
}

using Blocks = std::vector<std::pair<std::byte*, uint32_t>>;

// Allocates blocks of sizes from `pick` until the heap is full; returns the share of it in use.
template <class Pick>
double Fill(Heap& heap, Pick pick, Blocks* blocks) {
  int refused = 0;
  while (refused < 100) {
    const uint32_t size_class = pick();
    std::byte* block = heap.Allocate(SizeClassBytes(size_class));
    if (block == nullptr) {
      ++refused;
      continue;
    }
    blocks->emplace_back(block, size_class);
  }
  return static_cast<double>(heap.use().allocated_bytes()) / heap.capacity_bytes();
}

void FreeAll(Heap& heap, Blocks* blocks) {
  for (auto [block, size_class] : *blocks) heap.Free(block, size_class);
  blocks->clear();
}

// Frees some blocks at random, keeps the others.
void FreeSome(Heap& heap, Blocks* blocks, std::mt19937& random) {
  std::shuffle(blocks->begin(), blocks->end(), random);
  for (size_t n = blocks->size() / 3; n > 0; --n) {
    heap.Free(blocks->back().first, blocks->back().second);
    blocks->pop_back();
  }
}

// A heap that begins with the blocks of another one, over the same memory.
TEST(HeapTest, BeginsWithTheBlocksOfAFormerOne) {
  const Memory memory((64 << 20) + 12288);
  std::mt19937 random(1);
  for (const uint32_t most : {16u, 40u, 60u}) {
    HeapMap map(memory.span().size());
    Blocks blocks;
    uint64_t bytes = 0;
    {
      const HeapMap empty(memory.span().size());
      auto heap = Heap::Create(memory.span(), &empty);
      ASSERT_TRUE(heap.ok()) << heap.status();
      for (int round = 0; round < 3; ++round) {
        Fill(
            **heap, [&] { return 3 + static_cast<uint32_t>(random() % most); }, &blocks);
        FreeSome(**heap, &blocks, random);
      }
      bytes = (*heap)->use().occupied_bytes();
    }
    for (auto [block, size_class] : blocks) {
      const uint64_t offset = block - memory.span().data();
      ASSERT_EQ(map.Take(offset, SizeClassBytes(size_class)), HeapMap::Taken::kNow);
      ASSERT_EQ(map.Take(offset, SizeClassBytes(size_class)), HeapMap::Taken::kBefore);
    }
    auto heap = Heap::Create(memory.span(), &map);
    ASSERT_TRUE(heap.ok()) << heap.status();
    EXPECT_EQ((*heap)->use().occupied_bytes(), bytes);
    Blocks more;
    Fill(
        **heap, [&] { return 3 + static_cast<uint32_t>(random() % most); }, &more);
    std::vector<std::pair<std::byte*, std::byte*>> all;
    for (const Blocks& some : {blocks, more}) {
      for (auto [block, size_class] : some)
        all.emplace_back(block, block + SizeClassBytes(size_class));
    }
    std::ranges::sort(all);
    for (size_t i = 1; i < all.size(); ++i) ASSERT_LE(all[i - 1].second, all[i].first);
    FreeAll(**heap, &blocks);
    FreeAll(**heap, &more);
    // What is free has come together again.
    std::byte* const large = (*heap)->Allocate(40 << 20);
    EXPECT_NE(large, nullptr);
    if (large != nullptr) (*heap)->Free(large, SizeClassFor(40 << 20));
  }
}

TEST(HeapTest, RefusesBlocksThatNoHeapHas) {
  using Taken = HeapMap::Taken;
  HeapMap map(1 << 20);
  EXPECT_EQ(map.Take(64, 64), Taken::kNow);
  EXPECT_EQ(map.Take(128, 48), Taken::kImpossible) << "another size in the same slab";
  EXPECT_EQ(map.Take(80, 64), Taken::kImpossible) << "between two blocks";
  EXPECT_EQ(map.Take(0, 65536), Taken::kImpossible) << "over a slab";
  EXPECT_EQ(map.Take(4096 + 64, 65536), Taken::kImpossible) << "no unit begins there";
  EXPECT_EQ(map.Take(4096 + Heap::kUnitBytes, 65536), Taken::kNow);
  EXPECT_EQ(map.Take(4096 + Heap::kUnitBytes, 65536), Taken::kBefore);
  EXPECT_EQ(map.Take(4096 + Heap::kUnitBytes, 60000), Taken::kImpossible) << "another length";
  EXPECT_EQ(map.Take(65536, 65536), Taken::kImpossible) << "overlaps";
  EXPECT_EQ(map.TakeTable(65536, 1024), Taken::kImpossible) << "overlaps";
  EXPECT_EQ(map.Take(4096 + Heap::kUnitBytes + 65536, 65537), Taken::kNow) << "right behind";
  EXPECT_EQ(map.Take((1 << 20) - 32, 64), Taken::kImpossible) << "over the end";
  EXPECT_EQ(map.Take((1 << 20) - 8192, 8193), Taken::kImpossible) << "over the end";
  EXPECT_EQ(map.Take(UINT64_MAX - 15, 64), Taken::kImpossible);
  EXPECT_EQ(map.Take(512 << 10, 0), Taken::kImpossible) << "no bytes";
  EXPECT_EQ(map.Take(512 << 10, 100 << 20), Taken::kImpossible) << "no size of an item";
}

TEST(HeapTest, ALargeItemsBlockHasItsOwnLength) {
  Memory memory(1 << 20);
  auto heap = MakeHeap(memory);
  std::byte* const a = heap->Allocate(66'000);
  std::byte* const b = heap->Allocate(4'097);
  std::byte* const c = heap->Allocate(4'097);
  EXPECT_EQ(heap->use().allocated_bytes(), AlignUp(66'000, Heap::kUnitBytes) + 2 * 4'608);
  EXPECT_EQ(b - a, static_cast<ptrdiff_t>(AlignUp(66'000, Heap::kUnitBytes)));
  EXPECT_EQ(c - b, 4'608);
  heap->Free(b, SizeClassFor(4'097));
  EXPECT_EQ(heap->AllocateBelow(4'097, b), nullptr);
  EXPECT_EQ(heap->AllocateBelow(4'097, c), b);
}

// A client takes a slot for damaged if its class's bytes reach over the end of the region.
TEST(HeapTest, TheBytesOfABlocksClassLieInTheMemory) {
  Memory memory(1 << 20);
  auto heap = MakeHeap(memory);
  for (const uint64_t bytes : {66'000, 20'000, 4'097, 33'000}) {
    while (const std::byte* const block = heap->Allocate(bytes)) {
      EXPECT_LE(block + SizeClassBytes(SizeClassFor(bytes)),
                memory.span().data() + memory.span().size());
    }
  }
  // What no large item may take serves small ones.
  while (heap->Allocate(64) != nullptr) {
  }
  EXPECT_GE(heap->use().allocated_bytes(), heap->capacity_bytes() - 8 * SmallBlocks::PageBytes());
}

TEST(HeapTest, BlocksHaveExactlyTheBytesOfTheirClass) {
  for (uint32_t c = 2; c <= kSizeClassMax; ++c) {
    EXPECT_EQ(nallocx(SizeClassBytes(c), 0), SizeClassBytes(c)) << "class " << c;
    EXPECT_EQ(nallocx(SizeClassBytes(c - 1) + 1, 0), SizeClassBytes(c)) << "class " << c;
  }
}

TEST(HeapTest, BlocksLieInsideTheMemoryAlignedAndApart) {
  Memory memory(64 << 20);
  auto heap = MakeHeap(memory);
  std::mt19937 random(1);
  Blocks blocks;
  Fill(
      *heap, [&] { return 1 + random() % kSizeClassMax; }, &blocks);
  std::sort(blocks.begin(), blocks.end());
  const std::byte* end = memory.span().data();
  for (auto [block, size_class] : blocks) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kItemAlignment, 0u);
    EXPECT_GE(block, end);
    end = block + SizeClassBytes(size_class);
  }
  EXPECT_LE(end, memory.span().data() + memory.span().size());
}

// Who clears a piece of memory claims what becomes free of it, so that others allocate elsewhere.
TEST(HeapTest, WhatIsClaimedIsAllocatedByNobodyUntilItIsGivenBack) {
  const Memory memory(1 << 20);
  const auto heap = MakeHeap(memory);
  std::byte* const block = heap->Allocate(100'000);
  std::byte* const gap = heap->Allocate(300'000);
  ASSERT_NE(heap->Allocate(100'000), nullptr) << "the end of the piece";
  heap->Free(gap, SizeClassFor(300'000));
  const std::span<std::byte> piece = heap->WholeRuns(0, 400'000);
  Heap::Claims claims;
  heap->ClaimFree(piece, &claims);
  std::byte* const other = heap->Allocate(100'000);
  EXPECT_GE(other, piece.data() + piece.size());
  heap->Free(block, SizeClassFor(100'000));
  heap->ClaimFree(piece, &claims);
  EXPECT_EQ(claims.size(), 2u);
  heap->GiveBack(&claims);
  EXPECT_TRUE(claims.empty());
  EXPECT_EQ(heap->Allocate(300'000), piece.data()) << "the pieces are one again";
}

TEST(HeapTest, CountsWhatIsAllocated) {
  Memory memory(1 << 20);
  auto heap = MakeHeap(memory);
  EXPECT_EQ(heap->use().allocated_bytes(), 0u);
  std::byte* a = heap->Allocate(100);
  std::byte* b = heap->Allocate(5000);
  EXPECT_EQ(heap->use().allocated_bytes(), 112u + 5120u);
  heap->Free(a, SizeClassFor(100));
  heap->Free(b, SizeClassFor(5000));
  EXPECT_EQ(heap->use().allocated_bytes(), 0u);
}

TEST(HeapTest, FullHeapRefusesAndServesAgainAfterAFree) {
  Memory memory(1 << 20);
  auto heap = MakeHeap(memory);
  Blocks blocks;
  Fill(
      *heap, [] { return SizeClassFor(64 << 10); }, &blocks);
  EXPECT_GE(blocks.size(), 14u);
  EXPECT_EQ(heap->Allocate(64 << 10), nullptr);
  heap->Free(blocks.back().first, blocks.back().second);
  EXPECT_NE(heap->Allocate(64 << 10), nullptr);
}

TEST(HeapTest, KeepsMemoryFreeThatOnlyMovesUse) {
  Memory memory(16 << 20);
  auto heap = MakeHeap(memory);
  const uint64_t kept = heap->capacity_bytes() / 10;
  heap->KeepFree(kept);
  constexpr uint64_t kLarge = 100'000;
  std::byte* const first = heap->Allocate(kLarge);
  ASSERT_NE(first, nullptr);
  while (heap->Allocate(kLarge) != nullptr) {
  }
  while (heap->Allocate(100) != nullptr) {
  }
  EXPECT_GE(heap->capacity_bytes() - heap->ActiveBytes(), kept);
  EXPECT_LT(heap->capacity_bytes() - heap->ActiveBytes(), kept + 2 * kLarge);
  EXPECT_EQ(heap->AllocateTable(kLarge), nullptr);
  EXPECT_NE(heap->AllocateBelow(kLarge, memory.span().data() + memory.span().size()), nullptr);
  heap->KeepFree(0);
  EXPECT_NE(heap->Allocate(kLarge), nullptr);
}

TEST(HeapTest, OneSizeFillsNearlyAllOfTheHeap) {
  for (uint64_t bytes : {64, 128, 256, 1024, 4096, 14336, 16384, 65536, 1280 << 10}) {
    Memory memory(200 << 20);
    auto heap = MakeHeap(memory);
    Blocks blocks;
    const double used = Fill(
        *heap, [&] { return SizeClassFor(bytes); }, &blocks);
    std::printf("one size, %8lu bytes: %.1f %% of the heap in use\n", bytes, 100 * used);
    EXPECT_GE(used, 0.98) << bytes;
  }
}

// Fills with sizes of one range, empties, and refills with sizes of another, over and over.
TEST(HeapTest, ChangesOfSizesLeaveItUsable) {
  Memory memory(256 << 20);
  auto heap = MakeHeap(memory);
  std::mt19937 random(7);
  Blocks blocks;
  const std::pair<uint32_t, uint32_t> kRanges[] = {
      {64, 256}, {1024, 4096}, {100, 2000}, {16 << 10, 1 << 20}, {64, 512}, {128, 1 << 20}};
  for (auto [low, high] : kRanges) {
    std::uniform_int_distribution<uint32_t> size(low, high);
    const double used = Fill(
        *heap, [&] { return SizeClassFor(size(random)); }, &blocks);
    std::printf("emptied, then %7u..%7u bytes: %.1f %% of the heap in use\n", low, high,
                100 * used);
    EXPECT_GE(used, 0.85) << low << ".." << high;
    std::shuffle(blocks.begin(), blocks.end(), random);
    FreeAll(*heap, &blocks);
  }
  EXPECT_EQ(heap->use().allocated_bytes(), 0u);
}

// The new sizes come while the old ones go, as when a working set drifts.
TEST(HeapTest, ADriftOfSizesLeavesItUsable) {
  Memory memory(256 << 20);
  auto heap = MakeHeap(memory);
  std::mt19937 random(11);
  Blocks old_blocks, new_blocks;
  std::uniform_int_distribution<uint32_t> small(64, 256), large(300, 1500);
  Fill(
      *heap, [&] { return SizeClassFor(small(random)); }, &old_blocks);
  std::shuffle(old_blocks.begin(), old_blocks.end(), random);
  double used = 0;
  while (!old_blocks.empty()) {
    const size_t n = std::min<size_t>(old_blocks.size(), 20'000);
    Blocks go(old_blocks.end() - n, old_blocks.end());
    old_blocks.resize(old_blocks.size() - n);
    FreeAll(*heap, &go);
    used = Fill(
        *heap, [&] { return SizeClassFor(large(random)); }, &new_blocks);
  }
  std::printf("drifted to the new sizes: %.1f %% of the heap in use\n", 100 * used);
  EXPECT_GE(used, 0.85);
}

TEST(HeapTest, ThreadsShareIt) {
  Memory memory(16 << 20);
  auto heap = MakeHeap(memory);
  auto work = [&](int id) {
    std::mt19937 random(id);
    Blocks mine;
    for (int i = 0; i < 20'000; ++i) {
      if (mine.size() < 100 && random() % 2 == 0) {
        const uint32_t size_class = 1 + random() % 30;
        std::byte* block = heap->Allocate(SizeClassBytes(size_class));
        if (block == nullptr) continue;
        std::memset(block, id, SizeClassBytes(size_class));
        mine.emplace_back(block, size_class);
      } else if (!mine.empty()) {
        auto [block, size_class] = mine.back();
        mine.pop_back();
        ASSERT_EQ(std::to_integer<int>(block[0]), id);
        ASSERT_EQ(std::to_integer<int>(block[SizeClassBytes(size_class) - 1]), id);
        heap->Free(block, size_class);
      }
    }
    FreeAll(*heap, &mine);
  };
  std::vector<std::thread> threads;
  for (int id = 1; id <= 4; ++id) threads.emplace_back(work, id);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(heap->use().allocated_bytes(), 0u);
}

TEST(HeapTest, NothingIsWrittenIntoFreedBlocks) {
  Memory memory(4 << 20);
  auto heap = MakeHeap(memory);
  Blocks blocks;
  Fill(
      *heap, [] { return SizeClassFor(128); }, &blocks);
  for (auto [block, size_class] : blocks) std::memset(block, 0x5a, SizeClassBytes(size_class));
  FreeAll(*heap, &blocks);
  Fill(
      *heap, [] { return SizeClassFor(20 << 10); }, &blocks);
  for (auto [block, size_class] : blocks) {
    const uint64_t bytes = SizeClassBytes(size_class);
    EXPECT_EQ(std::count(block, block + bytes, std::byte{0x5a}) +
                  std::count(block, block + bytes, std::byte{0}),
              static_cast<ptrdiff_t>(bytes));
  }
}

TEST(HeapTest, ManyHeapsComeAndGo) {
  Memory memory(1 << 20);
  for (int i = 0; i < 5000; ++i) {  // more than jemalloc has arenas at a time
    auto heap = MakeHeap(memory);
    ASSERT_NE(heap->Allocate(1), nullptr);
  }
}

TEST(HeapTest, LessThanAPageIsRefused) {
  Memory memory(4096);
  EXPECT_EQ(Heap::Create(memory.span().first(4095)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HeapTest, CountsBlocksByClassWithoutTables) {
  Memory memory(64 << 20);
  const std::unique_ptr<Heap> heap = MakeHeap(memory);
  const auto sum = [](const auto& uses) {
    uint64_t bytes = 0;
    for (const HeapUse::OfClass& use : uses) bytes += use.bytes;
    return bytes;
  };
  Blocks blocks;
  for (const uint64_t bytes : {16, 128, 128, 256, 33'000, 1'000'000}) {
    blocks.emplace_back(heap->Allocate(bytes), SizeClassFor(bytes));
    ASSERT_NE(blocks.back().first, nullptr);
  }
  std::byte* const table = heap->AllocateTable(1 << 20);
  auto uses = heap->UseByClass();
  EXPECT_EQ(uses[1].blocks, 1u);
  EXPECT_EQ(uses[8].blocks, 2u);
  EXPECT_EQ(uses[8].bytes, 256u);
  EXPECT_EQ(uses[SizeClassFor(33'000)].blocks, 1u);
  EXPECT_EQ(uses[SizeClassFor(33'000)].bytes, AlignUp(33'000, Heap::kUnitBytes));
  EXPECT_EQ(sum(uses), heap->use().allocated_bytes());
  for (const auto& [block, size_class] : blocks) heap->Free(block, size_class);
  heap->FreeTable(table, 1 << 20);
  EXPECT_EQ(sum(heap->UseByClass()), 0u);
  EXPECT_EQ(heap->ActiveBytes(), 0u);
}

// What a write is judged by that found no room: whether it would fit without all other items.
TEST(HeapTest, PlaceAloneIsWhereABlockWouldBeInAnEmptyHeap) {
  constexpr uint64_t kBytes = 1 << 20;
  Memory memory(kBytes);
  const auto heap = MakeHeap(memory);
  while (heap->Allocate(40'000) != nullptr) {
  }
  EXPECT_EQ(heap->PlaceAlone(kBytes), 0u);
  EXPECT_EQ(heap->PlaceAlone(kBytes + 1), std::nullopt);
  heap->KeepFree(kBytes / 4);
  EXPECT_EQ(heap->PlaceAlone(kBytes * 3 / 4), 0u);
  EXPECT_EQ(heap->PlaceAlone(kBytes * 3 / 4 + 1), std::nullopt);
}

TEST(HeapTest, PlaceAloneIsBesideTheNewestTable) {
  constexpr uint64_t kBytes = 1 << 20;
  constexpr uint64_t kTable = kBytes / 8;
  Memory memory(kBytes);
  const auto heap = MakeHeap(memory);
  std::byte* const former = heap->AllocateTable(kTable);
  ASSERT_NE(heap->AllocateTable(kTable), nullptr);
  EXPECT_EQ(heap->PlaceAlone(2 * kTable), 2 * kTable) << "behind it";
  EXPECT_EQ(heap->PlaceAlone(kTable), 0u) << "the former table will have gone";
  EXPECT_EQ(heap->PlaceAlone(kBytes - 2 * kTable), 2 * kTable);
  EXPECT_EQ(heap->PlaceAlone(kBytes - kTable), std::nullopt) << "it would have to be on both sides";
  heap->FreeTable(former, kTable);
  EXPECT_NE(heap->Allocate(kBytes - 2 * kTable), nullptr);
}

}  // namespace
}  // namespace gannet
