// What a primary has committed survives it, with the real rings, leases and commits.

#include <gtest/gtest.h>

#include <iostream>

#include "tests/server/replica/simulated_group.h"
#include "tests/support/test_seed.h"

namespace gannet {
namespace {

TEST(TakeoverTest, NothingThatWasCommittedIsLost) {
  const uint64_t seed = test_support::GivenSeed().value_or(1);
  const uint64_t seeds = test_support::GivenSeed() ? 1 : 300;
  SimulatedGroup::Tallies all;
  for (uint64_t i = seed; i < seed + seeds; ++i) {
    SimulatedGroup group(i);
    ASSERT_EQ(group.Run(), "") << "GANNET_TEST_SEED=" << i << " repeats it";
    all.takeovers += group.tallies().takeovers;
    all.removals += group.tallies().removals;
    all.late_copies += group.tallies().late_copies;
    all.committed += group.tallies().committed;
    all.applied_records += group.tallies().applied_records;
  }
  std::cout << all.takeovers << " takeovers, " << all.removals << " removals, " << all.late_copies
            << " late copies, " << all.applied_records << " records applied\n";
  if (seeds == 1) return;
  EXPECT_GT(all.takeovers, 50);
  EXPECT_GT(all.removals, 10);
  EXPECT_GT(all.late_copies, 10);
  EXPECT_GT(all.committed, 0u);
  EXPECT_GT(all.applied_records, 1'000u);
}

TEST(TakeoverTest, OneSeedGivesOneRun) {
  SimulatedGroup one(7);
  SimulatedGroup other(7);
  EXPECT_EQ(one.Run(), other.Run());
  EXPECT_EQ(one.tallies(), other.tallies());
}

}  // namespace
}  // namespace gannet
