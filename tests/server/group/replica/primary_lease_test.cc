#include "server/group/replica/primary_lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/group/replica/group_times.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PrimaryLeaseTest, LastsFromWhenTheNewestBeaconThatAllAnsweredWasSent) {
  PrimaryLease lease(kTimes);
  lease.Count(1, Boot(0));
  lease.Count(2, Boot(0));
  EXPECT_FALSE(lease.Valid(Boot(0))) << "nobody has answered";
  const uint64_t first = lease.OnSend(Boot(1'000));
  const uint64_t second = lease.OnSend(Boot(2'000));
  EXPECT_TRUE(lease.OnAnswer(1, second, Boot(50'000)));
  EXPECT_FALSE(lease.Valid(Boot(50'000)))
      << "one that is counted has not answered, or not connected";
  EXPECT_TRUE(lease.OnAnswer(2, first, Boot(60'000)));
  EXPECT_EQ(lease.LeftNs(Boot(60'000)), 1'000 + kL - 60'000);
  EXPECT_TRUE(lease.OnAnswer(2, second, Boot(70'000)));
  EXPECT_EQ(lease.LeftNs(Boot(70'000)), 2'000 + kL - 70'000);
  EXPECT_TRUE(lease.Valid(Boot(2'000 + kL - 1)));
  EXPECT_FALSE(lease.Valid(Boot(2'000 + kL)));
  EXPECT_EQ(lease.LeftNs(Boot(2'000 + 2 * kL)), 0);
}

TEST(PrimaryLeaseTest, AnAnswerThatComesLateOrTwiceDoesNotShortenIt) {
  PrimaryLease lease(kTimes);
  lease.Count(1, Boot(0));
  const uint64_t first = lease.OnSend(Boot(1'000));
  const uint64_t second = lease.OnSend(Boot(2'000));
  EXPECT_TRUE(lease.OnAnswer(1, second, Boot(3'000)));
  EXPECT_TRUE(lease.OnAnswer(1, first, Boot(4'000)));
  EXPECT_EQ(lease.LeftNs(Boot(4'000)), 2'000 + kL - 4'000);
}

// It may make its link anew meanwhile, and needs less than that for it.
TEST(PrimaryLeaseTest, WhoHasRailsMayBeSilentForLonger) {
  EXPECT_GT(kTimes.silence_with_rails_ns(), kTimes.rail_silence_ns() + kTimes.beacon_ns());
  EXPECT_LT(kTimes.silence_with_rails_ns(), kTimes.lease_ns);
  PrimaryLease lease(kTimes, /*rails=*/true);
  lease.Count(1, Boot(0));
  lease.Count(2, Boot(0));
  const uint64_t first = lease.OnSend(Boot(0));
  EXPECT_TRUE(lease.OnAnswer(1, first, Boot(0)));
  const int64_t patience = kTimes.silence_with_rails_ns();
  EXPECT_TRUE(lease.OnAnswer(2, lease.OnSend(Boot(1'000)), Boot(patience - 1)));
  EXPECT_THAT(lease.Silent(Boot(patience - 1)), IsEmpty());
  EXPECT_THAT(lease.Silent(Boot(patience)), ElementsAre(1));
}

TEST(PrimaryLeaseTest, IsAlwaysValidIfNobodyIsCounted) {
  PrimaryLease lease(kTimes);
  EXPECT_EQ(lease.LeftNs(Boot(123'456)), kL);
  EXPECT_TRUE(lease.MaySend(Boot(123'456)));
  lease.Count(1, Boot(0));
  EXPECT_FALSE(lease.Valid(Boot(0)));
  lease.Uncount(1);
  EXPECT_TRUE(lease.Valid(Boot(0)));
}

TEST(PrimaryLeaseTest, RefusesAnswersToBeaconsThatWereNotSentAndIgnoresOthers) {
  PrimaryLease lease(kTimes);
  lease.Count(1, Boot(0));
  EXPECT_FALSE(lease.OnAnswer(1, 0, Boot(1)));
  EXPECT_FALSE(lease.OnAnswer(1, 1, Boot(1)));
  const uint64_t first = lease.OnSend(Boot(1'000));
  EXPECT_FALSE(lease.OnAnswer(1, first + 1, Boot(2'000)));
  EXPECT_TRUE(lease.OnAnswer(2, first, Boot(2'000))) << "of one that is not counted";
  EXPECT_FALSE(lease.Valid(Boot(2'000)));
  for (size_t i = 0; i < PrimaryLease::kBeaconsLeast; ++i) lease.OnSend(Boot(1'000 + kL));
  EXPECT_TRUE(lease.OnAnswer(1, first, Boot(2'000 + kL)));
  EXPECT_FALSE(lease.IsHeard(1, Boot(2'000 + kL))) << "too old to say anything";
}

// While a ring is half full, beacons are sent every millisecond.
TEST(PrimaryLeaseTest, AnAnswerCountsHoweverManyBeaconsWereSentMeanwhile) {
  PrimaryLease lease(kTimes);
  lease.Count(1, Boot(0));
  constexpr int64_t kMs = 1'000'000;
  uint64_t first = 0;
  for (int64_t now = kMs; now <= kL / 2; now += kMs) {
    const uint64_t sequence = lease.OnSend(Boot(now));
    if (now == kMs) first = sequence;
  }
  EXPECT_TRUE(lease.OnAnswer(1, first, Boot(kL / 2)));
  EXPECT_EQ(lease.LeftNs(Boot(kL / 2)), kMs + kL - kL / 2);
}

TEST(PrimaryLeaseTest, RemovesASilentBackupIfItHearsAnother) {
  PrimaryLease lease(kTimes);
  lease.Count(1, Boot(0));
  lease.Count(2, Boot(0));
  const uint64_t beacon = lease.OnSend(Boot(0));
  lease.OnAnswer(1, beacon, Boot(10));
  lease.OnAnswer(2, beacon, Boot(kL / 4));
  EXPECT_THAT(lease.Silent(Boot(kL / 2 + 9)), IsEmpty());
  EXPECT_THAT(lease.Silent(Boot(kL / 2 + 10)), ElementsAre(1));
  lease.OnBroken(1);
  EXPECT_THAT(lease.Silent(Boot(kL / 4)), ElementsAre(1)) << "at once if its link has broken";
}

TEST(PrimaryLeaseTest, ABackupThatHasStillToConnectGetsALease) {
  PrimaryLease lease(kTimes);
  lease.Count(1, Boot(0));
  lease.Count(2, Boot(0));
  for (int64_t now = 0; now < kL; now += kL / 10)
    lease.OnAnswer(1, lease.OnSend(Boot(now)), Boot(now));
  EXPECT_THAT(lease.Silent(Boot(kL - 1)), IsEmpty());
  EXPECT_THAT(lease.Silent(Boot(kL)), ElementsAre(2));
}

TEST(PrimaryLeaseTest, APrimaryThatHearsNobodyFallsSilentAndRemovesThemOnlyMuchLater) {
  PrimaryLease lease(kTimes);
  lease.Count(1, Boot(0));
  lease.Count(2, Boot(0));
  const uint64_t beacon = lease.OnSend(Boot(0));
  lease.OnAnswer(1, beacon, Boot(0));
  lease.OnAnswer(2, beacon, Boot(0));
  lease.OnBroken(2);
  EXPECT_THAT(lease.Silent(Boot(kL / 2)), IsEmpty());
  EXPECT_TRUE(lease.MaySend(Boot(kTimes.grace_ns() - 1)));
  EXPECT_FALSE(lease.MaySend(Boot(kTimes.grace_ns())));
  EXPECT_THAT(lease.Silent(Boot(3 * kTimes.grace_ns() - 1)), IsEmpty());
  EXPECT_THAT(lease.Silent(Boot(3 * kTimes.grace_ns())), ElementsAre(1, 2));
}

}  // namespace
}  // namespace gannet
