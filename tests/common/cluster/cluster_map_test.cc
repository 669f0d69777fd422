#include "common/cluster/cluster_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gannet {
namespace {

TEST(ClusterMapTest, EachGroupGetsItsPart) {
  const ClusterConfig config = FillPartitions({"g3", "g1", "g2", "g4"});
  EXPECT_TRUE(Check(config).ok()) << Check(config);
  EXPECT_THAT(config.groups, testing::ElementsAre("g1", "g2", "g3", "g4"));
  std::vector<int> partitions(4);
  for (const uint16_t group : config.partitions) ++partitions[group];
  EXPECT_THAT(partitions, testing::Each(testing::AllOf(testing::Ge(200), testing::Le(312))));
}

TEST(ClusterMapTest, TheOrderOfGroupsDoesNotMatter) {
  EXPECT_EQ(FillPartitions({"a", "b", "c"}), FillPartitions({"c", "a", "b"}));
}

TEST(ClusterMapTest, AFurtherGroupTakesPartitionsAndMovesNoOthers) {
  const ClusterConfig before = FillPartitions({"a", "b", "c"});
  const ClusterConfig after = FillPartitions({"a", "b", "c", "bb"});
  int taken = 0;
  for (uint32_t p = 0; p < kPartitions; ++p) {
    const std::string& group = after.groups[after.partitions[p]];
    if (group == "bb") {
      ++taken;
    } else {
      EXPECT_EQ(group, before.groups[before.partitions[p]]);
    }
  }
  EXPECT_GT(taken, 200);
}

}  // namespace
}  // namespace gannet
