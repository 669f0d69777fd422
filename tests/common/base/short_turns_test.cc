#include "common/base/short_turns.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr int64_t kTurnStepNs = Turn::kPauseNs / 2;
constexpr int64_t kBeginNs = 1'000 * kNsPerMs;

// Asks every kTurnStepNs from `*now_ns` on until the turn is over. Returns how long it took.
int64_t NsUntilOver(Turn& turn, int64_t* now_ns) {
  const int64_t began_ns = *now_ns;
  while (!turn.Over(*now_ns)) *now_ns += kTurnStepNs;
  return *now_ns - began_ns;
}

TEST(TurnTest, EndsAfterItsTimeAndTheNextOneBegins) {
  Turn turn;
  int64_t now_ns = kBeginNs;
  EXPECT_EQ(NsUntilOver(turn, &now_ns), Turn::kTurnNs);
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(turn.Over(now_ns)) << "nobody else wanted the core";
    EXPECT_EQ(NsUntilOver(turn, &now_ns), Turn::kTurnNs);
  }
}

// Others ran for long after the yield. The thread must not yield at once again: each turn would
// be as long as one look.
TEST(TurnTest, BeginsAnewAfterThePauseThatAYieldBrought) {
  Turn turn;
  int64_t now_ns = kBeginNs;
  NsUntilOver(turn, &now_ns);
  now_ns += 31 * Turn::kTurnNs;
  EXPECT_EQ(NsUntilOver(turn, &now_ns), Turn::kTurnNs);
}

TEST(TurnTest, BeginsAnewAfterAPauseOfItsOwn) {
  Turn turn;
  int64_t now_ns = kBeginNs;
  EXPECT_FALSE(turn.Over(now_ns));
  now_ns += Turn::kPauseNs;
  EXPECT_EQ(NsUntilOver(turn, &now_ns), Turn::kTurnNs);
}

}  // namespace
}  // namespace gannet
