#include "common/cluster/cluster_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

// Every client and server must find the same partition, for ever.
TEST(ClusterMapTest, PartitionsOfKeysDoNotChange) {
  EXPECT_EQ(PartitionOf(""), 0x2d06800538d394c2u >> 54);  // XXH3's published hash of nothing
  std::vector<int> keys(kPartitions);
  for (int i = 0; i < 100'000; ++i) {
    const uint32_t partition = PartitionOf(absl::StrCat("key", i));
    ASSERT_LT(partition, kPartitions);
    ++keys[partition];
  }
  // 98 on average.
  EXPECT_THAT(keys, testing::Each(testing::AllOf(testing::Ge(40), testing::Le(180))));
}

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
