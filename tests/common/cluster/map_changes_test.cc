#include "common/cluster/map_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/cluster/cluster_map.h"
#include "softverbs/tests/support/test_seed.h"

namespace gannet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Partitions = std::vector<uint16_t>;

// Partitions 0 to 511 are of g1, the others of g2.
ClusterConfig Halves() {
  ClusterConfig map = {.groups = {"g1", "g2"}, .partitions = Partitions(kPartitions)};
  for (uint32_t p = kPartitions / 2; p < kPartitions; ++p) map.partitions[p] = 1;
  return map;
}

ClusterConfig Closed(const Partitions& partitions) {
  auto map = ClosePartitions(Halves(), "g1", partitions);
  EXPECT_TRUE(map.ok()) << map.status();
  return map.ok() ? *map : Halves();
}

TEST(MapChangesTest, AMoveClosesAndThenGives) {
  const ClusterConfig closed = Closed({7, 3, 7});
  EXPECT_EQ(closed.revision, 1u);
  EXPECT_THAT(closed.closed, ElementsAre(3, 7));
  EXPECT_EQ(closed.partitions, Halves().partitions) << "they stay where they are";
  EXPECT_EQ(closed.changed[3], 1u);
  EXPECT_EQ(closed.changed[4], 0u);
  EXPECT_THAT(closed.lost, ElementsAre(1, 0)) << "g1 told of leases by which these were open";

  const auto given = GivePartitions(closed, "g2", Partitions{3, 7}, 1);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->revision, 2u);
  EXPECT_TRUE(given->closed.empty());
  EXPECT_EQ(given->partitions[3], 1);
  EXPECT_EQ(given->partitions[7], 1);
  EXPECT_EQ(given->partitions[4], 0);
  EXPECT_EQ(given->changed[7], 2u);
  EXPECT_THAT(given->lost, ElementsAre(1, 0));
}

TEST(MapChangesTest, AMoveThatIsGivenUpIsAChangeToo) {
  const auto open = ReopenPartitions(Closed({3, 7}), Partitions{3});
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(open->revision, 2u);
  EXPECT_THAT(open->closed, ElementsAre(7));
  EXPECT_EQ(open->partitions[3], 0);
  EXPECT_EQ(open->changed[3], 2u) << "clients must not take it for the one before";
  EXPECT_EQ(open->changed[7], 1u);
}

TEST(MapChangesTest, OnlyWhatWasClosedThenIsGiven) {
  EXPECT_TRUE(
      absl::IsFailedPrecondition(GivePartitions(Halves(), "g2", Partitions{3}, 0).status()));
  const auto open = ReopenPartitions(Closed({3}), Partitions{3});
  ASSERT_TRUE(open.ok());
  const auto again = ClosePartitions(*open, "g1", Partitions{3});
  ASSERT_TRUE(again.ok());
  const auto given = GivePartitions(*again, "g2", Partitions{3}, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(given.status())) << "by what was copied before";
  EXPECT_THAT(given.status().message(), HasSubstr("closed at revision 3, not 1"));
  EXPECT_TRUE(GivePartitions(*again, "g2", Partitions{3}, 3).ok());
}

TEST(MapChangesTest, OnlyTheOwnerClosesAndOnlyOnce) {
  const auto others = ClosePartitions(Halves(), "g2", Partitions{3});
  EXPECT_TRUE(absl::IsFailedPrecondition(others.status()));
  EXPECT_THAT(others.status().message(), HasSubstr("group g1 has partition 3"));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ClosePartitions(Closed({3}), "g1", Partitions{3}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(ReopenPartitions(Halves(), Partitions{3}).status()));
}

