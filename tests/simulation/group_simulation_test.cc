// A group of whole servers in virtual time: what clients saw holds whatever goes wrong.

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/simulation/group_runs.h"

namespace gannet::simulation {
namespace {

// Seeds of one run of ctest.
constexpr uint64_t kSeeds = GANNET_SIMULATION_SEEDS;
constexpr uint64_t kSeedsTwice = 2;
constexpr auto kKind = GroupScenario::Kind::kOneGroup;

TEST(GroupSimulationTest, EverythingHolds) { ExpectGroupsHold(RunGroups<kKind>, kSeeds); }

TEST(GroupSimulationTest, OneSeedGivesOneRun) {
  ExpectOneSeedGivesOneRun(RunGroups<kKind>, kSeedsTwice);
}

// A hand-over begins with the last fault, and ends more than a lease later.
TEST(GroupSimulationTest, AGroupIsNotWholeWhileItHandsOver) {
  for (const uint64_t seed : {4'000, 5'364}) {
    EXPECT_EQ(RunSeed(RunGroups<kKind>, seed).failure, "") << seed;
  }
}

}  // namespace
}  // namespace gannet::simulation

int main(int argc, char** argv) { return gannet::simulation::RunSimulationTests(argc, argv); }
