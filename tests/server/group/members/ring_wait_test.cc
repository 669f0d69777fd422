#include "server/group/members/ring_wait.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr uint64_t kMiB = RingWait::kProgressBytes;

TEST(RingWaitTest, CountsFromWhenTheRingWasFull) {
  RingWait wait;
  EXPECT_EQ(wait.Look(false, 0, 100), 0);
  EXPECT_EQ(wait.Look(true, 10, 200), 0);
  EXPECT_EQ(wait.Look(true, 10, 300), 100);
  EXPECT_EQ(wait.Look(true, 10, 900), 700);
  EXPECT_EQ(wait.Look(false, 20, 1000), 0);
  EXPECT_EQ(wait.Look(true, 20, 1100), 0);
  EXPECT_EQ(wait.Look(true, 20, 1150), 50);
}

TEST(RingWaitTest, BeginsAnewWithEachMiBThatGetsIn) {
  RingWait wait;
  EXPECT_EQ(wait.Look(true, 5, 100), 0);
  EXPECT_EQ(wait.Look(true, 5 + kMiB - 1, 200), 100);
  EXPECT_EQ(wait.Look(true, 5 + kMiB, 300), 0);
  EXPECT_EQ(wait.Look(true, 5 + kMiB + 1, 400), 100);
  EXPECT_EQ(wait.Look(true, 5 + 3 * kMiB, 500), 0);
}

TEST(RingWaitTest, AFewBytesASecondAreNoProgress) {
  RingWait wait;
  for (int64_t second = 0; second < 100; ++second) {
    EXPECT_EQ(wait.Look(true, static_cast<uint64_t>(second) * 1000, second), second);
  }
}

}  // namespace
}  // namespace gannet
