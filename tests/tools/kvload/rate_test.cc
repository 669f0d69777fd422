#include "tools/kvload/rate.h"

#include <gtest/gtest.h>

#include "common/base/clock.h"

namespace gannet::kvload {
namespace {

TEST(RateTest, OneNumberStaysForEver) {
  const Rate rate = *Rate::Parse("5k");
  EXPECT_FALSE(rate.closed_loop());
  EXPECT_EQ(rate.LengthNs(), 0);
  EXPECT_EQ(rate.At(0), 5000);
  EXPECT_EQ(rate.At(1000 * kNsPerSecond), 5000);
  EXPECT_EQ(rate.IntervalNs(0, 1), 200'000);
  EXPECT_EQ(rate.IntervalNs(0, 4), 800'000);
}

TEST(RateTest, StepsAndRampsFollowEachOtherAndTheLastRateStays) {
  const Rate rate = *Rate::Parse("1000:10s,1000:3000:2s,0.5M:500ms");
  EXPECT_EQ(rate.LengthNs(), 12'500 * kNsPerMs);
  EXPECT_EQ(rate.At(9 * kNsPerSecond), 1000);
  EXPECT_EQ(rate.At(11 * kNsPerSecond), 2000);
  EXPECT_EQ(rate.At(12 * kNsPerSecond), 500'000);
  EXPECT_EQ(rate.At(60 * kNsPerSecond), 500'000);
}

TEST(RateTest, CountsWhatIsDue) {
  EXPECT_EQ(Rate::Parse("5k")->DueUntil(2 * kNsPerSecond), 10'000);
  const Rate rate = *Rate::Parse("1000:10s,1000:3000:2s,500:1s");
  EXPECT_EQ(rate.DueUntil(0), 0);
  EXPECT_EQ(rate.DueUntil(5 * kNsPerSecond), 5'000);
  EXPECT_EQ(rate.DueUntil(11 * kNsPerSecond), 11'500) << "1000 to 2000 in the ramp's first second";
  EXPECT_EQ(rate.DueUntil(13 * kNsPerSecond), 14'500);
  EXPECT_EQ(rate.DueUntil(15 * kNsPerSecond), 15'500) << "the last rate stays";
}

TEST(RateTest, WithoutARateTheLoopIsClosed) { EXPECT_TRUE(Rate().closed_loop()); }

TEST(RateTest, RefusesWhatIsNoRate) {
  for (const char* text : {"", "fast", "0", "-5", "2G", "1000:30", "1000:s", "1:2:3:4s", "5,6",
                           "1000:10s,", "1000M:0s", "2000M", "nan", "inf", "1000:nans"}) {
    EXPECT_FALSE(Rate::Parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace gannet::kvload
