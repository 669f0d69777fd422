// An owner that sleeps and polls only when its descriptor says so, or something is due, misses
// nothing. On the simulated device: what happens while it sleeps is what the test lets happen.

#include "client/engine/wake_fd.h"

#include <poll.h>

#include <algorithm>
#include <random>

#include "softverbs/tests/support/test_seed.h"
#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

class WakeFdTest : public FakeRun {
 protected:
  bool Readable() const {
    pollfd one{wake_->fd(), POLLIN, 0};
    return poll(&one, 1, 0) == 1;
  }
  // Arms as an application does, until there is nothing to do.
  void FallAsleep() {
    constexpr int kTriesMax = 100;
    int tries = 0;
    while (wake_->Arm(*engine_, clock_.now_ns) && ++tries < kTriesMax) PollOnce();
    ASSERT_LT(tries, kTriesMax) << "there is always something to do";
  }
  void WakeUp() {
    ++wakes_;
    PollOnce();
    FallAsleep();
  }
  // Everything that happens without time passing; the owner polls only when it is woken.
  void SettleAsleep() {
    constexpr int kIdleRounds = 4, kRoundsMax = 100'000;
    int rounds = 0;
    for (int idle = 0; idle < kIdleRounds && ++rounds < kRoundsMax;) {
      idle = softverbs_step() == 0 ? idle + 1 : 0;
      server_->Step();
      if (Readable()) WakeUp();
    }
    EXPECT_LT(rounds, kRoundsMax) << "nobody ever rests";
  }
  // Sleeps for so long, but for what is due.
  void SleepMs(int64_t ms) {
    const int64_t until_ns = clock_.now_ns + ms * kNsPerMs;
    FallAsleep();
    SettleAsleep();
    while (clock_.now_ns < until_ns) {
      clock_.now_ns = std::clamp(wake_->due_ns(), clock_.now_ns, until_ns);
      if (clock_.now_ns >= wake_->due_ns()) WakeUp();
      SettleAsleep();
    }
  }

  std::unique_ptr<WakeFd> wake_ = WakeFd::Create().value();
  int wakes_ = 0;
};

TEST_F(WakeFdTest, WhatComesBeforeItIsArmedIsSeenByArm) {
  Connect(4);
  AnswerEverything();
  FallAsleep();
  const uint64_t put = BeginPut("key", "value");
  PollOnce();
  while (softverbs_step() != 0) server_->Step();
  EXPECT_TRUE(wake_->Arm(*engine_, clock_.now_ns));
  PollOnce();
  EXPECT_TRUE(HasEnded(put));
}

TEST_F(WakeFdTest, ACompletionWakesOnce) {
  Connect(4);
  AnswerEverything();
  FallAsleep();
  ASSERT_FALSE(Readable());
  const uint64_t put = BeginPut("key", "value");
  FallAsleep();
  EXPECT_FALSE(HasEnded(put));
  SettleAsleep();
  EXPECT_TRUE(HasEnded(put));
  EXPECT_LE(wakes_, 2);  // that the request was sent is a completion too
  EXPECT_FALSE(Readable());
}

TEST_F(WakeFdTest, WhatWasBegunIsNotForgotten) {
  Connect(4);
  FallAsleep();
  ASSERT_NE(BeginPut("key", "value"), 0u);
  EXPECT_EQ(engine_->IdleNs(clock_.now_ns), 0);
  FallAsleep();  // posts it
  EXPECT_GT(engine_->IdleNs(clock_.now_ns), 0);
  SettleAsleep();
  EXPECT_EQ(server_->Count(Opcode::kPut), 1u);
}

TEST_F(WakeFdTest, ADeadlineIsDue) {
  Connect(4);
  FallAsleep();
  const int64_t begun_ns = clock_.now_ns;
  const uint64_t put = BeginPut("key", "value", 700);  // never answered
  SleepMs(1000);
  ASSERT_TRUE(HasEnded(put));
  EXPECT_EQ(ended_[put].outcome, Outcome::kDeadlineExceeded);
  EXPECT_EQ(ended_[put].at_ns, begun_ns + 700 * kNsPerMs);
}

