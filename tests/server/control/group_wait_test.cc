#include "server/control/group_wait.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

TEST(GroupWait, AWriteAfterAPauseIsSyncedAtOnce) {
  GroupWait group;
  EXPECT_EQ(group.LeftNs(0, 1), 0);
  group.Synced(/*now_ns=*/1'000, /*took_ns=*/800, /*answered=*/32, /*waiting=*/0);
  EXPECT_EQ(group.LeftNs(1'400, 1), 0);
  EXPECT_EQ(group.LeftNs(100'000, 1), 0);
}

TEST(GroupWait, WaitsForThoseWhoWereAnswered) {
  GroupWait group;
  group.Synced(1'000, 800, /*answered=*/16, /*waiting=*/16);
  EXPECT_EQ(group.LeftNs(1'010, 16), 190) << "a quarter of the sync, for the first to come";
  EXPECT_EQ(group.LeftNs(1'150, 20), 100) << "then an eighth after each";
  EXPECT_EQ(group.LeftNs(1'200, 31), 100);
  EXPECT_EQ(group.LeftNs(1'210, 32), 0) << "all are there";
}

TEST(GroupWait, DoesNotWaitForLong) {
  GroupWait group;
  group.Synced(1'000, 800, 32, 0);
  EXPECT_EQ(group.LeftNs(1'190, 1), 100);
  EXPECT_EQ(group.LeftNs(1'290, 1), 0) << "nobody else comes";
  EXPECT_EQ(group.LeftNs(1'380, 9), 20) << "half of the sync";
  EXPECT_EQ(group.LeftNs(1'400, 31), 0);
}

}  // namespace
}  // namespace gannet
