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
  lease.Count(1, 0);
  lease.Count(2, 0);
  EXPECT_FALSE(lease.Valid(0)) << "nobody has answered";
  const uint64_t first = lease.OnSend(1'000);
  const uint64_t second = lease.OnSend(2'000);
  EXPECT_TRUE(lease.OnAnswer(1, second, 50'000));
  EXPECT_FALSE(lease.Valid(50'000)) << "one that is counted has not answered, or not connected";
  EXPECT_TRUE(lease.OnAnswer(2, first, 60'000));
  EXPECT_EQ(lease.LeftNs(60'000), 1'000 + kL - 60'000);
  EXPECT_TRUE(lease.OnAnswer(2, second, 70'000));
  EXPECT_EQ(lease.LeftNs(70'000), 2'000 + kL - 70'000);
  EXPECT_TRUE(lease.Valid(2'000 + kL - 1));
  EXPECT_FALSE(lease.Valid(2'000 + kL));
  EXPECT_EQ(lease.LeftNs(2'000 + 2 * kL), 0);
}

TEST(PrimaryLeaseTest, AnAnswerThatComesLateOrTwiceDoesNotShortenIt) {
  PrimaryLease lease(kTimes);
  lease.Count(1, 0);
  const uint64_t first = lease.OnSend(1'000);
  const uint64_t second = lease.OnSend(2'000);
  EXPECT_TRUE(lease.OnAnswer(1, second, 3'000));
  EXPECT_TRUE(lease.OnAnswer(1, first, 4'000));
  EXPECT_EQ(lease.LeftNs(4'000), 2'000 + kL - 4'000);
}

TEST(PrimaryLeaseTest, IsAlwaysValidIfNobodyIsCounted) {
  PrimaryLease lease(kTimes);
  EXPECT_EQ(lease.LeftNs(123'456), kL);
  EXPECT_TRUE(lease.MaySend(123'456));
  lease.Count(1, 0);
  EXPECT_FALSE(lease.Valid(0));
  lease.Uncount(1);
  EXPECT_TRUE(lease.Valid(0));
}

TEST(PrimaryLeaseTest, RefusesAnswersToBeaconsThatWereNotSentAndIgnoresOthers) {
  PrimaryLease lease(kTimes);
  lease.Count(1, 0);
  EXPECT_FALSE(lease.OnAnswer(1, 0, 1));
  EXPECT_FALSE(lease.OnAnswer(1, 1, 1));
  const uint64_t first = lease.OnSend(1'000);
  EXPECT_FALSE(lease.OnAnswer(1, first + 1, 2'000));
  EXPECT_TRUE(lease.OnAnswer(2, first, 2'000)) << "of one that is not counted";
  EXPECT_FALSE(lease.Valid(2'000));
  for (size_t i = 0; i < PrimaryLease::kBeaconsLeast; ++i) lease.OnSend(1'000 + kL);
  EXPECT_TRUE(lease.OnAnswer(1, first, 2'000 + kL));
  EXPECT_FALSE(lease.IsHeard(1, 2'000 + kL)) << "too old to say anything";
}

// While a ring is half full, beacons are sent every millisecond.
TEST(PrimaryLeaseTest, AnAnswerCountsHoweverManyBeaconsWereSentMeanwhile) {
  PrimaryLease lease(kTimes);
  lease.Count(1, 0);
  constexpr int64_t kMs = 1'000'000;
  uint64_t first = 0;
  for (int64_t now = kMs; now <= kL / 2; now += kMs) {
    const uint64_t sequence = lease.OnSend(now);
    if (now == kMs) first = sequence;
  }
  EXPECT_TRUE(lease.OnAnswer(1, first, kL / 2));
  EXPECT_EQ(lease.LeftNs(kL / 2), kMs + kL - kL / 2);
}

TEST(PrimaryLeaseTest, RemovesASilentBackupIfItHearsAnother) {
  PrimaryLease lease(kTimes);
  lease.Count(1, 0);
  lease.Count(2, 0);
  const uint64_t beacon = lease.OnSend(0);
  lease.OnAnswer(1, beacon, 10);
  lease.OnAnswer(2, beacon, kL / 4);
  EXPECT_THAT(lease.Silent(kL / 2 + 9), IsEmpty());
  EXPECT_THAT(lease.Silent(kL / 2 + 10), ElementsAre(1));
  lease.OnBroken(1);
  EXPECT_THAT(lease.Silent(kL / 4), ElementsAre(1)) << "at once if its link has broken";
}

TEST(PrimaryLeaseTest, ABackupThatHasStillToConnectGetsALease) {
  PrimaryLease lease(kTimes);
  lease.Count(1, 0);
  lease.Count(2, 0);
  for (int64_t now = 0; now < kL; now += kL / 10) lease.OnAnswer(1, lease.OnSend(now), now);
  EXPECT_THAT(lease.Silent(kL - 1), IsEmpty());
  EXPECT_THAT(lease.Silent(kL), ElementsAre(2));
}

TEST(PrimaryLeaseTest, APrimaryThatHearsNobodyFallsSilentAndRemovesThemOnlyMuchLater) {
  PrimaryLease lease(kTimes);
  lease.Count(1, 0);
  lease.Count(2, 0);
  const uint64_t beacon = lease.OnSend(0);
  lease.OnAnswer(1, beacon, 0);
  lease.OnAnswer(2, beacon, 0);
  lease.OnBroken(2);
  EXPECT_THAT(lease.Silent(kL / 2), IsEmpty());
  EXPECT_TRUE(lease.MaySend(kTimes.grace_ns() - 1));
  EXPECT_FALSE(lease.MaySend(kTimes.grace_ns()));
  EXPECT_THAT(lease.Silent(3 * kTimes.grace_ns() - 1), IsEmpty());
  EXPECT_THAT(lease.Silent(3 * kTimes.grace_ns()), ElementsAre(1, 2));
}

}  // namespace
}  // namespace gannet
