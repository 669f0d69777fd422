// Two groups of whole servers in virtual time, between which partitions move: what clients saw
// holds whatever goes wrong.

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>

#include "tests/simulation/group_world.h"
#include "tests/simulation/run.h"
#include "tests/simulation/seed_runs.h"

namespace gannet::simulation {
namespace {

// Seeds of one run of ctest.
constexpr uint64_t kSeeds = GANNET_SIMULATION_SEEDS;
constexpr uint64_t kSeedsTwice = 2;

struct Outcome : SeedOutcome {
  GroupWorld::Happened happened;
};

Outcome RunOnce(uint64_t seed, bool print) {
  Run run({.seed = seed, .off = ChecksThatAreOff(), .print = print});
  Outcome outcome;
  GroupWorld world(&run, GroupScenario::Kind::kTwoGroups);
  outcome.scenario = world.scenario().ToString();
  world.Execute();
  outcome.happened = world.happened();
  outcome.failure = run.failure();
  outcome.trace = run.trace();
  return outcome;
}

std::string ToString(const GroupWorld::Happened& happened) {
  return std::to_string(happened.epochs) + " epochs, " + std::to_string(happened.processes) +
         " processes, " + std::to_string(happened.kills) + " kills, " +
         std::to_string(happened.stops) + " stops within a call, " +
         std::to_string(happened.disbelieved) + " READs disbelieved, " +
         std::to_string(happened.maps) + " maps, " + std::to_string(happened.lost) + " groups lost";
}

TEST(MovesSimulationTest, EverythingHolds) {
  uint64_t seeds = 0;
  GroupWorld::Happened all;
  ExpectEverythingHolds(RunOnce, kSeeds, [&](const Outcome& outcome) {
    ++seeds;
    all.epochs += outcome.happened.epochs;
    all.processes += outcome.happened.processes;
    all.kills += outcome.happened.kills;
    all.stops += outcome.happened.stops;
    all.disbelieved += outcome.happened.disbelieved;
    all.maps += outcome.happened.maps;
    all.lost += outcome.happened.lost;
  });
  std::cout << seeds << " seeds: " << ToString(all) << "\n";
}

TEST(MovesSimulationTest, OneSeedGivesOneRun) { ExpectOneSeedGivesOneRun(RunOnce, kSeedsTwice); }

}  // namespace
}  // namespace gannet::simulation

int main(int argc, char** argv) { return gannet::simulation::RunSimulationTests(argc, argv); }
