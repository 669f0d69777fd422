#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>

#include "tests/simulation/history.h"
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

// Of so many seeds whose server leases items, some have clients that answer from copies.
constexpr uint64_t kLeasingMin = 4;

struct StoreOutcome : SeedOutcome {
  bool leases = false;
  uint64_t near_answers = 0;
};

StoreOutcome RunOnce(uint64_t seed, bool print) {
  Run run({.seed = seed, .off = ChecksThatAreOff(), .print = print});
  StoreOutcome outcome;
  if (seed % kMuteOf == 1) {
    MuteWorld world(&run);
    world.Execute();
    outcome.scenario = world.ToString();
  } else {
    World world(&run);
    outcome.scenario = world.scenario().ToString();
    world.Execute();
    outcome.leases = world.scenario().server.item_lease_ms != 0;
    outcome.near_answers = world.near_answers();
  }
  outcome.failure = run.failure();
  outcome.trace = run.trace();
  return outcome;
}

TEST(SimulationTest, EverythingHolds) {
  uint64_t leasing = 0, near_answers = 0;
  ExpectEverythingHolds(RunOnce, kSeeds, [&](const StoreOutcome& outcome) {
    leasing += outcome.leases;
    near_answers += outcome.near_answers;
  });
  std::cout << near_answers << " answers from copies in " << leasing << " seeds\n";
  EXPECT_TRUE(near_answers > 0 || leasing < kLeasingMin) << "nobody answers from copies";
}

TEST(SimulationTest, OneSeedGivesOneRun) { ExpectOneSeedGivesOneRun(RunOnce, kSeedsTwice); }

// Of a lock that client 2 was told of at tick 200 and held until 400, and that client 4 asked for
// and was told of at these ticks. `held_until`: 0 if it proved nothing later.
std::string FailureOfTwoLocks(int64_t asked, int64_t told, int64_t held_until) {
  Run run({.seed = 1});
  History history(&run, 1, 1);
  const size_t first = history.AddAcquired(0, 2, 0x22, 180, 200);
  history.AddHeldUntil(first, 400);
  const size_t second = history.AddAcquired(0, 4, 0x44, asked, told);
  if (held_until > 0) history.AddHeldUntil(second, held_until);
  history.Check();
  return run.failure();
}

TEST(HistoryTest, NobodyIsGivenALockThatAnotherOneHolds) {
  EXPECT_THAT(FailureOfTwoLocks(210, 300, 0), testing::HasSubstr("LocksExclude"));
  EXPECT_THAT(FailureOfTwoLocks(100, 300, 350), testing::HasSubstr("LocksExclude"));
}

// It may have got it before 200, and lost it by a fail-over before it was told.
TEST(HistoryTest, WhoIsToldLateOfALockMayHaveLostIt) {
  EXPECT_EQ(FailureOfTwoLocks(100, 300, 0), "");
  EXPECT_EQ(FailureOfTwoLocks(210, 450, 0), "");
}

}  // namespace
}  // namespace gannet::simulation

int main(int argc, char** argv) { return gannet::simulation::RunSimulationTests(argc, argv); }
