#include "common/base/wait_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gannet {
namespace {

using Stage = WaitStages::Stage;

constexpr int64_t kPollNsMax = 32 * kNsPerUs;
// Between two Polls of one that polls.
constexpr int64_t kStepNs = 500;
// From the answer until whoever sleeps runs again.
constexpr int64_t kWakeNs = 50 * kNsPerUs;

// What one wait took.
struct Wait {
  int64_t polled_ns = 0;
  uint32_t yields = 0;
  bool slept = false;
};

// Waits, on a clock of its own, for answers that come after a given time.
class Waiter {
 public:
  explicit Waiter(uint32_t yields = 1) : stages_({kPollNsMax, yields}) {}

  Wait WaitFor(int64_t answer_ns) {
    Wait wait;
    const int64_t began_ns = now_ns_;
    while (now_ns_ - began_ns < answer_ns) {
      switch (stages_.Next(now_ns_)) {
        case Stage::kPoll:
          wait.polled_ns += kStepNs;
          now_ns_ += kStepNs;
          break;
        case Stage::kYield:
          ++wait.yields;
          now_ns_ += kStepNs;
          break;
        case Stage::kSleep:
          wait.slept = true;
          now_ns_ = std::max(now_ns_, began_ns + answer_ns) + kWakeNs;
          break;
      }
    }
    stages_.Came(now_ns_);
    now_ns_ += 10 * kNsPerUs;
    return wait;
  }
  std::vector<Wait> WaitFor(int64_t answer_ns, int times) {
    std::vector<Wait> waits;
    for (int i = 0; i < times; ++i) waits.push_back(WaitFor(answer_ns));
    return waits;
  }

  WaitStages& stages() { return stages_; }

 private:
  WaitStages stages_;
  int64_t now_ns_ = kNsPerSecond;
};

int64_t Sleeps(const std::vector<Wait>& waits) {
  return std::count_if(waits.begin(), waits.end(), [](const Wait& wait) { return wait.slept; });
}

TEST(WaitStagesTest, PollsThenYieldsThenSleeps) {
  WaitStages stages({kPollNsMax, 2});
  EXPECT_EQ(stages.Next(0), Stage::kPoll);
  EXPECT_EQ(stages.Next(kPollNsMax - 1), Stage::kPoll);
  EXPECT_EQ(stages.Next(kPollNsMax), Stage::kYield);
  EXPECT_EQ(stages.Next(kPollNsMax), Stage::kYield);
  EXPECT_EQ(stages.Next(kPollNsMax), Stage::kSleep);
  EXPECT_EQ(stages.Next(kPollNsMax), Stage::kSleep);
  stages.Came(kPollNsMax);
  EXPECT_EQ(stages.Next(kNsPerSecond), Stage::kPoll);
}

TEST(WaitStagesTest, SomethingThatComesUnawaitedTellsNothing) {
  WaitStages stages({kPollNsMax, 0});
  for (int i = 0; i < 100; ++i) stages.Came(i);
  EXPECT_FALSE(stages.waiting());
  EXPECT_EQ(stages.Next(0), Stage::kPoll);
}

TEST(WaitStagesTest, PollsAsLongAsAnswersTakeAndNeverSleepsThen) {
  Waiter waiter;
  EXPECT_EQ(Sleeps(waiter.WaitFor(5 * kNsPerUs, 1000)), 0);
  EXPECT_EQ(waiter.stages().poll_ns(), 8 * kNsPerUs);
}

TEST(WaitStagesTest, GivesUpSoonOnTheAnswerThatIsLate) {
  Waiter waiter;
  waiter.WaitFor(3 * kNsPerUs, 64);
  int64_t polled_ns = 0;
  for (int i = 0; i < 64; ++i) {
    waiter.WaitFor(3 * kNsPerUs, 15);
    polled_ns += waiter.WaitFor(kNsPerMs).polled_ns;
  }
  EXPECT_LE(polled_ns / 64, 8 * kNsPerUs);
}

TEST(WaitStagesTest, DoesNotPollForAnswersThatTakeLonger) {
  Waiter waiter;
  const std::vector<Wait> waits = waiter.WaitFor(200 * kNsPerUs, 1000);
  EXPECT_EQ(Sleeps(waits), 1000);
  EXPECT_EQ(waiter.stages().poll_ns(), 0);
  const auto polls = [](const Wait& wait) { return wait.polled_ns > 0; };
  EXPECT_LE(std::count_if(waits.begin(), waits.end(), polls),
            WaitStages::kLearnFirst + 1000 / WaitStages::kProbeSeldom + 1);
}

// A thread that sleeps is woken long after the answer. Only probes find out that it came soon.
TEST(WaitStagesTest, LearnsThatAnswersBecameQuick) {
  Waiter waiter;
  waiter.WaitFor(200 * kNsPerUs, 1000);
  waiter.WaitFor(5 * kNsPerUs, 40 * WaitStages::kProbeSeldom);
  EXPECT_LE(Sleeps(waiter.WaitFor(5 * kNsPerUs, 100)), 0);
}

TEST(WaitStagesTest, LearnsThatAnswersBecameSlow) {
  Waiter waiter;
  waiter.WaitFor(5 * kNsPerUs, 10'000);
  waiter.WaitFor(200 * kNsPerUs, 40 * WaitStages::kProbeEvery);
  EXPECT_EQ(waiter.stages().poll_ns(), 0);
}

// Half of the answers are soon there: to poll for these costs less than to sleep each time.
TEST(WaitStagesTest, PollsForTheQuickAmongSlowAnswers) {
  Waiter waiter;
  for (int i = 0; i < 1000; ++i) {
    waiter.WaitFor(3 * kNsPerUs);
    waiter.WaitFor(kNsPerMs);
    waiter.WaitFor(3 * kNsPerUs);
  }
  EXPECT_EQ(waiter.stages().poll_ns(), 4 * kNsPerUs);
}

TEST(WaitStagesTest, NeverPollsLongerThanItMay) {
  Waiter waiter;
  for (const int64_t answer_ns : {1, 7, 20, 31, 33, 50, 1000, 2}) {
    for (const Wait& wait : waiter.WaitFor(answer_ns * kNsPerUs, 300)) {
      EXPECT_LE(wait.polled_ns, kPollNsMax);
    }
  }
}

TEST(WaitStagesTest, NeverPollsWhereItMayNot) {
  WaitStages stages({0, 0});
  for (int64_t now_ns = 0; now_ns < 1000; ++now_ns) {
    EXPECT_EQ(stages.Next(now_ns), Stage::kSleep);
    stages.Came(now_ns);
  }
}

TEST(WaitStagesTest, AWaitThatIsCancelledTellsNothing) {
  Waiter waiter;
  waiter.WaitFor(5 * kNsPerUs, 100);
  for (int i = 0; i < 1000; ++i) {
    waiter.stages().Next(0);
    waiter.stages().Cancel();
  }
  EXPECT_EQ(waiter.stages().poll_ns(), 8 * kNsPerUs);
}

}  // namespace
}  // namespace gannet
