#include "server/main/control/worker_turns.h"

#include <vector>

#include "common/base/boot_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet {
namespace {

using testing::ElementsAre;

// The turns that the worker under test asked for.
std::vector<int64_t> asked;

class WorkerTurnsTest : public testing::Test {
 protected:
  WorkerTurnsTest() : turns_((asked.clear(), [](int64_t ns) { asked.push_back(ns); })) {}

  // Polls every microsecond.
  void AwakeFor(int64_t ns, uint64_t clients = WorkerTurns::kVeryMany) {
    for (const BootTime end = now_ + ns; now_ < end; now_ = now_ + kNsPerUs) {
      turns_.Awake(now_, clients);
    }
  }

  BootTime now_ = BootTime::FromNs(kNsPerSecond);
  WorkerTurns turns_;
};

TEST_F(WorkerTurnsTest, AreShortForAWorkerThatSleepsBetweenRequests) {
  for (int i = 0; i < 10; ++i) {
    AwakeFor(WorkerTurns::kBusyNs / 2);
    turns_.Sleeps();
    now_ = now_ + kNsPerMs;
  }
  EXPECT_THAT(asked, ElementsAre(kShortestTurnNs));
}

TEST_F(WorkerTurnsTest, AreLongFromWhenItHasHadNoSleepForAWhile) {
  AwakeFor(10 * WorkerTurns::kBusyNs);
  EXPECT_THAT(asked, ElementsAre(kShortestTurnNs, WorkerTurns::kLongTurnNs));
}

TEST_F(WorkerTurnsTest, AreShortForAWorkerWithFewClients) {
  AwakeFor(10 * WorkerTurns::kBusyNs, WorkerTurns::kVeryMany - 1);
  EXPECT_THAT(asked, ElementsAre(kShortestTurnNs));
}

TEST_F(WorkerTurnsTest, AreShortAgainWhenItSleeps) {
  AwakeFor(2 * WorkerTurns::kBusyNs);
  turns_.Sleeps();
  EXPECT_THAT(asked, ElementsAre(kShortestTurnNs, WorkerTurns::kLongTurnNs, kShortestTurnNs));
}

}  // namespace
}  // namespace gannet
