#include "softverbs/nic/patience.h"

#include <gtest/gtest.h>

namespace softverbs {
namespace {

using Found = Patience::Found;

TEST(PatienceTest, LooksAtOneThatPollsLessAndLessOften) {
  Patience patience;
  int64_t wait_ns = patience.Begin(false);
  EXPECT_EQ(wait_ns, Patience::kPollsNs);
  for (int look = 0; look < 20; ++look) {
    const int64_t next_ns = patience.Next(Found::kPolls, false);
    EXPECT_GE(next_ns, wait_ns);
    EXPECT_LE(next_ns, Patience::kPollsNsMax);
    wait_ns = next_ns;
  }
  EXPECT_EQ(wait_ns, Patience::kPollsNsMax);
}

TEST(PatienceTest, TrustsOneThatAnswersItsBellMoreAndMore) {
  Patience patience;
  EXPECT_EQ(patience.Begin(true), Patience::kWaitsNs);
  EXPECT_EQ(patience.Next(Found::kCame, true), 2 * Patience::kWaitsNs);
  EXPECT_EQ(patience.Next(Found::kWantsCore, true), 4 * Patience::kWaitsNs);
  for (int look = 0; look < 20; ++look) patience.Next(Found::kCame, true);
  EXPECT_EQ(patience.Begin(true), Patience::kWaitsNsMax) << "the trust outlives the timer";
}

TEST(PatienceTest, TakesOverFromOneThatLeavesARingUnansweredAndTrustsItLess) {
  Patience patience;
  for (int look = 0; look < 20; ++look) patience.Next(Found::kCame, true);
  EXPECT_EQ(patience.Next(Found::kLeftAlone, true), 0);
  EXPECT_EQ(patience.Begin(true), Patience::kWaitsNs);
}

TEST(PatienceTest, OneThatStoppedPollingKeepsTheTrustInItsWaiting) {
  Patience patience;
  patience.Next(Found::kCame, true);
  EXPECT_EQ(patience.Next(Found::kLeftAlone, false), 0);
  EXPECT_EQ(patience.Begin(true), 2 * Patience::kWaitsNs);
}

TEST(PatienceTest, TakesOverFromAnIdleOneAndTrustsItAsBefore) {
  Patience patience;
  patience.Next(Found::kCame, true);
  EXPECT_EQ(patience.Next(Found::kNotRung, true), 0);
  EXPECT_EQ(patience.Begin(true), 2 * Patience::kWaitsNs);
}

}  // namespace
}  // namespace softverbs
