#include "server/group/members/ring_wait.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr uint64_t kMiB = RingWait::kProgressBytes;

TEST(RingWaitTest, CountsFromWhenTheRingWasFull) {
  RingWait wait;
  EXPECT_EQ(wait.Look(false, 0, BootTime::FromNs(100)), 0);
  EXPECT_EQ(wait.Look(true, 10, BootTime::FromNs(200)), 0);
  EXPECT_EQ(wait.Look(true, 10, BootTime::FromNs(300)), 100);
  EXPECT_EQ(wait.Look(true, 10, BootTime::FromNs(900)), 700);
  EXPECT_EQ(wait.Look(false, 20, BootTime::FromNs(1000)), 0);
  EXPECT_EQ(wait.Look(true, 20, BootTime::FromNs(1100)), 0);
  EXPECT_EQ(wait.Look(true, 20, BootTime::FromNs(1150)), 50);
}

TEST(RingWaitTest, BeginsAnewWithEachMiBThatGetsIn) {
  RingWait wait;
  EXPECT_EQ(wait.Look(true, 5, BootTime::FromNs(100)), 0);
  EXPECT_EQ(wait.Look(true, 5 + kMiB - 1, BootTime::FromNs(200)), 100);
  EXPECT_EQ(wait.Look(true, 5 + kMiB, BootTime::FromNs(300)), 0);
  EXPECT_EQ(wait.Look(true, 5 + kMiB + 1, BootTime::FromNs(400)), 100);
  EXPECT_EQ(wait.Look(true, 5 + 3 * kMiB, BootTime::FromNs(500)), 0);
}

TEST(RingWaitTest, AFewBytesASecondAreNoProgress) {
  RingWait wait;
  for (int64_t second = 0; second < 100; ++second) {
    EXPECT_EQ(wait.Look(true, static_cast<uint64_t>(second) * 1000, BootTime::FromNs(second)),
              second);
  }
}

}  // namespace
}  // namespace gannet
