#include <gtest/gtest.h>

#include <cstdint>

#include "softverbs/control.h"
#include "tests/simulation/run.h"
#include "tests/simulation/seed_runs.h"
#include "tests/simulation/world.h"

// A server with two rails, whose links go down and come back while all else happens that may happen
// to a server.

namespace gannet::simulation {
namespace {

constexpr uint64_t kSeeds = GANNET_SIMULATION_SEEDS;

struct Outcome : SeedOutcome {
  uint64_t set_aside = 0;
};

Outcome RunOnce(uint64_t seed, bool print) {
  Run run({.seed = seed, .off = ChecksThatAreOff(), .print = print, .rails = true});
  World world(&run);
  Outcome outcome;
  outcome.scenario = world.scenario().ToString();
  world.Execute();
  outcome.failure = run.failure();
  outcome.trace = run.trace();
  outcome.set_aside = world.set_aside();
  return outcome;
}

TEST(RailsSimulationTest, EverythingHolds) {
  uint64_t set_aside = 0;
  ExpectEverythingHolds(RunOnce, kSeeds,
                        [&](const Outcome& outcome) { set_aside += outcome.set_aside; });
  EXPECT_GT(set_aside, 0u) << "requests go by one rail only";
  EXPECT_GT(softverbs_reads_posted(1), 0u) << "nobody uses the second rail";
}

}  // namespace
}  // namespace gannet::simulation

int main(int argc, char** argv) { return gannet::simulation::RunSimulationTests(argc, argv); }
