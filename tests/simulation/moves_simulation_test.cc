// Two groups of whole servers in virtual time, between which partitions move: what clients saw
// holds whatever goes wrong.

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/simulation/group_runs.h"

namespace gannet::simulation {
namespace {

// Seeds of one run of ctest.
constexpr uint64_t kSeeds = GANNET_SIMULATION_SEEDS;
constexpr uint64_t kSeedsTwice = 2;
constexpr auto kKind = GroupScenario::Kind::kTwoGroups;

TEST(MovesSimulationTest, EverythingHolds) { ExpectGroupsHold(RunGroups<kKind>, kSeeds); }

TEST(MovesSimulationTest, OneSeedGivesOneRun) {
  ExpectOneSeedGivesOneRun(RunGroups<kKind>, kSeedsTwice);
}

// A client drops a session whose device is slow to flush it: that has to see time pass.
TEST(MovesSimulationTest, WhoWaitsForTheDeviceWithinAPollSeesTimePass) {
  EXPECT_EQ(RunSeed(RunGroups<kKind>, 300'002).failure, "");
}

}  // namespace
}  // namespace gannet::simulation

int main(int argc, char** argv) { return gannet::simulation::RunSimulationTests(argc, argv); }