TEST_F(WakeFdTest, ASleepingClientIsHeardInTimeAndSeldomWakes) {
  Connect(4);
  constexpr int kSeconds = 20;
  const uint32_t before = server_->heartbeats();
  SleepMs(kSeconds * 1000);
  const int64_t heartbeat_ms =
      Liveness::HeartbeatNs(engine_->servers().session(0).terms().silence_ns()) / kNsPerMs;
  EXPECT_GE(server_->heartbeats() - before, kSeconds * 1000 / heartbeat_ms - 1);
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_LE(wakes_, 8 * kSeconds);
}

TEST_F(WakeFdTest, ASilentServerIsNoticed) {
  Connect(4);
  server_->answers_heartbeats = false;
  SleepMs(3 * int{kSilenceMsDefault});
  EXPECT_GE(server_->connections(), 2u);
}

TEST_F(WakeFdTest, TheDescriptorsOfANewConnectionWakeToo) {
  Connect(4);
  AnswerEverything();
  FallAsleep();
  engine_->servers().Break(0, absl::UnavailableError("broken by the test"));
  SleepMs(100);
  EXPECT_EQ(server_->connections(), 2u);
  ASSERT_TRUE(engine_->servers().session(0).ready());
  const uint64_t put = BeginPut("key", "value");
  FallAsleep();
  SettleAsleep();
  EXPECT_TRUE(HasEnded(put));
}

TEST_F(WakeFdTest, AKickWakesOnce) {
  Connect(4);
  FallAsleep();
  wake_->Kick();
  pollfd one{wake_->fd(), POLLIN, 0};
  EXPECT_EQ(poll(&one, 1, 60'000), 1);
  FallAsleep();
  EXPECT_FALSE(Readable());
}

TEST_F(WakeFdTest, KnowsWhenAnotherPollMadeSomethingDueSooner) {
  Connect(4);
  FallAsleep();
  EXPECT_TRUE(wake_->Covers(*engine_, clock_.now_ns));
  BeginPut("key", "value", 50);
  PollOnce();
  EXPECT_FALSE(wake_->Covers(*engine_, clock_.now_ns));
  FallAsleep();
  EXPECT_TRUE(wake_->Covers(*engine_, clock_.now_ns));
  engine_->servers().Break(0, absl::UnavailableError("broken by the test"));
  SettleAsleep();
  PollOnce();
}

// Operations begin at any moment, connections break, and the owner sleeps whenever it may. In the
// end nothing is left that nobody is going to wake it for.
TEST_F(WakeFdTest, NothingIsLostInAnyOrder) {
  constexpr int kRuns = 100, kActs = 60;
  const uint64_t seed = test_support::TestSeed();
  for (int run = 0; run < kRuns; ++run) {
    SCOPED_TRACE(run);
    engine_.reset();
    server_.reset();
    wake_ = WakeFd::Create().value();
    ASSERT_EQ(softverbs_simulate(seed + static_cast<uint64_t>(run)), 0);
    server_ = std::make_unique<FakeServer>();
    AnswerEverything();
    HandMadeRegion& region = server_->region();
    region.SetSlot(region.HomeOf("there"), 0, region.AddItem("there", "value"));
    server_->PublishRegion();
    // READs are kept back for others to join them.
    Connect(8, [](Engine::Settings& settings) { settings.signal_every = 32; });
    std::mt19937_64 random(seed + static_cast<uint64_t>(run));
    FallAsleep();
    for (int act = 0; act < kActs; ++act) {
      for (uint64_t steps = random() % 8; steps > 0; --steps) softverbs_step();
      if (random() % 4 != 0) server_->Step();
      if (random() % 20 == 0)
        engine_->servers().Break(0, absl::UnavailableError("broken by the test"));
      if (random() % 3 == 0) BeginPut("key", "value", 30'000);
      if (random() % 3 == 0) BeginKey(OpType::kGet, "absent", 30'000);
      if (random() % 3 == 0) BeginKey(OpType::kGet, "there", 30'000);
      if (Readable()) ++wakes_;
      if (random() % 2 == 0) PollOnce();
      FallAsleep();
    }
    SleepMs(100);  // no heartbeat is due in it, which would wake a sleeper by chance
    EXPECT_EQ(engine_->alive(), 0u);
  }
}

}  // namespace
}  // namespace gannet
