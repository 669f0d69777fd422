#ifndef GANNET_TESTS_SIMULATION_SEED_RUNS_H_
#define GANNET_TESTS_SIMULATION_SEED_RUNS_H_

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "softverbs/tests/support/test_seed.h"
#include "tests/simulation/seeds.h"

namespace gannet::simulation {

// What the programs that run seeds share.

// How the run of a seed ended.
struct SeedOutcome {
  std::string failure;  // empty: everything held
  std::string scenario;
  uint64_t trace = 0;
};

// The first run of a process differs from others, because the device is created and connects to
// itself. So this discards one run first.
template <class Outcome>
Outcome RunSeed(Outcome (*run)(uint64_t seed, bool print), uint64_t seed, bool print = false) {
  static const Outcome first = run(0, false);
  return run(seed, print);
}

// Runs the seeds that the environment names, or `seeds` of them. Everything has to hold. Calls
// use(outcome) for each.
template <class Outcome, class Use>
void ExpectEverythingHolds(Outcome (*run)(uint64_t, bool), uint64_t seeds, Use use) {
  if (const auto seed = test_support::GivenSeed()) {
    const Outcome outcome = RunSeed(run, *seed, std::getenv("GANNET_SIMULATION_PRINT") != nullptr);
    std::cout << "seed " << *seed << ": " << outcome.scenario << ", trace " << outcome.trace
              << "\n";
    EXPECT_EQ(outcome.failure, "");
    return use(outcome);
  }
  const uint64_t first = NumberFrom("GANNET_SIMULATION_FIRST", 1);
  const uint64_t end = first + NumberFrom("GANNET_SIMULATION_SEEDS", seeds);
  const uint64_t failures_allowed = NumberFrom("GANNET_SIMULATION_GO_ON", 0);
  uint64_t failed = 0;
  for (uint64_t seed = first; seed < end; ++seed) {
    const Outcome outcome = RunSeed(run, seed);
    if (!outcome.failure.empty()) std::cout << outcome.failure << std::endl;
    failed += !outcome.failure.empty();
    ASSERT_LE(failed, failures_allowed) << "TEST_SEED=" << seed << " repeats it\n"
                                        << outcome.scenario;
    use(outcome);
  }
}

// Runs each of the first seeds twice.
template <class Outcome>
void ExpectOneSeedGivesOneRun(Outcome (*run)(uint64_t, bool), uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome once = RunSeed(run, seed);
    const Outcome again = RunSeed(run, seed);
    EXPECT_EQ(once.trace, again.trace) << "seed " << seed << ": " << once.scenario;
    EXPECT_EQ(once.failure, again.failure);
  }
}

// The main function.
inline int RunSimulationTests(int argc, char** argv) {
  // If the trace is printed, the server's log goes to stderr too.
  const bool print = std::getenv("GANNET_SIMULATION_PRINT") != nullptr;
  FLAGS_minloglevel = print ? google::GLOG_INFO : google::GLOG_FATAL;
  FLAGS_logtostderr = true;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_SEED_RUNS_H_