TEST(MapChangesTest, RefusesWhatIsNotThere) {
  EXPECT_TRUE(absl::IsInvalidArgument(ClosePartitions(Halves(), "g3", Partitions{3}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ClosePartitions(Halves(), "g1", Partitions{}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(ClosePartitions(Halves(), "g1", Partitions{kPartitions}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(GivePartitions(Closed({3}), "g3", Partitions{3}, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(AddGroup(Halves(), "a b").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(RemoveGroup(Halves(), "g3").status()));
}

TEST(MapChangesTest, AGroupComesWithNothingAndLeavesWithNothing) {
  const auto more = AddGroup(Closed({3}), "a");
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_THAT(more->groups, ElementsAre("a", "g1", "g2"));
  EXPECT_EQ(more->partitions[3], 1) << "of g1, as before";
  EXPECT_EQ(more->partitions[1023], 2);
  EXPECT_THAT(more->lost, ElementsAre(0, 1, 0));
  EXPECT_EQ(more->changed[3], 1u) << "no partition changed";
  EXPECT_TRUE(absl::IsFailedPrecondition(AddGroup(*more, "a").status()));

  EXPECT_TRUE(absl::IsFailedPrecondition(RemoveGroup(*more, "g1").status()));
  const auto fewer = RemoveGroup(*more, "a");
  ASSERT_TRUE(fewer.ok()) << fewer.status();
  EXPECT_EQ(fewer->groups, Halves().groups);
  EXPECT_EQ(fewer->partitions, Halves().partitions);
  EXPECT_THAT(fewer->lost, ElementsAre(1, 0));
  EXPECT_EQ(fewer->revision, 3u);
}

// Whatever is done, the map is one, comes back as it was encoded, and tells of each change.
TEST(MapChangesTest, RandomChangesKeepTheMapWhole) {
  std::mt19937_64 random(test_support::TestSeed());
  ClusterConfig map = FillPartitions({"g1", "g2", "g3"});
  std::vector<ClusterConfig> all = {map};
  int changes = 0;
  for (int i = 0; i < 600; ++i) {
    const auto partition = static_cast<uint16_t>(random() % 8);
    const std::string group(1, static_cast<char>('a' + random() % 4));
    const std::string& owner = map.groups[random() % map.groups.size()];
    const std::array<absl::StatusOr<ClusterConfig>, 5> next = {
        ClosePartitions(map, owner, Partitions{partition}),
        GivePartitions(map, owner, Partitions{partition},
                       map.revision == 0 ? 0 : map.changed[partition]),
        ReopenPartitions(map, Partitions{partition}), AddGroup(map, group),
        RemoveGroup(map, owner)};
    const absl::StatusOr<ClusterConfig>& taken = next[random() % next.size()];
    if (!taken.ok()) continue;
    ++changes;
    ASSERT_TRUE(Check(*taken).ok()) << Check(*taken);
    const auto again = DecodeClusterConfig(Encode(*taken));
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(*again, *taken);
    ASSERT_EQ(taken->revision, map.revision + 1);
    for (uint16_t p = 0; p < 8; ++p) {
      const bool same = map.groups[map.partitions[p]] == taken->groups[taken->partitions[p]] &&
                        std::ranges::count(map.closed, p) == std::ranges::count(taken->closed, p);
      const bool told = taken->changed[p] == taken->revision;
      ASSERT_NE(same, told) << "partition " << p;
    }
    map = *taken;
    // Whoever watches may have missed any number of changes.
    const ClusterConfig& before = all[random() % all.size()];
    ASSERT_TRUE(CheckFollows(before, map).ok()) << CheckFollows(before, map);
    ASSERT_FALSE(CheckFollows(map, before).ok()) << "it is older";
    all.push_back(map);
  }
  EXPECT_GT(changes, 20);
}

// What somebody writes who takes the map for a table that may be edited.
TEST(MapChangesTest, AMapThatNoChangeMakesDoesNotFollow) {
  const ClusterConfig closed = Closed({3});
  const ClusterConfig before = *GivePartitions(closed, "g2", Partitions{3}, 1);
  const auto expect_not = [&](const ClusterConfig& after, const std::string& why) {
    ASSERT_TRUE(Check(after).ok()) << Check(after);
    EXPECT_THAT(CheckFollows(before, after).message(), HasSubstr(why));
  };
  ClusterConfig swapped = before;
  ++swapped.revision;
  for (uint16_t& owner : swapped.partitions) owner = 1 - owner;
  expect_not(swapped, "no revision says when it was changed");
  swapped.changed.assign(kPartitions, swapped.revision);
  expect_not(swapped, "was not closed before");
  swapped.revision += 1;
  swapped.changed.assign(kPartitions, swapped.revision);
  expect_not(swapped, "was not closed before");

  ClusterConfig edited = before;
  edited.partitions[5] = 1;
  expect_not(edited, "its revision is the same");
  edited.revision = 1;
  edited.changed.assign(kPartitions, 1);
  expect_not(edited, "its revision is lower");
  edited = before;
  edited.revision = 3;
  edited.changed[5] = 1;
  expect_not(edited, "was changed at an earlier revision");
  edited = before;
  edited.revision = 3;
  edited.groups = {"a", "b", "g1", "g2"};
  edited.lost = {0, 0, 1, 0};
  for (uint16_t& owner : edited.partitions) owner += 2;
  expect_not(edited, "its groups are others");
}

TEST(MapChangesTest, AMapThatIsWrittenAgainFollows) {
  ClusterConfig again = Closed({3});
  again.revision = 9;
  EXPECT_TRUE(CheckFollows(Closed({3}), again).ok());
  EXPECT_TRUE(CheckFollows(again, again).ok());
}

}  // namespace
}  // namespace gannet
