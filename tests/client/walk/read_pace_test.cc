#include "client/walk/read_pace.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

TEST(ReadPaceTest, SpreadsReadsOverTheSecond) {
  ReadPace pace(1000);
  EXPECT_EQ(pace.WaitNs(100, 5), 0);
  EXPECT_EQ(pace.WaitNs(100, 5), kNsPerSecond / 10);
  EXPECT_EQ(pace.WaitNs(1, 5 + kNsPerSecond / 10), kNsPerSecond / 10);
}

TEST(ReadPaceTest, DoesNotHurryAfterAPause) {
  ReadPace pace(1000);
  EXPECT_EQ(pace.WaitNs(10, 0), 0);
  EXPECT_EQ(pace.WaitNs(10, kNsPerSecond), 0);
  EXPECT_EQ(pace.WaitNs(10, kNsPerSecond), kNsPerSecond / 100);
}

TEST(ReadPaceTest, ZeroIsNoLimit) {
  ReadPace pace(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pace.WaitNs(1'000'000, 0), 0);
}

}  // namespace
}  // namespace gannet
