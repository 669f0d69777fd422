// What a session knows about time: when to send heartbeats, when its server counts as dead, and
// what the server's clock shows.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "client/session/liveness.h"
#include "client/session/request_watch.h"
#include "client/session/request_window.h"
#include "client/session/server_time_bound.h"
#include "client/session/watched_time.h"
#include "common/base/server_time.h"
#include "common/layout/item.h"

namespace gannet {
namespace {

constexpr int64_t kSilence = 1500 * kNsPerMs;

class LivenessTest : public ::testing::Test {
 protected:
  LivenessTest() {
    watched_.Restart(0, Liveness::WatchStepNs(kSilence));
    liveness_.Restart(0, watched_, kSilence);
  }
  // Passes time with frequent Polls.
  void PassTo(int64_t ns) {
    while (now_ns_ < ns) watched_.Look(now_ns_ = std::min(now_ns_ + kNsPerMs, ns));
  }
  // Passes time without a Poll.
  void StandStillUntil(int64_t ns) { watched_.Look(now_ns_ = ns); }
  void Send() { liveness_.OnSent(now_ns_, watched_); }
  void SendHeartbeat() {
    Send();
    liveness_.OnHeartbeatSent(now_ns_);
  }

  WatchedTime watched_;
  Liveness liveness_;
  int64_t now_ns_ = 0;
};

TEST_F(LivenessTest, HeartbeatsGoOutAfterATenthOfTheSilenceWithoutAnythingElse) {
  EXPECT_FALSE(liveness_.HeartbeatDue(kSilence / 10 - 1));
  EXPECT_TRUE(liveness_.HeartbeatDue(kSilence / 10));
  PassTo(kSilence / 10 - 1);
  Send();
  EXPECT_FALSE(liveness_.HeartbeatDue(kSilence / 10));
}

TEST_F(LivenessTest, HeartbeatsOfIdleClientsOfAMachineGoOutTogether) {
  constexpr int64_t kApart = kSilence / 10 / 8;
  for (int64_t began_ns = 5 * kApart; began_ns < 6 * kApart; began_ns += kApart / 7) {
    Liveness liveness;
    liveness.Restart(began_ns, watched_, kSilence);
    EXPECT_FALSE(liveness.HeartbeatDue(13 * kApart - 1)) << began_ns;
    EXPECT_TRUE(liveness.HeartbeatDue(13 * kApart)) << began_ns;
    EXPECT_EQ(liveness.IdleNs(12 * kApart, false), kApart) << began_ns;
  }
}

TEST_F(LivenessTest, ABusyConnectionHasHeartbeatsToo) {
  SendHeartbeat();
  for (int i = 1; i < 20; ++i) {
    PassTo(i * Liveness::kHeartbeatNsMax / 20);
    Send();
    EXPECT_FALSE(liveness_.HeartbeatDue(now_ns_));
  }
  PassTo(Liveness::kHeartbeatNsMax);
  Send();
  EXPECT_TRUE(liveness_.HeartbeatDue(now_ns_));
}

TEST_F(LivenessTest, NoMoreHeartbeatsGoOutThanThereAreReceives) {
  for (uint32_t i = 0; i < Liveness::kHeartbeatsMax; ++i) {
    PassTo(now_ns_ + kSilence / 10);
    ASSERT_TRUE(liveness_.HeartbeatDue(now_ns_));
    SendHeartbeat();
  }
  PassTo(now_ns_ + kSilence);
  EXPECT_FALSE(liveness_.HeartbeatDue(now_ns_));
  EXPECT_TRUE(liveness_.OnHeartbeatAnswered().has_value());
  EXPECT_TRUE(liveness_.HeartbeatDue(now_ns_));
}

TEST_F(LivenessTest, TellsWhenTheAnsweredHeartbeatWasSent) {
  EXPECT_EQ(liveness_.OnHeartbeatAnswered(), std::nullopt);
  std::vector<int64_t> sent;
  for (int i = 0; i < 3; ++i) {
    PassTo(now_ns_ + 100);
    SendHeartbeat();
    sent.push_back(now_ns_);
  }
  for (const int64_t ns : sent) EXPECT_EQ(liveness_.OnHeartbeatAnswered(), ns);
  EXPECT_EQ(liveness_.OnHeartbeatAnswered(), std::nullopt);
}

TEST_F(LivenessTest, ASilentPeerIsDeadOnlyWhileItOwesAnAnswer) {
  PassTo(10 * kSilence);
  EXPECT_FALSE(liveness_.PeerDead(watched_));
  Send();
  PassTo(11 * kSilence);
  EXPECT_FALSE(liveness_.PeerDead(watched_));
  PassTo(11 * kSilence + 1);
  EXPECT_TRUE(liveness_.PeerDead(watched_));
  EXPECT_FALSE(liveness_.PeerDead(watched_, 1));
  liveness_.OnHeard(watched_);
  PassTo(20 * kSilence);
  EXPECT_FALSE(liveness_.PeerDead(watched_));
}

TEST_F(LivenessTest, AnyAnswerIsASignOfLife) {
  Send();
  Send();
  PassTo(kSilence);
  liveness_.OnHeard(watched_);
  PassTo(2 * kSilence);
  EXPECT_FALSE(liveness_.PeerDead(watched_));
  PassTo(2 * kSilence + 1);
  EXPECT_TRUE(liveness_.PeerDead(watched_));
}

TEST_F(LivenessTest, WhoStoodStillHimselfTakesNobodyForSilent) {
  Send();
  PassTo(kSilence / 2);
  StandStillUntil(100 * kSilence);
  EXPECT_FALSE(liveness_.PeerDead(watched_));
  // The gap counts as one step. Then the peer has the rest of its time.
  PassTo(100 * kSilence + kSilence / 2 - Liveness::WatchStepNs(kSilence));
  EXPECT_FALSE(liveness_.PeerDead(watched_));
  PassTo(now_ns_ + 1);
  EXPECT_TRUE(liveness_.PeerDead(watched_));
}

TEST_F(LivenessTest, WhoPollsSeldomNoticesADeadPeerLater) {
  Send();
  int polls = 0;
  while (!liveness_.PeerDead(watched_)) {
    StandStillUntil(now_ns_ + kSilence);
    ++polls;
  }
  EXPECT_EQ(polls, 7);
}

class RequestWatchTest : public ::testing::Test {
 protected:
  RequestWatchTest() {
    window_.Restart(4);
    watched_.Restart(0, kNsPerSecond);
  }
  void Send(int64_t timeout_ns) {
    watch_.OnSend(window_, watched_);
    window_.Begin({.sequence = window_.next(), .op = 0, .timeout_ns = timeout_ns});
  }
  void Answer(uint64_t sequence) {
    watch_.OnAnswer(watched_);
    window_.End(*window_.Find(sequence));
  }
  bool StuckAt(int64_t ns) {
    while (now_ns_ < ns) watched_.Look(now_ns_ = std::min(now_ns_ + kNsPerSecond, ns));
    return watch_.Stuck(window_, watched_, kSilence);
  }

