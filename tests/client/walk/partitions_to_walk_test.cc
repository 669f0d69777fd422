#include "client/walk/partitions_to_walk.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gannet {
namespace {

// Three groups; g1 has the first half of the partitions, g2 the other, and g3 none.
class PartitionsToWalkTest : public testing::Test {
 protected:
  PartitionsToWalkTest() {
    map_ = {.revision = 1,
            .groups = {{"g1", {}}, {"g2", {}}, {"g3", {}}},
            .partitions = std::vector<uint16_t>(kPartitions),
            .changed = std::vector<uint64_t>(kPartitions),
            .closed = std::vector<bool>(kPartitions)};
    for (uint32_t i = kPartitions / 2; i < kPartitions; ++i) map_.partitions[i] = 1;
  }
  // Returns the map in which the group has the partition, closed or not.
  const PartitionMap& Give(uint32_t partition, uint16_t group, bool closed = false) {
    map_.partitions[partition] = group;
    map_.closed[partition] = closed;
    map_.changed[partition] = ++map_.revision;
    return map_;
  }
  static std::string KeyOf(uint32_t partition) {
    for (int i = 0;; ++i) {
      std::string key = "key" + std::to_string(i);
      if (PartitionOf(key) == partition) return key;
    }
  }
  static size_t Walk(PartitionsToWalk* left) {
    const size_t group = left->Begin().value();
    left->End();
    return group;
  }

  PartitionMap map_;
};

TEST_F(PartitionsToWalkTest, ShowsEachKeyAtTheGroupThatOwnsIt) {
  PartitionsToWalk left(map_);
  ASSERT_EQ(left.Begin(), 0u);
  EXPECT_TRUE(left.Shows(KeyOf(3)));
  EXPECT_FALSE(left.Shows(KeyOf(700)));
  left.End();
  EXPECT_EQ(left.share(), 0.5);
  ASSERT_EQ(left.Begin(), 1u);
  EXPECT_FALSE(left.Shows(KeyOf(3)));
  EXPECT_TRUE(left.Shows(KeyOf(700)));
  left.End();
  EXPECT_TRUE(left.done());
  EXPECT_EQ(left.Begin(), std::nullopt);
}

TEST_F(PartitionsToWalkTest, WhatMovesWhileItsGroupIsWalkedIsShownAgainWhereItIs) {
  PartitionsToWalk left(map_);
  ASSERT_EQ(left.Begin(), 0u);
  left.OnMap(Give(3, 0, /*closed=*/true));
  EXPECT_FALSE(left.Shows(KeyOf(3)));
  EXPECT_TRUE(left.Shows(KeyOf(4)));
  left.End();
  EXPECT_EQ(Walk(&left), 1u);
  EXPECT_FALSE(left.done());
  EXPECT_EQ(left.Begin(), std::nullopt) << "nobody serves it";
  left.OnMap(Give(3, 1));
  ASSERT_EQ(left.Begin(), 1u);
  EXPECT_TRUE(left.Shows(KeyOf(3)));
  EXPECT_EQ(left.now().count(), 1u) << "and nothing else";
  left.End();
  EXPECT_TRUE(left.done());
}

TEST_F(PartitionsToWalkTest, WhatMovesBeforeItsGroupIsWalkedIsShownOnce) {
  PartitionsToWalk left(map_);
  ASSERT_EQ(left.Begin(), 0u);
  left.OnMap(Give(700, 2));
  left.End();
  ASSERT_EQ(left.Begin(), 1u);
  EXPECT_FALSE(left.Shows(KeyOf(700)));
  left.End();
  EXPECT_EQ(Walk(&left), 2u);
  EXPECT_TRUE(left.done());
}

TEST_F(PartitionsToWalkTest, WhatMovesToAGroupThatWasWalkedIsShownThere) {
  PartitionsToWalk left(map_);
  EXPECT_EQ(Walk(&left), 0u);
  ASSERT_EQ(left.Begin(), 1u);
  left.OnMap(Give(700, 0));
  left.End();
  ASSERT_EQ(left.Begin(), 0u);
  EXPECT_TRUE(left.Shows(KeyOf(700)));
  EXPECT_FALSE(left.Shows(KeyOf(3))) << "was shown";
}

// It may have been elsewhere in between.
TEST_F(PartitionsToWalkTest, WhatMovedThereAndBackIsShownAgain) {
  PartitionsToWalk left(map_);
  ASSERT_EQ(left.Begin(), 0u);
  Give(3, 1);
  left.OnMap(Give(3, 0));
  EXPECT_FALSE(left.Shows(KeyOf(3)));
  left.End();
  ASSERT_EQ(left.Begin(), 0u);
  EXPECT_TRUE(left.Shows(KeyOf(3)));
}

TEST_F(PartitionsToWalkTest, AnOlderMapSaysNothing) {
  const PartitionMap older = map_;
  PartitionsToWalk left(Give(3, 1));
  left.OnMap(older);
  EXPECT_EQ(left.map().revision, 2u);
  ASSERT_EQ(left.Begin(), 0u);
  EXPECT_FALSE(left.Shows(KeyOf(3)));
}

TEST_F(PartitionsToWalkTest, AMapWithoutChangesHasNone) {
  map_.revision = 0;
  map_.changed.clear();
  map_.closed.clear();
  PartitionsToWalk left(map_);
  EXPECT_TRUE(left.all_served());
  EXPECT_EQ(Walk(&left), 0u);
  map_.changed.resize(kPartitions);
  map_.closed.resize(kPartitions);
  ASSERT_EQ(left.Begin(), 1u);
  left.OnMap(Give(700, 1, /*closed=*/true));
  EXPECT_FALSE(left.Shows(KeyOf(700)));
  EXPECT_TRUE(left.Shows(KeyOf(701)));
  EXPECT_FALSE(left.all_served());
}

}  // namespace
}  // namespace gannet
