#include "server/memory/heap/slabs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "common/layout/size_class.h"

namespace gannet {
namespace {

constexpr uint64_t kHeapBytes = 4 << 20;

// Slabs over a heap that has no memory: they never touch it.
struct Slabbed {
  Slabbed() : runs(kHeapBytes / Slabs::kUnitBytes), slabs(kHeapBytes, runs) {}
  RunAllocator runs;
  Slabs slabs;
};

TEST(SlabsTest, BlocksHaveLengthsInSmallSteps) {
  EXPECT_EQ(Slabs::BlockBytes(129), 144u);
  EXPECT_EQ(Slabs::BlockBytes(148), 160u);
  EXPECT_EQ(Slabs::BlockBytes(256), 256u);
  EXPECT_EQ(Slabs::BlockBytes(257), 272u);
  EXPECT_EQ(Slabs::BlockBytes(1048), 1088u);
  EXPECT_EQ(Slabs::BlockBytes(3969), 4096u);
}

TEST(SlabsTest, BlocksOfAnyLengthFillAHeapApartAndWhole) {
  for (uint64_t bytes = Slabs::kBytesMin; bytes <= Slabs::kBytesMax; bytes += 61) {
    Slabbed heap;
    std::vector<uint64_t> offsets;
    while (const auto block = heap.slabs.Allocate(bytes)) {
      ASSERT_EQ(block->bytes, heap.slabs.BlockBytes(bytes));
      ASSERT_EQ(heap.slabs.BytesAt(block->offset), block->bytes);
      ASSERT_EQ(block->offset % kItemAlignment, 0u);
      ASSERT_LE(block->offset + SizeClassBytes(SizeClassFor(bytes)), kHeapBytes)
          << "a client would READ behind the heap";
      offsets.push_back(block->offset);
    }
    const uint64_t block_bytes = heap.slabs.BlockBytes(bytes);
    EXPECT_GT(offsets.size() * block_bytes, kHeapBytes - (20 << 10)) << bytes;
    std::ranges::sort(offsets);
    for (size_t i = 1; i < offsets.size(); ++i) {
      ASSERT_GE(offsets[i], offsets[i - 1] + block_bytes);
    }
    for (const uint64_t offset : offsets) EXPECT_EQ(heap.slabs.Free(offset), block_bytes);
    EXPECT_EQ(heap.runs.free_units(), heap.runs.units());
  }
}

// Compaction relies on it: an item that is moved goes down.
TEST(SlabsTest, GivesTheLowestFreeBlock) {
  Slabbed heap;
  std::vector<uint64_t> offsets;
  for (int i = 0; i < 1000; ++i) offsets.push_back(heap.slabs.Allocate(600)->offset);
  for (const int i : {777, 13, 500, 14}) heap.slabs.Free(offsets[i]);
  for (const int i : {13, 14, 500, 777}) EXPECT_EQ(heap.slabs.Allocate(600)->offset, offsets[i]);
}

TEST(SlabsTest, AnEmptySlabServesAnotherLength) {
  Slabbed heap;
  std::vector<uint64_t> offsets;
  while (const auto block = heap.slabs.Allocate(1000)) offsets.push_back(block->offset);
  EXPECT_FALSE(heap.slabs.Allocate(300));
  for (const uint64_t offset : offsets) heap.slabs.Free(offset);
  size_t blocks = 0;
  while (heap.slabs.Allocate(300)) ++blocks;
  EXPECT_GT(blocks * heap.slabs.BlockBytes(300), kHeapBytes - (20 << 10));
}

// So what is evicted or removed of the same class makes room.
TEST(SlabsTest, AFullHeapGivesLongerBlocksOfTheSameClassOnly) {
  Slabbed heap;
  const auto longer = heap.slabs.Allocate(1280), other = heap.slabs.Allocate(1281);
  while (heap.slabs.Allocate(1048)) {
  }
  heap.slabs.Free(other->offset);
  const auto rest = heap.slabs.AllocateLonger(1048);
  ASSERT_TRUE(rest) << "the other blocks of the slab of 1,280 bytes";
  EXPECT_EQ(rest->bytes, 1280u);
  while (heap.slabs.AllocateLonger(1048)) {
  }
  heap.slabs.Free(longer->offset);
  EXPECT_EQ(heap.slabs.AllocateLonger(1048)->offset, longer->offset);
}

TEST(SlabsTest, CountsBlocksByLength) {
  Slabbed heap;
  const auto a = heap.slabs.Allocate(300), b = heap.slabs.Allocate(300);
  heap.slabs.Allocate(4096);
  heap.slabs.Free(a->offset);
  uint64_t bytes = 0;
  heap.slabs.ForEachKind([&](uint64_t block, uint64_t blocks) { bytes += block * blocks; });
  EXPECT_EQ(bytes, b->bytes + 4096);
}

TEST(SlabsTest, ThreadsShareThem) {
  Slabbed heap;
  const auto work = [&](uint32_t id) {
    std::mt19937 random(id);
    std::vector<Slabs::Block> mine;
    for (int i = 0; i < 20'000; ++i) {
      if (mine.size() < 200 && random() % 2 == 0) {
        const auto block = heap.slabs.Allocate(129 + random() % 700);
        if (block) mine.push_back(*block);
      } else if (!mine.empty()) {
        ASSERT_EQ(heap.slabs.BytesAt(mine.back().offset), mine.back().bytes);
        ASSERT_EQ(heap.slabs.Free(mine.back().offset), mine.back().bytes);
        mine.pop_back();
      }
    }
    for (const Slabs::Block& block : mine) heap.slabs.Free(block.offset);
  };
  std::vector<std::thread> threads;
  for (uint32_t id = 1; id <= 4; ++id) threads.emplace_back(work, id);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(heap.runs.free_units(), heap.runs.units());
}

}  // namespace
}  // namespace gannet
