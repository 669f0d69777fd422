#include "server/memory/heap/run_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace gannet {
namespace {

TEST(RunAllocatorTest, TakesTheLowestRunThatIsLongEnough) {
  RunAllocator runs(1000);
  EXPECT_EQ(runs.Take(10), 0u);
  EXPECT_EQ(runs.Take(100), 10u);
  EXPECT_EQ(runs.Take(5), 110u);
  runs.Free(0, 10);
  EXPECT_EQ(runs.Take(11), 115u);
  EXPECT_EQ(runs.Take(4), 0u);
  EXPECT_EQ(runs.Take(6), 4u);
}

TEST(RunAllocatorTest, WhatIsFreeMerges) {
  RunAllocator runs(1000);
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(runs.Take(1), i);
  EXPECT_EQ(runs.Take(1), std::nullopt);
  for (uint64_t i = 0; i < 1000; i += 2) runs.Free(i, 1);
  EXPECT_EQ(runs.longest_free(), 1u);
  EXPECT_EQ(runs.Take(2), std::nullopt);
  for (uint64_t i = 1; i < 1000; i += 2) runs.Free(i, 1);
  EXPECT_EQ(runs.longest_free(), 1000u);
  EXPECT_EQ(runs.Take(1000), 0u);
}

TEST(RunAllocatorTest, TakesWhereItIsTold) {
  RunAllocator runs(200);
  EXPECT_TRUE(runs.TakeAt(60, 80));
  EXPECT_FALSE(runs.TakeAt(139, 2));
  EXPECT_FALSE(runs.TakeAt(0, 61));
  EXPECT_FALSE(runs.TakeAt(150, 51)) << "over the end";
  EXPECT_FALSE(runs.TakeAt(UINT64_MAX, 2));
  EXPECT_FALSE(runs.TakeAt(0, 0));
  EXPECT_TRUE(runs.TakeAt(140, 60));
  EXPECT_EQ(runs.UnitsAt(60), 80u);
  EXPECT_EQ(runs.UnitsAt(140), 60u);
  EXPECT_EQ(runs.free_units(), 60u);
}

TEST(RunAllocatorTest, TakesWhatIsFreeInARange) {
  RunAllocator runs(200);
  ASSERT_TRUE(runs.TakeAt(10, 5));
  ASSERT_TRUE(runs.TakeAt(100, 80));
  std::vector<std::pair<uint64_t, uint64_t>> taken;
  const auto note = [&taken](uint64_t first, uint64_t units) { taken.emplace_back(first, units); };
  runs.TakeFree(5, 100, note);
  EXPECT_EQ(taken, (std::vector<std::pair<uint64_t, uint64_t>>{{5, 5}, {15, 85}}));
  EXPECT_EQ(runs.free_units(), 200u - 85 - 90);
  runs.TakeFree(5, 100, note);
  EXPECT_EQ(taken.size(), 2u) << "nothing is free there any more";
  for (const auto& [first, units] : taken) runs.Free(first, units);
  EXPECT_EQ(runs.longest_free(), 85u);
}

TEST(RunAllocatorTest, TakesOnlyBelowAnEnd) {
  RunAllocator runs(200);
  ASSERT_TRUE(runs.TakeAt(0, 100));
  EXPECT_EQ(runs.Take(5, 1, 100), std::nullopt);
  EXPECT_EQ(runs.Take(5, 1, 101), 100u);
}

TEST(RunAllocatorTest, FindsAlignedRunsAlsoWhereTheyJustFit) {
  RunAllocator runs(4096);
  ASSERT_TRUE(runs.TakeAt(0, 4096));
  runs.Free(3, 9);       // holds no aligned run of 8
  runs.Free(104, 8);     // is one
  runs.Free(1001, 100);  // holds many
  EXPECT_EQ(runs.Take(8, 8), 104u);
  EXPECT_EQ(runs.Take(8, 8), 1008u);
  // Many free runs, none of which fits, do not hide one that does.
  for (uint64_t i = 1201; i < 3000; i += 16) runs.Free(i, 9);
  runs.Free(3011, 40);
  ASSERT_TRUE(runs.TakeAt(1016, 85));
  EXPECT_EQ(runs.Take(8, 8), 3016u);
}

TEST(RunAllocatorTest, TellsTheWholeRunsAroundAUnit) {
  using Range = RunAllocator::Range;
  const auto same = [](const Range& a, const Range& b) {
    return a.begin == b.begin && a.end == b.end;
  };
  RunAllocator runs(1000);
  ASSERT_TRUE(runs.TakeAt(100, 50));
  ASSERT_TRUE(runs.TakeAt(150, 20));
  ASSERT_TRUE(runs.TakeAt(200, 10));
  ASSERT_TRUE(runs.TakeAt(210, 790));
  EXPECT_TRUE(same(runs.WholeRuns(120, 1), {0, 150}));
  EXPECT_TRUE(same(runs.WholeRuns(149, 151), {0, 170}));
  EXPECT_TRUE(same(runs.WholeRuns(160, 20), {150, 170}));
  EXPECT_TRUE(same(runs.WholeRuns(160, 21), {150, 200}));
  EXPECT_TRUE(same(runs.WholeRuns(169, 51), {150, 210}));
  EXPECT_TRUE(same(runs.WholeRuns(205, 500), {170, 1000}));
  EXPECT_TRUE(same(runs.WholeRuns(180, 1), {170, 200})) << "itself free";
}

TEST(RunAllocatorTest, BearsEverySize) {
  for (const uint64_t units : {1, 63, 64, 65, 128, 129, 1000}) {
    RunAllocator runs(units);
    EXPECT_EQ(runs.free_units(), units);
    EXPECT_EQ(runs.Take(units + 1), std::nullopt);
    ASSERT_EQ(runs.Take(units), 0u);
    EXPECT_EQ(runs.UnitsAt(0), units);
    EXPECT_EQ(runs.Take(1), std::nullopt);
    EXPECT_EQ(runs.free_units(), 0u);
  }
}

// The same by looking at each unit.
class SlowRuns {
 public:
  explicit SlowRuns(uint64_t units) : taken_(units) {}
  std::optional<uint64_t> Lowest(uint64_t units) const {
    uint64_t run = 0;
    for (uint64_t i = 0; i < taken_.size(); ++i) {
      run = taken_[i] ? 0 : run + 1;
      if (run == units) return i + 1 - units;
    }
    return std::nullopt;
  }
  bool AllFree(uint64_t first, uint64_t units) const {
    return std::none_of(taken_.begin() + static_cast<ptrdiff_t>(first),
                        taken_.begin() + static_cast<ptrdiff_t>(first + units),
                        [](bool taken) { return taken; });
  }
  void Mark(uint64_t first, uint64_t units, bool taken) {
    std::fill_n(taken_.begin() + static_cast<ptrdiff_t>(first), units, taken);
  }

