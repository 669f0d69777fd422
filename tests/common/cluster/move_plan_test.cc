#include "common/cluster/move_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/cluster_map.h"
#include "common/cluster/map_changes.h"
#include "softverbs/tests/support/test_seed.h"

namespace gannet {
namespace {

using Bytes = std::vector<uint64_t>;
using Moves = std::vector<PartitionMove>;

const Bytes kAlike(kPartitions, 1 << 20);

// `groups` groups, to which partitions go by `owner`.
template <class F>
ClusterConfig MapOf(size_t groups, F owner) {
  ClusterConfig map = {.partitions = std::vector<uint16_t>(kPartitions)};
  for (size_t g = 0; g < groups; ++g) map.groups.push_back(absl::StrCat("g", g));
  for (uint32_t p = 0; p < kPartitions; ++p) map.partitions[p] = static_cast<uint16_t>(owner(p));
  return map;
}

// What each group has after the moves. Fails if a move is none.
Bytes After(const ClusterConfig& map, const Bytes& bytes, const Moves& moves) {
  std::vector<uint16_t> owners = map.partitions;
  for (const PartitionMove& move : moves) {
    EXPECT_EQ(owners[move.partition], map.partitions[move.partition]) << "it moves once";
    EXPECT_EQ(owners[move.partition], move.from);
    EXPECT_NE(move.from, move.to);
    owners[move.partition] = move.to;
  }
  Bytes all(map.groups.size());
  for (uint32_t p = 0; p < kPartitions; ++p) all[owners[p]] += bytes[p];
  return all;
}

// Of the group that is farthest from the mean, in percent.
uint64_t PercentFromEven(const Bytes& groups) {
  uint64_t total = 0;
  for (const uint64_t bytes : groups) total += bytes;
  const uint64_t mean = total / groups.size();
  uint64_t most = 0;
  for (const uint64_t bytes : groups) {
    most = std::max(most, (bytes > mean ? bytes - mean : mean - bytes) * 100 / mean);
  }
  return most;
}

TEST(MovePlanTest, WhatIsEvenStays) {
  EXPECT_TRUE(PlanBalance(MapOf(4, [](uint32_t p) { return p % 4; }), kAlike).empty());
  EXPECT_TRUE(PlanBalance(MapOf(1, [](uint32_t) { return 0; }), kAlike).empty());
  const ClusterConfig nearly = MapOf(2, [](uint32_t p) { return p < 530 ? 0 : 1; });
  EXPECT_TRUE(PlanBalance(nearly, kAlike).empty()) << "within a twentieth";
}

// 341 would be even, and 324 are even enough.
TEST(MovePlanTest, AThirdGroupTakesItsPartAndNoMore) {
  const ClusterConfig map = MapOf(3, [](uint32_t p) { return p % 2; });
  const Moves moves = PlanBalance(map, kAlike);
  EXPECT_GE(moves.size(), 324u);
  EXPECT_LE(moves.size(), 341u);
  for (const PartitionMove& move : moves) EXPECT_EQ(move.to, 2);
  EXPECT_LE(PercentFromEven(After(map, kAlike, moves)), 5u);
}

TEST(MovePlanTest, AnEmptyClusterIsMadeEvenByNumbers) {
  const ClusterConfig map = MapOf(2, [](uint32_t) { return 0; });
  const Moves moves = PlanBalance(map, Bytes(kPartitions));
  EXPECT_GE(moves.size(), 487u);
  EXPECT_LE(moves.size(), 512u);
}

TEST(MovePlanTest, FewLargePartitionsMoveRatherThanManySmallOnes) {
  const ClusterConfig map = MapOf(2, [](uint32_t p) { return p < 600 ? 0 : 1; });
  Bytes bytes = kAlike;
  for (uint32_t p = 0; p < 10; ++p) bytes[p] = 40 << 20;  // g0 is 566 MiB ahead
  const Moves moves = PlanBalance(map, bytes);
  EXPECT_LE(PercentFromEven(After(map, bytes, moves)), 5u);
  EXPECT_EQ(moves.size(), 7u) << "7 times 40 MiB are within a twentieth of 283";
}

TEST(MovePlanTest, WhatIsTooLargeEndsThePlan) {
  const ClusterConfig map = MapOf(2, [](uint32_t p) { return p % 2; });
  Bytes bytes = kAlike;
  bytes[0] = uint64_t{1} << 40;
  const Moves moves = PlanBalance(map, bytes);
  for (const PartitionMove& move : moves) EXPECT_NE(move.partition, 0);
  EXPECT_LE(moves.size(), 511u);
}

TEST(MovePlanTest, ClosedPartitionsStay) {
  ClusterConfig map = MapOf(2, [](uint32_t) { return 0; });
  std::vector<uint16_t> closed;
  for (uint16_t p = 0; p < 900; ++p) closed.push_back(p);
  map = ClosePartitions(map, "g0", closed).value();
  const Moves moves = PlanBalance(map, kAlike);
  EXPECT_EQ(moves.size(), 124u) << "all that may move";
  for (const PartitionMove& move : moves) EXPECT_GE(move.partition, 900);
  EXPECT_TRUE(absl::IsFailedPrecondition(PlanDrain(map, "g0", kAlike).status()));
}

TEST(MovePlanTest, ADrainedGroupGivesAllAndNobodyElseGivesAnything) {
  const ClusterConfig map = FillPartitions({"g0", "g1", "g2", "g3"});
  const auto moves = PlanDrain(map, "g2", kAlike);
  ASSERT_TRUE(moves.ok()) << moves.status();
  EXPECT_EQ(moves->size(), static_cast<size_t>(std::ranges::count(map.partitions, 2)));
  Bytes after = After(map, kAlike, *moves);
  EXPECT_EQ(after[2], 0u);
  after.erase(after.begin() + 2);
  EXPECT_LE(PercentFromEven(after), 5u);

  EXPECT_TRUE(absl::IsInvalidArgument(PlanDrain(map, "g4", kAlike).status()));
  const ClusterConfig alone = FillPartitions({"g"});
  EXPECT_TRUE(absl::IsFailedPrecondition(PlanDrain(alone, "g", kAlike).status()));
}

// Partitions of any size up to a hundredth of a group.
TEST(MovePlanTest, RandomClustersBecomeEven) {
  std::mt19937_64 random(test_support::TestSeed());
  for (int run = 0; run < 50; ++run) {
    const size_t groups = 2 + random() % 6;
    const size_t used = 1 + random() % groups;
    const ClusterConfig map = MapOf(groups, [&](uint32_t) { return random() % used; });
    Bytes bytes(kPartitions);
    for (uint64_t& it : bytes) it = 1'000 + random() % 1'000'000;
    const Moves moves = PlanBalance(map, bytes);
    ASSERT_LE(PercentFromEven(After(map, bytes, moves)), 5u) << groups << " groups, run " << run;
    ASSERT_LT(moves.size(), kPartitions);
  }
}

}  // namespace
}  // namespace gannet
