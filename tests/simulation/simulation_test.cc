#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/simulation/mute_world.h"
#include "tests/simulation/run.h"
#include "tests/simulation/seeds.h"
#include "tests/simulation/world.h"
#include "tests/support/test_seed.h"

namespace gannet::simulation {
namespace {

// Seeds of one run of ctest. They take some seconds, or tens of seconds in sanitizer presets.
constexpr uint64_t kSeeds = GANNET_SIMULATION_SEEDS;
constexpr uint64_t kSeedsTwice = 5;
// One of so many seeds runs a server that is mute at times.
constexpr uint64_t kMuteOf = 8;

struct Outcome {
  std::string failure;
  std::string scenario;
  uint64_t trace = 0;
};

Outcome RunOnce(uint64_t seed, bool print) {
  Run run({.seed = seed, .off = ChecksThatAreOff(), .print = print});
  Outcome outcome;
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

// The first run of a process differs from others, because the device is created and connects to
// itself. So this discards one run first.
Outcome RunSeed(uint64_t seed, bool print = false) {
  static const Outcome first = RunOnce(0, false);
  return RunOnce(seed, print);
}

TEST(SimulationTest, EverythingHolds) {
  if (const auto seed = test_support::GivenSeed()) {
    const Outcome outcome = RunSeed(*seed, std::getenv("GANNET_SIMULATION_PRINT") != nullptr);
    std::cout << "seed " << *seed << ": " << outcome.scenario << ", trace " << outcome.trace
              << "\n";
    EXPECT_EQ(outcome.failure, "");
    return;
  }
  const uint64_t first = NumberFrom("GANNET_SIMULATION_FIRST", 1);
  const uint64_t seeds = NumberFrom("GANNET_SIMULATION_SEEDS", kSeeds);
  const uint64_t failures_allowed = NumberFrom("GANNET_SIMULATION_GO_ON", 0);
  uint64_t failed = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const Outcome outcome = RunSeed(seed);
    if (!outcome.failure.empty()) std::cout << outcome.failure << std::endl;
    failed += !outcome.failure.empty();
    ASSERT_LE(failed, failures_allowed) << "GANNET_TEST_SEED=" << seed << " repeats it\n"
                                        << outcome.scenario;
  }
}

TEST(SimulationTest, OneSeedGivesOneRun) {
  for (uint64_t seed = 1; seed <= kSeedsTwice; ++seed) {
    const Outcome once = RunSeed(seed);
    const Outcome again = RunSeed(seed);
    EXPECT_EQ(once.trace, again.trace) << "seed " << seed << ": " << once.scenario;
    EXPECT_EQ(once.failure, again.failure);
  }
}

}  // namespace
}  // namespace gannet::simulation

int main(int argc, char** argv) {
  // If the trace is printed, the server's log goes to stderr too.
  const bool print = std::getenv("GANNET_SIMULATION_PRINT") != nullptr;
  FLAGS_minloglevel = print ? google::GLOG_INFO : google::GLOG_FATAL;
  FLAGS_logtostderr = true;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
