#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>

#include "tests/simulation/run.h"
#include "tests/simulation/world.h"

namespace gannet::simulation {
namespace {

// Checks that find bugs which are known, and are not mended yet.
const std::set<Check> kOffUntilMended = {};

uint64_t Number(const char* variable, uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

// Names of checks, separated by commas.
std::set<Check> Off() {
  std::set<Check> off = kOffUntilMended;
  const char* given = std::getenv("GANNET_SIMULATION_OFF");
  const std::string names = given == nullptr ? "" : "," + std::string(given) + ",";
  for (size_t i = 0; i < kCheckNames.size(); ++i) {
    if (names.find(std::string(",") + kCheckNames[i] + ",") != std::string::npos) {
      off.insert(static_cast<Check>(i));
    }
  }
  return off;
}

struct Outcome {
  std::string failure;
  std::string scenario;
  uint64_t trace = 0;
};

Outcome RunOnce(uint64_t seed, bool print) {
  Run run({.seed = seed, .off = Off(), .print = print});
  Outcome outcome;
  {
    World world(&run);
    outcome.scenario = world.scenario().ToString();
    world.Execute();
  }
  outcome.failure = run.failure();
  outcome.trace = run.trace();
  return outcome;
}

// The first run of a process differs from others: the device comes to be, and connects to itself.
Outcome RunSeed(uint64_t seed, bool print = false) {
  static const Outcome first = RunOnce(0, false);
  return RunOnce(seed, print);
}

TEST(SimulationTest, EverythingHolds) {
  if (std::getenv("GANNET_TEST_SEED") != nullptr) {
    const uint64_t seed = Number("GANNET_TEST_SEED", 0);
    const Outcome outcome = RunSeed(seed, std::getenv("GANNET_SIMULATION_PRINT") != nullptr);
    std::cout << "seed " << seed << ": " << outcome.scenario << ", trace " << outcome.trace << "\n";
    EXPECT_EQ(outcome.failure, "");
    return;
  }
  const uint64_t first = Number("GANNET_SIMULATION_FIRST", 1);
  const uint64_t seeds = Number("GANNET_SIMULATION_SEEDS", 200);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const Outcome outcome = RunSeed(seed);
    if (std::getenv("SURVEY") != nullptr) {
      if (!outcome.failure.empty()) std::cout << outcome.failure << std::endl;
      continue;
    }
    ASSERT_EQ(outcome.failure, "") << "GANNET_TEST_SEED=" << seed << " repeats it\n"
                                   << outcome.scenario;
  }
}

TEST(SimulationTest, OneSeedGivesOneRun) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Outcome once = RunSeed(seed);
    const Outcome again = RunSeed(seed);
    EXPECT_EQ(once.trace, again.trace) << "seed " << seed << ": " << once.scenario;
    EXPECT_EQ(once.failure, again.failure);
  }
}

}  // namespace
}  // namespace gannet::simulation

int main(int argc, char** argv) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  FLAGS_logtostderr = true;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
