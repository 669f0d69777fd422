#include "server/group/replica/primary_watch.h"

#include <gtest/gtest.h>

#include "tests/server/group/replica/group_times.h"

namespace gannet {
namespace {

TEST(GroupTimesTest, TheGraceCoversALeaseOnASlowClockMeasuredByAFastOne) {
  for (const int64_t lease_ns : {200'000'000LL, 600'000'000LL, 10'000'000'000LL}) {
    const GroupTimes times = {.lease_ns = lease_ns};
    EXPECT_GT(times.grace_ns() * 511, lease_ns * 513);
  }
}

TEST(PrimaryWatchTest, ThePrimaryIsOverWhenNothingWasHeardForTheGrace) {
  PrimaryWatch watch(Boot(1'000));
  EXPECT_FALSE(watch.IsOver(kTimes, Boot(1'000 + kG - 1), 0));
  EXPECT_TRUE(watch.IsOver(kTimes, Boot(1'000 + kG), 0));
  EXPECT_TRUE(watch.OnBeacon(Boot(5'000)));
  EXPECT_FALSE(watch.IsOver(kTimes, Boot(5'000 + kG - 1), 0));
  EXPECT_TRUE(watch.IsOver(kTimes, Boot(5'000 + kG), 0));
  EXPECT_FALSE(watch.IsOver(kTimes, Boot(5'000 + kG), 1))
      << "the second one waits for a beacon more";
  EXPECT_TRUE(watch.IsOver(kTimes, Boot(5'000 + kG + kTimes.beacon_ns()), 1));
}

TEST(PrimaryWatchTest, OneThatHasFencedAnswersNothingAndHearsNothing) {
  PrimaryWatch watch(Boot(0));
  watch.Fence();
  EXPECT_FALSE(watch.OnBeacon(Boot(kG)));
  EXPECT_TRUE(watch.IsOver(kTimes, Boot(kG), 0));
}

// The next primary's lease may have another length.
TEST(PrimaryWatchTest, TheGraceIsThatOfThePrimarysLease) {
  constexpr GroupTimes kLonger = {.lease_ns = 2 * kL};
  const PrimaryWatch watch(Boot(0));
  EXPECT_TRUE(watch.IsOver(kTimes, Boot(kG), 0));
  EXPECT_FALSE(watch.IsOver(kLonger, Boot(kG), 0));
  EXPECT_TRUE(watch.IsOver(kLonger, Boot(kLonger.grace_ns()), 0));
}

}  // namespace
}  // namespace gannet
