#include <gtest/gtest.h>

#include <cstdint>

#include "tests/simulation/mute_world.h"
#include "tests/simulation/run.h"
#include "tests/simulation/seed_runs.h"
#include "tests/simulation/world.h"

namespace gannet::simulation {
namespace {

// Seeds of one run of ctest. They take some seconds, or tens of seconds in sanitizer presets.
constexpr uint64_t kSeeds = GANNET_SIMULATION_SEEDS;
constexpr uint64_t kSeedsTwice = 5;
// One of so many seeds runs a server that is mute at times.
constexpr uint64_t kMuteOf = 8;

SeedOutcome RunOnce(uint64_t seed, bool print) {
  Run run({.seed = seed, .off = ChecksThatAreOff(), .print = print});
  SeedOutcome outcome;
  if (seed % kMuteOf == 1) {
    MuteWorld world(&run);
    world.Execute();
    outcome.scenario = world.ToString();
  } else {
    World world(&run);
    outcome.scenario = world.scenario().ToString();
    world.Execute();
  }
  outcome.failure = run.failure();
  outcome.trace = run.trace();
  return outcome;
}

TEST(SimulationTest, EverythingHolds) {
  ExpectEverythingHolds(RunOnce, kSeeds, [](const SeedOutcome&) {});
}

TEST(SimulationTest, OneSeedGivesOneRun) { ExpectOneSeedGivesOneRun(RunOnce, kSeedsTwice); }

}  // namespace
}  // namespace gannet::simulation

int main(int argc, char** argv) { return gannet::simulation::RunSimulationTests(argc, argv); }
