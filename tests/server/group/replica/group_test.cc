// What a primary has committed survives it, over takeovers, removals, joins and hand-overs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/group/replica/simulated_group.h"

namespace gannet {
namespace {

TEST(TakeoverTest, NothingThatWasCommittedIsLost) {
  const uint64_t seed = test_support::GivenSeed().value_or(1);
  const char* const given = std::getenv("GANNET_GROUP_SEEDS");
  uint64_t seeds = given == nullptr ? test_support::Part(100) : std::strtoull(given, nullptr, 10);
  if (test_support::GivenSeed() && given == nullptr) seeds = 1;
  SimulatedGroup::Tallies all;
  for (uint64_t i = seed; i < seed + seeds; ++i) {
    SimulatedGroup group(i);
    ASSERT_EQ(group.Run(), "") << "TEST_SEED=" << i << " repeats it";
    const SimulatedGroup::Tallies& one = group.tallies();
    all.takeovers += one.takeovers;
    all.hand_overs += one.hand_overs;
    all.removals += one.removals;
    all.joins += one.joins;
    all.leaves += one.leaves;
    all.crashes += one.crashes;
    all.late_copies += one.late_copies;
    all.rests += one.rests;
    all.lost_groups += one.lost_groups;
    all.late_transactions += one.late_transactions;
    all.committed += one.committed;
    all.applied_records += one.applied_records;
    all.back_ms = std::max(all.back_ms, one.back_ms);
  }
  std::cout << all.takeovers << " takeovers, " << all.hand_overs << " hand-overs begun, "
            << all.removals << " removals, " << all.joins << " joins, " << all.leaves
            << " backups that left, " << all.crashes << " crashes, " << all.late_copies
            << " late copies, " << all.rests << " rests, " << all.lost_groups << " groups lost, "
            << all.late_transactions << " by late transactions, " << all.committed
            << " records committed, " << all.applied_records << " applied; all were back after "
            << all.back_ms << " ms at most\n";
  if (seeds < 100) return;
  EXPECT_GT(all.takeovers, 100);
  EXPECT_GT(all.hand_overs, 20);
  EXPECT_GT(all.removals, 50);
  EXPECT_GT(all.joins, 200);
  EXPECT_GT(all.leaves, 20);
  EXPECT_GT(all.late_copies, 10);
  EXPECT_GT(all.rests, 10);
  EXPECT_LT(static_cast<uint64_t>(all.lost_groups), seeds / 5);
  EXPECT_EQ(all.lost_groups, all.late_transactions);
  EXPECT_GT(all.applied_records, 10'000u);
}

TEST(TakeoverTest, OneSeedGivesOneRun) {
  SimulatedGroup one(7);
  SimulatedGroup other(7);
  EXPECT_EQ(one.Run(), other.Run());
  EXPECT_EQ(one.tallies(), other.tallies());
}

}  // namespace
}  // namespace gannet
