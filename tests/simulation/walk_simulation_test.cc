// Walks of many steps through all that may happen to a cluster, in virtual time: groups come, are
// drained and go, members are killed, stopped, cut off and upgraded, clients come and go. What
// clients saw is checked in pieces.

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/simulation/group_runs.h"

namespace gannet::simulation {
namespace {

constexpr uint64_t kSteps = GANNET_SIMULATION_STEPS;

// The first run of a process is discarded (RunSeed), so it is short.
GroupOutcome Walk(uint64_t seed, bool print) {
  const uint64_t steps = seed == 0 ? 1 : NumberFrom("GANNET_WALK_STEPS", kSteps);
  return RunWorld(GroupScenario::Kind::kWalk, static_cast<uint32_t>(steps), seed, print);
}

TEST(WalkSimulationTest, EverythingHolds) { ExpectGroupsHold(Walk, 1); }

}  // namespace
}  // namespace gannet::simulation
