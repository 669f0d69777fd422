#include "client/session/primary_lease_watch.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr int64_t kAsked = 1000 * kNsPerSecond;
constexpr int64_t kLeft = 640 * kNsPerMs;
constexpr int64_t kEnd = kAsked + kLeft - kLeft / 128;
constexpr int64_t kHeard = kAsked + 3 * kNsPerMs;

class PrimaryLeaseWatchTest : public ::testing::Test {
 protected:
  static Grant GrantOf(uint64_t history, uint16_t left_ms) {
    Grant grant = NewGrant();
    grant.history = history;
    grant.primary_lease_ms = left_ms;
    return grant;
  }
  PrimaryLeaseWatchTest() { watch_.Restart(GrantOf(7, 640), kAsked, kHeard); }

  PrimaryLeaseWatch watch_;
};

TEST_F(PrimaryLeaseWatchTest, CountsFromWhenItAskedAndLeavesRoomForTheClocksRates) {
  EXPECT_TRUE(watch_.on());
  EXPECT_TRUE(watch_.ValidAt(kEnd - 1));
  EXPECT_FALSE(watch_.ValidAt(kEnd));
}

TEST_F(PrimaryLeaseWatchTest, AnEarlierAnswerShortensNothing) {
  watch_.OnTold(0, kHeard, kHeard);
  EXPECT_TRUE(watch_.ValidAt(kEnd - 1));
  watch_.OnTold(640, kHeard, kHeard);
  EXPECT_TRUE(watch_.ValidAt(kEnd));
}

TEST_F(PrimaryLeaseWatchTest, ALeaseForAnotherMapIsForRepliesAlone) {
  watch_.Restart(GrantOf(7, 0), kAsked, kHeard);
  EXPECT_FALSE(watch_.RepliesValidAt(kHeard));
  watch_.OnToldOthers(640, kAsked);
  EXPECT_FALSE(watch_.ValidAt(kHeard));
  EXPECT_TRUE(watch_.RepliesValidAt(kEnd - 1));
  EXPECT_FALSE(watch_.RepliesValidAt(kEnd));
  watch_.OnTold(640, kHeard, kHeard);
  EXPECT_TRUE(watch_.RepliesValidAt(kEnd)) << "one for this map is for them, too";
}

TEST_F(PrimaryLeaseWatchTest, WhatIsHeldIsTakenOutInItsOrder) {
  for (uint64_t id = 0; id < 4; ++id) watch_.Hold({.wr_id = id});
  const auto odd = watch_.TakeHeld([](const ibv_wc& completion) { return completion.wr_id % 2; });
  ASSERT_EQ(odd.size(), 2u);
  EXPECT_EQ(odd[0].wr_id, 1u);
  EXPECT_EQ(odd[1].wr_id, 3u);
  ASSERT_EQ(watch_.held().size(), 2u);
  EXPECT_EQ(watch_.held()[1].wr_id, 2u);
}

TEST_F(PrimaryLeaseWatchTest, ASessionThatAnswersAloneAsksForTheLease) {
  watch_.Restart(GrantOf(7, 640), kAsked, kHeard);
  EXPECT_FALSE(watch_.AskDue(kEnd - 1, false)) << "it is idle";
  watch_.OnAnsweredAlone(kEnd - 1);
  EXPECT_TRUE(watch_.AskDue(kEnd - 1, false));
  EXPECT_FALSE(watch_.AskDue(kEnd + 20 * kNsPerMs, false)) << "it is idle again";
}

TEST_F(PrimaryLeaseWatchTest, AServerInNoGroupNeedsNone) {
  watch_.Restart(GrantOf(0, 0), kAsked, kHeard);
  EXPECT_FALSE(watch_.on());
  EXPECT_FALSE(watch_.AskDue(kAsked + kNsPerSecond, true));
  EXPECT_FALSE(watch_.GivesUp(kAsked + kNsPerSecond, true));
  EXPECT_EQ(watch_.IdleNs(kAsked), INT64_MAX);
}

TEST_F(PrimaryLeaseWatchTest, AnotherMembersLeaseIsAnother) {
  watch_.Restart(GrantOf(7, 0), kHeard, kHeard);
  EXPECT_TRUE(watch_.on());
  EXPECT_FALSE(watch_.ValidAt(kHeard));
}

