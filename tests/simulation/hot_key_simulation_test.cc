// A group in virtual time, and a key that clients answer from copies while its primary is cut off,
// hands over, dies or stands still: no answer is of a value that was replaced before.

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/simulation/group_runs.h"

namespace gannet::simulation {
namespace {

// Seeds of one run of ctest.
constexpr uint64_t kSeedsOfHotKeys = GANNET_SIMULATION_SEEDS;
constexpr uint64_t kSeedsOfHotKeysTwice = 2;
constexpr auto kHotKeyKind = GroupScenario::Kind::kHotKey;

TEST(HotKeySimulationTest, EverythingHolds) {
  const GroupWorld::Happened all = ExpectGroupsHold(RunGroups<kHotKeyKind>, kSeedsOfHotKeys);
  EXPECT_TRUE(all.unseated > 0 || all.leasing < kLeasingMin)
      << "no primary lost its place while copies answered";
}

TEST(HotKeySimulationTest, OneSeedGivesOneRun) {
  ExpectOneSeedGivesOneRun(RunGroups<kHotKeyKind>, kSeedsOfHotKeysTwice);
}

}  // namespace
}  // namespace gannet::simulation
