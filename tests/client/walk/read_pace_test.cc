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

TEST(ReadPaceTest, ByLoadRestsOnlyWhenReadsTakeLongerThanTheyCan) {
  ReadPace pace(std::nullopt);
  EXPECT_EQ(pace.WaitNs(32, 0), 0);
  pace.Took(32, 100);  // the shortest time
  EXPECT_EQ(pace.WaitNs(32, 0), 0);
  pace.Took(32, 200);
  EXPECT_EQ(pace.WaitNs(32, 0), 0);
  pace.Took(32, 300);  // waited behind others
  EXPECT_EQ(pace.WaitNs(32, 0), 400);
  EXPECT_EQ(pace.WaitNs(32, 0), 0) << "one rest for each wait";
  pace.Took(32, 90);  // what the shortest time is, is learned
  pace.Took(32, 300);
  EXPECT_EQ(pace.WaitNs(32, 0), 480);
}

TEST(ReadPaceTest, ByLoadARestHasALimitAndAReadIsComparedWithItsLike) {
  ReadPace pace(std::nullopt);
  pace.Took(1, 10);
  EXPECT_EQ(pace.WaitNs(32, 0), 0);
  pace.Took(32, 1000);  // no such READs were there before
  EXPECT_EQ(pace.WaitNs(1, 0), 0);
  pace.Took(1, 1'000'000);
  EXPECT_EQ(pace.WaitNs(1, 0), 160);
}

TEST(ReadPaceTest, ARateIsARateWhateverReadsTake) {
  ReadPace pace(0);
  pace.Took(1, 10);
  pace.Took(1, 1000);
  EXPECT_EQ(pace.WaitNs(1, 0), 0);
}

}  // namespace
}  // namespace gannet