TEST_F(PrimaryLeaseWatchTest, ABusySessionAsksHalfALeaseBeforeTheEnd) {
  const int64_t due_ns = kEnd - kLeft / 2;
  EXPECT_FALSE(watch_.AskDue(due_ns - 1, true));
  EXPECT_TRUE(watch_.AskDue(due_ns, true));
  EXPECT_FALSE(watch_.AskDue(due_ns, false)) << "an idle one need not";
  EXPECT_EQ(watch_.IdleNs(due_ns - 5), 5);
  watch_.OnAsked(due_ns);
  EXPECT_FALSE(watch_.AskDue(due_ns + kLeft / 8 - 1, true)) << "the answer is on its way";
  EXPECT_TRUE(watch_.AskDue(due_ns + kLeft / 8, true));
  watch_.OnTold(640, due_ns, due_ns + 1);
  EXPECT_FALSE(watch_.AskDue(due_ns + kLeft / 8, true));
}

// Before a hand-over all leases are short. A longer one that was told before still holds.
TEST_F(PrimaryLeaseWatchTest, ShortLeasesAreAskedForMoreOften) {
  constexpr int64_t kShort = 50 * kNsPerMs;
  watch_.Restart(GrantOf(7, 640), kAsked, kHeard);
  const int64_t now = kEnd - 10 * kNsPerMs;
  watch_.OnAsked(now);
  watch_.OnTold(50, now, now + kNsPerMs);
  EXPECT_TRUE(watch_.ValidAt(now + kShort - kShort / 128 - 1));
  EXPECT_FALSE(watch_.AskDue(now + kShort / 4, true));
  EXPECT_TRUE(watch_.AskDue(now + kShort / 2, true));
  watch_.OnTold(0, now, now + kNsPerMs);
  EXPECT_TRUE(watch_.AskDue(now + kShort / 2, true)) << "one that tells of none changes nothing";
}

TEST_F(PrimaryLeaseWatchTest, GivesUpWhenItAskedInVainForALeaseAndTheOldOneIsOver) {
  const int64_t asked_ns = kEnd - kLeft / 2;
  EXPECT_FALSE(watch_.GivesUp(kEnd + 10 * kLeft, true)) << "it has not asked";
  watch_.OnAsked(asked_ns);
  EXPECT_FALSE(watch_.GivesUp(kEnd, true));
  watch_.OnAsked(asked_ns + kLeft / 2);  // asking again begins no new wait
  EXPECT_FALSE(watch_.GivesUp(asked_ns + kLeft - 1, true));
  EXPECT_TRUE(watch_.GivesUp(asked_ns + kLeft, true));
}

TEST_F(PrimaryLeaseWatchTest, AnswersThatBringNoValidLeaseDoNotCount) {
  watch_.OnAsked(kEnd);
  watch_.OnTold(0, kEnd, kEnd + 1);
  watch_.OnTold(100, kEnd - 200 * kNsPerMs, kEnd + 1);  // it was asked long ago
  EXPECT_TRUE(watch_.GivesUp(kEnd + kLeft, true));
  watch_.OnTold(100, kEnd + kLeft, kEnd + kLeft);
  EXPECT_FALSE(watch_.GivesUp(kEnd + kLeft, true));
}

TEST_F(PrimaryLeaseWatchTest, AnIdleSessionForgetsThatItAsked) {
  watch_.OnAsked(kEnd);
  EXPECT_FALSE(watch_.GivesUp(kEnd + kLeft, false));
  EXPECT_FALSE(watch_.GivesUp(kEnd + kLeft, true));
}

TEST_F(PrimaryLeaseWatchTest, LeasesAreAsLongAsTheLongestThatWasSeen) {
  EXPECT_EQ(watch_.length_ns(), kLeft);
  watch_.Restart(GrantOf(7, 10), kAsked, kHeard);
  EXPECT_EQ(watch_.length_ns(), kLeft);
  PrimaryLeaseWatch other;
  EXPECT_EQ(other.length_ns(), PrimaryLeaseWatch::kLengthNsUsual);
  other.Restart(GrantOf(7, 10), kAsked, kHeard);
  EXPECT_EQ(other.length_ns(), PrimaryLeaseWatch::kLengthNsMin);
}

}  // namespace
}  // namespace gannet