  RequestWindow window_;
  WatchedTime watched_;
  RequestWatch watch_;
  int64_t now_ns_ = 0;
};

TEST_F(RequestWatchTest, WaitsForTheLongestTimeoutAndTheSilence) {
  EXPECT_FALSE(StuckAt(100 * kSilence));
  Send(20);
  Send(5 * kNsPerSecond);
  Send(0);
  EXPECT_FALSE(StuckAt(101 * kSilence + 5 * kNsPerSecond));
  EXPECT_TRUE(StuckAt(101 * kSilence + 5 * kNsPerSecond + 1));
}

TEST_F(RequestWatchTest, AnAnswerToAnyRequestIsProgress) {
  Send(0);
  Send(0);
  EXPECT_FALSE(StuckAt(kSilence));
  Answer(2);
  EXPECT_FALSE(StuckAt(2 * kSilence));
  EXPECT_TRUE(StuckAt(2 * kSilence + 1));
  Answer(1);
  EXPECT_FALSE(StuckAt(10 * kSilence)) << "nothing is unanswered";
}

TEST_F(RequestWatchTest, RequestsSentMeanwhileAreNoProgress) {
  Send(0);
  EXPECT_FALSE(StuckAt(kSilence));
  Send(0);
  EXPECT_TRUE(StuckAt(kSilence + 1));
}

class ServerClockTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kTold = 1'700'000'000'000;
  static constexpr int64_t kAsked = 50 * kNsPerSecond;  // the client's clock knows nothing of it
  ServerTimeBound clock_;
};

TEST_F(ServerClockTest, NothingIsSurelyBeforeItsExpiryUntilTheServerToldItsTime) {
  EXPECT_FALSE(clock_.SurelyBefore(ServerTime::FromMs(kExpiryMsMax), 0));
  EXPECT_EQ(clock_.LeftMs(ServerTime::FromMs(kExpiryMsMax), 0), 0u);
  clock_.OnTold(ServerTime::FromMs(kTold), kAsked, kAsked);
  EXPECT_TRUE(clock_.SurelyBefore(ServerTime::FromMs(kTold + 1000), kAsked));
  clock_.Forget();
  EXPECT_EQ(clock_.Lower(kAsked).ms(), 0u);
  EXPECT_FALSE(clock_.SurelyBefore(ServerTime::FromMs(kTold + 1000), kAsked));
}

// Holds whatever the server's clock does within the allowed drift, and whenever it was read between
// question and answer.
TEST_F(ServerClockTest, TheServersClockIsBetweenTheBounds) {
  constexpr int64_t kRoundTrip = 7 * kNsPerMs;
  for (const double speed : {0.9981, 1.0, 1.0019}) {
    for (const int64_t read_ns : {int64_t{0}, kRoundTrip / 2, kRoundTrip}) {
      const double server_at_asking = kTold + 0.9;
      const auto server_ms = [&](int64_t ns) {
        return static_cast<uint64_t>(server_at_asking + speed * static_cast<double>(ns) / 1e6);
      };
      ServerTimeBound clock;
      clock.OnTold(ServerTime::FromMs(server_ms(read_ns)), kAsked, kAsked + kRoundTrip);
      for (int64_t ns = kRoundTrip; ns < 3600 * kNsPerSecond; ns += 97 * kNsPerMs) {
        ASSERT_GT(clock.Upper(kAsked + ns).ms(), server_ms(ns)) << speed << " " << read_ns;
        ASSERT_LE(clock.Lower(kAsked + ns).ms(), server_ms(ns)) << speed << " " << read_ns;
      }
      // An operation that began before the answer came asks for an earlier time.
      for (int64_t ns = 0; ns <= kRoundTrip; ns += kNsPerMs / 8) {
        ASSERT_LE(clock.Lower(kAsked + ns).ms(), server_ms(ns)) << speed << " " << read_ns;
      }
    }
  }
}

TEST_F(ServerClockTest, UntilATimeTheUpperBoundIsBeforeItAndNoLonger) {
  EXPECT_LT(clock_.SurelyBeforeUntilNs(ServerTime::FromMs(kTold + 1000)), 0) << "nothing was told";
  clock_.OnTold(ServerTime::FromMs(kTold), kAsked, kAsked + 5 * kNsPerMs);
  for (const uint64_t ms : {3, 4, 20, 100, 3'600'000}) {
    const int64_t until_ns = clock_.SurelyBeforeUntilNs(ServerTime::FromMs(kTold + ms));
    EXPECT_LT(clock_.Upper(until_ns - 1).ms(), kTold + ms);
    EXPECT_GE(clock_.Upper(until_ns + kNsPerUs).ms(), kTold + ms);
  }
  EXPECT_LT(clock_.SurelyBeforeUntilNs(ServerTime::FromMs(kTold + 2)), kAsked)
      << "the bound has reached it";
  EXPECT_LT(clock_.SurelyBeforeUntilNs(ServerTime()), 0);
}

TEST_F(ServerClockTest, KeepsTheBestOfWhatItWasTold) {
  clock_.OnTold(ServerTime::FromMs(kTold), kAsked, kAsked + 300 * kNsPerMs);
  const int64_t later_ns = kAsked + 1000 * kNsPerMs;
  clock_.OnTold(ServerTime::FromMs(kTold + 900), later_ns - 10 * kNsPerMs,
                later_ns);  // a quick answer
  EXPECT_LE(clock_.Upper(later_ns).ms(), kTold + 900 + 10 + 3);
  const uint64_t upper_ms = clock_.Upper(later_ns).ms();
  clock_.OnTold(ServerTime::FromMs(kTold + 900), later_ns - 200 * kNsPerMs,
                later_ns);  // a slow one says less
  EXPECT_EQ(clock_.Upper(later_ns).ms(), upper_ms);
}

TEST_F(ServerClockTest, BelievesANewAnswerWhenTheOldOneGotTooVague) {
  clock_.OnTold(ServerTime::FromMs(kTold), kAsked, kAsked);
  const int64_t later_ns = kAsked + 1000 * kNsPerSecond;
  EXPECT_GT(clock_.Upper(later_ns).ms(), kTold + 1'001'500);
  clock_.OnTold(ServerTime::FromMs(kTold + 1'000'000), later_ns - 5 * kNsPerMs, later_ns);
  EXPECT_LE(clock_.Upper(later_ns).ms(), kTold + 1'000'000 + 5 + 3);
}

TEST_F(ServerClockTest, NothingIsSurelyPastItsExpiryUntilTheServerToldItsTime) {
  EXPECT_FALSE(clock_.SurelyPast(ServerTime::FromMs(1), INT64_MAX));
  clock_.OnTold(ServerTime::FromMs(kTold), kAsked, kAsked + 5 * kNsPerMs);
  EXPECT_TRUE(clock_.SurelyPast(ServerTime::FromMs(kTold), kAsked + 5 * kNsPerMs));
  EXPECT_FALSE(clock_.SurelyPast(ServerTime::FromMs(kTold + 1), kAsked + 5 * kNsPerMs));
  EXPECT_TRUE(clock_.SurelyPast(ServerTime::FromMs(kTold + 998), kAsked + 1005 * kNsPerMs));
  EXPECT_FALSE(clock_.SurelyPast(ServerTime::FromMs(kTold), kAsked)) << "the answer came later";
}

TEST_F(ServerClockTest, KeepsTheBestLowerBoundToo) {
  clock_.OnTold(ServerTime::FromMs(kTold), kAsked, kAsked + 5 * kNsPerMs);
  const int64_t later_ns = kAsked + 1000 * kNsPerMs;
  const uint64_t lower_ms = clock_.Lower(later_ns).ms();
  clock_.OnTold(ServerTime::FromMs(kTold + 700), later_ns - 300 * kNsPerMs,
                later_ns);  // came slowly
  EXPECT_EQ(clock_.Lower(later_ns).ms(), lower_ms);
  clock_.OnTold(ServerTime::FromMs(kTold + 999), later_ns - 1, later_ns);
  EXPECT_EQ(clock_.Lower(later_ns).ms(), kTold + 999);
}

TEST_F(ServerClockTest, AHostileTimeMakesNothingOverflow) {
  clock_.OnTold(ServerTime::FromMs(UINT64_MAX), INT64_MAX, INT64_MAX);
  EXPECT_FALSE(clock_.SurelyBefore(ServerTime::FromMs(kExpiryMsMax), INT64_MAX));
  EXPECT_EQ(clock_.LeftMs(ServerTime::FromMs(kExpiryMsMax), INT64_MAX), 0u);
  EXPECT_EQ(clock_.Lower(0).ms(), 0u);
}

}  // namespace
}  // namespace gannet
