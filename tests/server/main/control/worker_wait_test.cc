#include "server/main/control/worker_wait.h"

#include "common/base/boot_time.h"
#include "gtest/gtest.h"

namespace gannet {
namespace {

constexpr int64_t kPollNs = 100 * kNsPerUs;

class WorkerWaitTest : public testing::Test {
 protected:
  // Polls in turns of a microsecond; how long it does, up to a millisecond.
  int64_t PollsFor() {
    const BootTime began = now_;
    while (wait_.Polls(now_) && now_ - began < kNsPerMs) now_ = now_ + kNsPerUs;
    return now_ - began;
  }
  // Sleeps until a request comes.
  void Serve() {
    now_ = now_ + kNsPerMs;
    wait_.Came();
  }

  uint32_t runnable_ = 1;
  uint32_t looks_ = 0;
  BootTime now_ = BootTime::FromNs(kNsPerSecond);
  WorkerWait wait_{kPollNs, CoreDemand(2, [this] {
                     ++looks_;
                     return std::optional<uint32_t>(runnable_);
                   })};
};

TEST_F(WorkerWaitTest, PollsForItsTimeAfterARequestAndThenSleeps) {
  EXPECT_EQ(PollsFor(), kPollNs);
  EXPECT_EQ(PollsFor(), 0) << "woken for nothing";
  Serve();
  EXPECT_EQ(PollsFor(), kPollNs);
}

TEST_F(WorkerWaitTest, SleepsAtOnceWhileMoreThreadsRunThanThereAreCores) {
  runnable_ = 3;
  PollsFor();
  for (int i = 0; i < 5; ++i) Serve(), PollsFor();
  Serve();
  EXPECT_EQ(PollsFor(), 0);
  runnable_ = 2;
  for (int i = 0; i < 5; ++i) Serve(), PollsFor();
  Serve();
  EXPECT_EQ(PollsFor(), kPollNs);
}

TEST_F(WorkerWaitTest, ThreadsThatRunForAMomentDoNotMakeCoresScarce) {
  for (int i = 0; i < 20; ++i) {
    runnable_ = i % 2 == 0 ? 2 : 3;
    const uint32_t looks = looks_;
    while (looks_ == looks) {
      EXPECT_TRUE(wait_.Polls(now_));
      wait_.Came();
      now_ = now_ + 10 * kNsPerUs;
    }
  }
}

TEST_F(WorkerWaitTest, SleepsAtOnceForAWhileAfterItWasPreempted) {
  ASSERT_TRUE(wait_.Polls(now_));
  now_ = now_ + 3 * kNsPerMs;
  EXPECT_FALSE(wait_.Polls(now_));
  Serve();
  EXPECT_EQ(PollsFor(), 0);
  now_ = now_ + CoreDemand::kPreemptionCountsNs;
  Serve();
  ASSERT_TRUE(wait_.Polls(now_));
  now_ = now_ + 3 * kNsPerMs;  // again, soon after
  EXPECT_FALSE(wait_.Polls(now_));
  now_ = now_ + CoreDemand::kPreemptionCountsNs;
  Serve();
  EXPECT_EQ(PollsFor(), 0);
}

TEST_F(WorkerWaitTest, PollsOnWhereItLosesOnlyASmallPartOfItsTime) {
  const int64_t pause_ns = 2 * CoreDemand::kPreemptedNs;
  // Each wait polls for most of kPollNs.
  constexpr int kWaitsPerPause =
      2 * CoreDemand::kLostShare * 2 * CoreDemand::kPreemptedNs / kPollNs;
  for (int pauses = 0; pauses < 1000; ++pauses) {
    for (int i = 0; i < kWaitsPerPause; ++i) {
      for (int polls = 0; polls < 90; ++polls, now_ = now_ + kNsPerUs) {
        ASSERT_TRUE(wait_.Polls(now_));
      }
      wait_.Came();
    }
    ASSERT_TRUE(wait_.Polls(now_));
    now_ = now_ + pause_ns;
    wait_.Polls(now_);  // its time to poll may be over
    wait_.Came();
  }
  EXPECT_EQ(PollsFor(), kPollNs);
}

TEST_F(WorkerWaitTest, PollsSeldomWhereRequestsComeTooLateForIt) {
  for (uint32_t i = 0; i < WorkerWait::kInVain; ++i) {
    EXPECT_EQ(PollsFor(), kPollNs);
    Serve();
  }
  uint32_t polled = 0;
  for (uint32_t i = 0; i < 10 * WorkerWait::kTryEvery; ++i) {
    polled += PollsFor() > 0;
    Serve();
  }
  EXPECT_EQ(polled, 10u);
}

TEST_F(WorkerWaitTest, PollsAgainOnceARequestCameInTime) {
  for (uint32_t i = 0; i < WorkerWait::kInVain; ++i) PollsFor(), Serve();
  while (!wait_.Polls(now_)) Serve();
  wait_.Came();
  EXPECT_EQ(PollsFor(), kPollNs);
}

}  // namespace
}  // namespace gannet
