// Whether a FLUSH of all groups holds although partitions may move.

#include "client/api/flush_round.h"

#include <gtest/gtest.h>

#include "common/protocol/partition_map.h"

namespace gannet {
namespace {

TEST(FlushRoundTest, HoldsIfOneMapHeldThroughout) {
  PartitionMap map = {.revision = 7, .groups = {{"g1", {}}}, .partitions = {}};
  map.partitions.resize(kPartitions);
  FlushRound round{.begin = {.revision = 7}, .end = {.revision = 7}};
  EXPECT_TRUE(round.Holds()) << "servers in no cluster tell no map";
  round.OnMap(EncodePartitionMap(map).substr(0, 100));
  EXPECT_TRUE(round.Holds());
  // A server knows a newer one, or the client learned of one meanwhile.
  map.revision = 8;
  round.OnMap(EncodePartitionMap(map).substr(0, 100));
  EXPECT_FALSE(round.Holds());
  EXPECT_EQ(round.wanted(), 8u);
  round.end.revision = 8;
  EXPECT_FALSE(round.Holds());
  round.begin.revision = 8;
  EXPECT_TRUE(round.Holds());
  // Something is closed.
  round.begin.all_served = round.end.all_served = false;
  EXPECT_FALSE(round.Holds());
  EXPECT_EQ(round.wanted(), 9u);
}

}  // namespace
}  // namespace gannet
