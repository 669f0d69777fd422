#include "server/group/replica/partition_end.h"

#include <gtest/gtest.h>

#include "tests/server/group/replica/group_times.h"

namespace gannet {
namespace {

constexpr int64_t kShortLease = PartitionEnd::kShortNs;
constexpr uint64_t kMap = 7;

class PartitionEndTest : public testing::Test {
 protected:
  // Everything is as it should be, until a test changes it.
  PartitionEnd::Facts facts_{.now = Boot(1'000'000'000'000),
                             .workers_at = kMap,
                             .recorded = 80,
                             .published = 80,
                             .safe = 80,
                             .committed = 8'000,
                             .lease_is_valid = true};
  PartitionEnd end_{kTimes};

  void Pass(int64_t ns) {
    facts_.now = facts_.now + ns;
    end_.Poll(facts_);
  }
  uint64_t ended() const { return end_.ended() ? end_.ended()->revision : 0; }
};

TEST_F(PartitionEndTest, NothingEndsIfNothingIsClosed) {
  end_.OnMap(kMap, 0);
  EXPECT_FALSE(end_.busy());
  Pass(2 * kL);
  EXPECT_FALSE(end_.ended());
  EXPECT_EQ(end_.next_at(), BootTime::Never());
}

TEST_F(PartitionEndTest, EndsWhereTheStreamIsOnceTheLeasesOfOlderMapsAreOver) {
  end_.OnMap(kMap, kMap);
  EXPECT_TRUE(end_.busy());
  Pass(0);
  EXPECT_EQ(end_.next_at(), facts_.now + kL);
  // What is written later, to other partitions, is not waited for.
  facts_.recorded = facts_.committed = 1'000'000;
  Pass(kL - 1);
  EXPECT_EQ(ended(), 0u);
  Pass(1);
  EXPECT_EQ(ended(), kMap);
  EXPECT_EQ(end_.ended()->lsn, 8'000u);
  EXPECT_FALSE(end_.busy());
}

// One that has not may decide by an older map.
TEST_F(PartitionEndTest, WaitsUntilAllWorkersHaveBegunAPollByTheMap) {
  facts_.workers_at = kMap - 1;
  end_.OnMap(kMap, kMap);
  Pass(10 * kL);
  EXPECT_EQ(end_.next_at(), facts_.now + PartitionEnd::kLookNs);
  facts_.recorded = facts_.published = facts_.safe = 88;  // what it did
  facts_.committed = 8'800;
  facts_.workers_at = kMap + 1;
  Pass(0);
  // It may have told of a lease until now.
  Pass(kL - 1);
  EXPECT_EQ(ended(), 0u);
  Pass(1);
  EXPECT_EQ(ended(), kMap);
  EXPECT_EQ(end_.ended()->lsn, 8'800u);
}

// A write that finds no slot is undone when it is published, by a deletion that is recorded then.
TEST_F(PartitionEndTest, WaitsForWhatPublishingUndoes) {
  facts_.published = 79;
  end_.OnMap(kMap, kMap);
  Pass(10 * kL);
  EXPECT_EQ(ended(), 0u);
  facts_.published = 80;
  facts_.recorded = 88;
  Pass(kL);
  EXPECT_EQ(ended(), 0u) << "the deletion is not committed";
  facts_.safe = 88;
  facts_.committed = 8'800;
  Pass(0);
  EXPECT_EQ(ended(), kMap);
  EXPECT_EQ(end_.ended()->lsn, 8'800u);
}

TEST_F(PartitionEndTest, WaitsUntilAllIsCommitted) {
  facts_.safe = 79;
  end_.OnMap(kMap, kMap);
  Pass(0);
  Pass(10 * kL);
  EXPECT_EQ(ended(), 0u);
  facts_.safe = 80;
  Pass(0);
  EXPECT_EQ(ended(), kMap);
}

// Without a lease somebody may have taken over before the close, who serves by an older map.
TEST_F(PartitionEndTest, WaitsUntilTheOwnLeaseWasValidSinceTheMapWasSeen) {
  Pass(0);
  facts_.lease_is_valid = false;
  end_.OnMap(kMap, kMap);
  Pass(0);
  Pass(10 * kL);
  EXPECT_EQ(ended(), 0u) << "it was valid before only";
  facts_.lease_is_valid = true;
  Pass(0);
  EXPECT_EQ(ended(), kMap);
}

TEST_F(PartitionEndTest, OneMomentOfALeaseIsEnough) {
  end_.OnMap(kMap, kMap);
  Pass(0);
  facts_.lease_is_valid = false;
  Pass(kL);
  EXPECT_EQ(ended(), kMap);
}

TEST_F(PartitionEndTest, ASecondCloseHasToHaveALeaseOfItsOwn) {
  end_.OnMap(kMap, kMap);
  Pass(0);
  Pass(kL);
  ASSERT_EQ(ended(), kMap);
  facts_.lease_is_valid = false;
  facts_.workers_at = kMap + 5;
  end_.OnMap(kMap + 5, kMap + 5);
  Pass(10 * kL);
  EXPECT_EQ(ended(), kMap);
}

TEST_F(PartitionEndTest, ALaterMapThatClosesNothingHereBeginsNothing) {
  end_.OnMap(kMap, kMap);
  Pass(0);
  Pass(kL);
  end_.OnMap(kMap + 1, kMap);
  EXPECT_FALSE(end_.busy());
  EXPECT_EQ(ended(), kMap);
}

// The map may be newer than the last close, for a primary that has just taken over.
TEST_F(PartitionEndTest, EndsWhatWasClosedBeforeItLed) {
  facts_.workers_at = kMap + 3;
  end_.OnMap(kMap + 3, kMap);
  Pass(0);
  Pass(kL);
  EXPECT_EQ(ended(), kMap + 3);
}

TEST_F(PartitionEndTest, WhatIsClosedMeanwhileEndsLater) {
  end_.OnMap(kMap, kMap);
  Pass(0);
  end_.OnMap(kMap + 1, kMap + 1);
  end_.OnMap(kMap + 2, kMap + 1);
  Pass(kL);
  EXPECT_EQ(ended(), kMap) << "those of the first map do not wait for the others";
  EXPECT_TRUE(end_.busy());
  Pass(10 * kL);
  EXPECT_EQ(ended(), kMap) << "the workers decide by the first one";
  facts_.workers_at = kMap + 2;
  Pass(0);
  Pass(kL - 1);
  EXPECT_EQ(ended(), kMap);
  Pass(1);
  EXPECT_EQ(ended(), kMap + 1);
  EXPECT_FALSE(end_.busy());
}

// Two receivers close one after the other.
TEST_F(PartitionEndTest, WhatIsClosedMeanwhileDoesNotWaitForWhatWasClosedBefore) {
  end_.OnMap(kMap, kMap);
  Pass(0);
  const int64_t between = kL / 4;
  facts_.workers_at = kMap + 1;
  facts_.now = facts_.now + between;
  end_.OnMap(kMap + 1, kMap + 1);
  facts_.recorded = facts_.published = facts_.safe = 88;
  facts_.committed = 8'800;
  Pass(0);
  EXPECT_EQ(end_.next_at(), facts_.now - between + kL);
  Pass(kL - between);
  ASSERT_EQ(ended(), kMap);
  EXPECT_EQ(end_.ended()->lsn, 8'000u) << "what the others wrote is behind it";
  Pass(between - 1);
  EXPECT_EQ(ended(), kMap);
  Pass(1);
  EXPECT_EQ(ended(), kMap + 1);
  EXPECT_EQ(end_.ended()->lsn, 8'800u);
}

TEST_F(PartitionEndTest, ALeaseBeforeTheSecondCloseCountsForTheFirstOnly) {
  end_.OnMap(kMap, kMap);
  Pass(0);
  facts_.lease_is_valid = false;
  facts_.workers_at = kMap + 1;
  end_.OnMap(kMap + 1, kMap + 1);
  Pass(0);
  Pass(10 * kL);
  EXPECT_EQ(ended(), kMap);
  facts_.lease_is_valid = true;
  Pass(0);
  EXPECT_EQ(ended(), kMap + 1);
}

// Their number is bounded. What came too early is taken when there is room.
TEST_F(PartitionEndTest, ManyClosesMeanwhileEndInTurn) {
  facts_.workers_at = kMap + 100;
  for (uint64_t i = 0; i < PartitionEnd::kRunsMax; ++i) {
    end_.OnMap(kMap + i, kMap + i);
    Pass(0);
  }
  const uint64_t last = kMap + PartitionEnd::kRunsMax;
  end_.OnMap(last, last);
  Pass(kL);
  EXPECT_EQ(ended(), last - 1);
  EXPECT_FALSE(end_.busy());
  end_.OnMap(last, last);
  EXPECT_TRUE(end_.busy());
  Pass(0);
  Pass(kL);
  EXPECT_EQ(ended(), last);
}

TEST_F(PartitionEndTest, ShortLeasesEndSoon) {
  EXPECT_EQ(end_.LeaseNsMax(), kL);
  end_.OnClosing(facts_.now);
  EXPECT_EQ(end_.LeaseNsMax(), kShortLease);
  Pass(0);
  Pass(kL);
  end_.OnMap(kMap, kMap);
  Pass(0);
  EXPECT_EQ(end_.LeaseNsMax(), kShortLease)
      << "one told before the workers knew the map still counts";
  Pass(kShortLease - 1);
  EXPECT_EQ(ended(), 0u);
  Pass(1);
  EXPECT_EQ(ended(), kMap);
  // The next close is as short.
  EXPECT_EQ(end_.LeaseNsMax(), kShortLease);
  end_.OnMap(kMap + 1, kMap + 1);
  facts_.workers_at = kMap + 1;
  Pass(0);
  Pass(kShortLease);
  EXPECT_EQ(ended(), kMap + 1);
}

TEST_F(PartitionEndTest, WithoutReceiversLeasesAreLongAgain) {
  end_.OnClosing(facts_.now);
  Pass(0);
  Pass(kL);
  end_.OnNoReceiver();
  EXPECT_EQ(end_.LeaseNsMax(), kL);
  Pass(0);
  EXPECT_FALSE(end_.busy());
  end_.OnClosing(facts_.now);
  end_.OnMap(kMap, kMap);
  Pass(0);
  Pass(kL - 1);
  EXPECT_EQ(ended(), 0u) << "they had been long again";
  Pass(1);
  EXPECT_EQ(ended(), kMap);
}

TEST_F(PartitionEndTest, LongLeasesFromBeforeTheShortOnesStillCount) {
  end_.OnClosing(facts_.now);
  Pass(0);
  Pass(kL / 2);
  end_.OnMap(kMap, kMap);
  Pass(0);
  Pass(kL / 2 - 1);
  EXPECT_EQ(ended(), 0u);
  Pass(1);
  EXPECT_EQ(ended(), kMap);
}

// Clients may be told of a long one until the Poll behind the announcement.
TEST_F(PartitionEndTest, ShortLeasesCountFromTheNextPoll) {
  end_.OnClosing(facts_.now);
  Pass(kL);
  end_.OnMap(kMap, kMap);
  Pass(0);
  Pass(kL - 1);
  EXPECT_EQ(ended(), 0u);
  Pass(1);
  EXPECT_EQ(ended(), kMap);
}

TEST_F(PartitionEndTest, LeasesAreShortForTwoSecondsBehindTheLastAnnouncement) {
  end_.OnClosing(facts_.now);
  Pass(0);
  const BootTime begin = facts_.now + kNsPerSecond;
  end_.OnClosing(begin);
  Pass(kNsPerSecond + PartitionEnd::ShortForNs(kL) - 1);
  EXPECT_EQ(end_.LeaseNsMax(), kShortLease);
  EXPECT_EQ(end_.next_at(), begin + PartitionEnd::ShortForNs(kL));
  Pass(1);
  EXPECT_EQ(end_.LeaseNsMax(), kL);
  EXPECT_FALSE(end_.busy());
  end_.OnMap(kMap, kMap);
  Pass(0);
  Pass(kL - 1);
  EXPECT_EQ(ended(), 0u) << "they have been long again";
  Pass(1);
  EXPECT_EQ(ended(), kMap);
}

}  // namespace
}  // namespace gannet
