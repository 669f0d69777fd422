#include "client/engine/shared_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "common/layout/bucket.h"
#include "softverbs/tests/support/test_seed.h"

namespace gannet {
namespace {

using ::testing::UnorderedElementsAre;

struct Read {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  std::vector<uint32_t> ops;
};

std::vector<Read> TakeAll(SharedWindows& windows) {
  std::vector<Read> reads;
  windows.Take([&](std::span<const SharedWindows::Wanted> wanted, uint32_t bytes) {
    reads.push_back({wanted[0].offset, bytes, {}});
    for (const auto& it : wanted) reads.back().ops.push_back(it.op);
  });
  EXPECT_TRUE(windows.empty());
  return reads;
}

// READs for windows that begin at these buckets; op i wants the i-th.
std::vector<Read> ReadsOf(const std::vector<uint64_t>& buckets) {
  SharedWindows windows(static_cast<uint32_t>(buckets.size()));
  for (uint32_t i = 0; i < buckets.size(); ++i) windows.Add({0, i, buckets[i] * kBucketBytes});
  return TakeAll(windows);
}

TEST(SharedWindowsTest, OneWindowIsOneRead) {
  const std::vector<Read> reads = ReadsOf({5});
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0].offset, 5 * kBucketBytes);
  EXPECT_EQ(reads[0].bytes, kWindowBytes);
}

TEST(SharedWindowsTest, TheSameWindowIsReadOnce) {
  const std::vector<Read> reads = ReadsOf({7, 7, 7});
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0].bytes, kWindowBytes);
  EXPECT_THAT(reads[0].ops, UnorderedElementsAre(0, 1, 2));
}

TEST(SharedWindowsTest, AWindowThatOverlapsAnotherMakesItsReadLonger) {
  const std::vector<Read> reads = ReadsOf({8, 7});
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0].offset, 7 * kBucketBytes);
  EXPECT_EQ(reads[0].bytes, 3 * kBucketBytes);
  EXPECT_THAT(reads[0].ops, UnorderedElementsAre(0, 1));
}

TEST(SharedWindowsTest, AReadIsAtMostAsLongAsItsBuffer) {
  const std::vector<Read> reads = ReadsOf({1, 2, 3, 4, 5, 6});
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].bytes, 4 * kBucketBytes);
  EXPECT_THAT(reads[0].ops, UnorderedElementsAre(0, 1, 2));
  EXPECT_EQ(reads[1].bytes, 4 * kBucketBytes);
  EXPECT_THAT(reads[1].ops, UnorderedElementsAre(3, 4, 5));
}

TEST(SharedWindowsTest, WindowsThatLieApartAreReadEach) {
  EXPECT_EQ(ReadsOf({1, 4, 9}).size(), 3u);
}

TEST(SharedWindowsTest, ServersShareNothing) {
  SharedWindows windows(2);
  windows.Add({.server = 0, .op = 0, .offset = 0});
  windows.Add({.server = 1, .op = 1, .offset = 0});
  EXPECT_EQ(TakeAll(windows).size(), 2u);
}

TEST(SharedWindowsTest, EveryWindowLiesWholeInItsRead) {
  std::mt19937_64 random(test_support::TestSeed());
  SharedWindows windows(1000);
  for (int round = 0; round < 100; ++round) {
    std::vector<SharedWindows::Wanted> wanted;
    const uint64_t buckets = 1 + random() % 2000;
    for (uint32_t i = 0; i < 1000; ++i) {
      wanted.push_back({static_cast<uint32_t>(random() % 3), i, random() % buckets * kBucketBytes});
      windows.Add(wanted.back());
    }
    std::vector<int> brought(wanted.size());
    std::pair<uint32_t, uint64_t> before{};
    windows.Take([&](std::span<const SharedWindows::Wanted> group, uint32_t bytes) {
      ASSERT_FALSE(group.empty());
      ASSERT_LE(bytes, SharedWindows::kReadBytesMax);
      const std::pair<uint32_t, uint64_t> place{group[0].server, group[0].offset};
      ASSERT_LE(before, place);
      before = place;
      for (const auto& it : group) {
        ++brought[it.op];
        ASSERT_EQ(it.server, group[0].server);
        ASSERT_EQ(it.offset, wanted[it.op].offset);
        ASSERT_GE(it.offset, group[0].offset);
        ASSERT_LE(it.offset + kWindowBytes, group[0].offset + bytes);
      }
    });
    EXPECT_THAT(brought, ::testing::Each(1));
  }
}

}  // namespace
}  // namespace gannet