 private:
  std::vector<bool> taken_;
};

TEST(RunAllocatorTest, AgreesWithASlowOne) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %lu\n", seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    const uint64_t units = 1 + random() % 1500;
    const uint64_t longest = 1 + random() % (round % 2 == 0 ? 10 : 200);
    RunAllocator runs(units);
    SlowRuns slow(units);
    std::vector<std::pair<uint64_t, uint64_t>> taken;
    for (int i = 0; i < 2'000; ++i) {
      if (taken.empty() || random() % 5 > 1) {
        const uint64_t n = 1 + random() % longest;
        const uint64_t alignment = random() % 4 == 0 ? 8 : 1;
        const auto got = runs.Take(n, alignment);
        if (alignment == 1) {
          ASSERT_EQ(got, slow.Lowest(n));
        } else if (got) {
          ASSERT_EQ(*got % alignment, 0u);
          ASSERT_TRUE(slow.AllFree(*got, n));
        }
        if (!got) continue;
        slow.Mark(*got, n, true);
        taken.emplace_back(*got, n);
      } else {
        std::swap(taken[random() % taken.size()], taken.back());
        const auto [first, n] = taken.back();
        ASSERT_EQ(runs.UnitsAt(first), n);
        runs.Free(first, n);
        slow.Mark(first, n, false);
        taken.pop_back();
      }
    }
    for (const auto& [first, n] : taken) runs.Free(first, n);
    ASSERT_EQ(runs.longest_free(), units);
    ASSERT_EQ(runs.free_units(), units);
  }
}

}  // namespace
}  // namespace gannet
