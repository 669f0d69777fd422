#include "server/rpc/sync_asks.h"

#include "gtest/gtest.h"

namespace gannet {
namespace {

TEST(SyncAsksTest, AsksOnceForEachSync) {
  SyncAsks asks;
  EXPECT_TRUE(asks.Asks(100, false));
  EXPECT_FALSE(asks.Asks(100, false)) << "it runs, or will";
  EXPECT_TRUE(asks.Asks(200, false)) << "it ended, and other replies wait";
  EXPECT_FALSE(asks.Asks(200, false));
}

TEST(SyncAsksTest, ServesWhatWaitsFirst) {
  SyncAsks asks;
  EXPECT_FALSE(asks.Asks(100, true));
  EXPECT_FALSE(asks.Asks(100, true));
  EXPECT_TRUE(asks.Asks(100, false));
  EXPECT_FALSE(asks.Asks(100, true));
  EXPECT_FALSE(asks.Asks(200, true));
  EXPECT_TRUE(asks.Asks(200, false));
}

TEST(SyncAsksTest, DoesNotWaitForEverForAnEndOfTheRequests) {
  SyncAsks asks;
  for (uint32_t poll = 1; poll < SyncAsks::kPutOffsMax; ++poll) {
    ASSERT_FALSE(asks.Asks(100, true)) << poll;
  }
  EXPECT_TRUE(asks.Asks(100, true));
}

}  // namespace
}  // namespace gannet
