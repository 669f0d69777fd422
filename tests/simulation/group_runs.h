#ifndef GANNET_TESTS_SIMULATION_GROUP_RUNS_H_
#define GANNET_TESTS_SIMULATION_GROUP_RUNS_H_

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>

#include "common/base/clock.h"
#include "tests/simulation/group_world.h"
#include "tests/simulation/run.h"
#include "tests/simulation/seed_runs.h"

namespace gannet::simulation {

// What the programs that run worlds of groups share.

// Of so many worlds whose servers lease items, some have clients that answer from copies.
constexpr uint64_t kLeasingMin = 3;

struct GroupOutcome : SeedOutcome {
  GroupWorld::Happened happened;
};

inline GroupOutcome RunWorld(GroupScenario::Kind kind, uint32_t steps, uint64_t seed, bool print) {
  Run run({.seed = seed, .off = ChecksThatAreOff(), .print = print});
  GroupOutcome outcome;
  GroupWorld world(&run, kind, steps);
  outcome.scenario = world.scenario().ToString();
  world.Execute();
  outcome.happened = world.happened();
  outcome.failure = run.failure();
  outcome.trace = run.trace();
  return outcome;
}

template <GroupScenario::Kind kKind>
GroupOutcome RunGroups(uint64_t seed, bool print) {
  return RunWorld(kKind, 0, seed, print);
}

inline std::string ToString(const GroupWorld::Happened& happened) {
  return std::to_string(happened.epochs) + " epochs, " + std::to_string(happened.processes) +
         " processes, " + std::to_string(happened.kills) + " kills, " +
         std::to_string(happened.stops) + " stops within a call, " +
         std::to_string(happened.disbelieved) + " READs disbelieved, " +
         std::to_string(happened.maps) + " maps, " + std::to_string(happened.closed) +
         " events while a partition was closed, " +
         (happened.losses + happened.garbage == 0
              ? ""
              : std::to_string(happened.losses) + " losses of etcd's data, " +
                    std::to_string(happened.forced) + " groups forced, " +
                    std::to_string(happened.garbage) + " times garbage, ") +
         std::to_string(happened.near_answers) + " answers from copies, " +
         (happened.unseated == 0
              ? ""
              : std::to_string(happened.unseated) + " primaries lost their place meanwhile, in " +
                    std::to_string(happened.hot_rounds) + " rounds, ") +
         std::to_string(happened.lost) + " groups lost, whole after " +
         std::to_string(happened.whole_ns / kNsPerMs) + " ms at most" +
         (happened.steps == 0 ? ""
                              : "; " + std::to_string(happened.steps) + " steps in " +
                                    std::to_string(happened.pieces) + " pieces, " +
                                    std::to_string(happened.groups_came) + " groups came, " +
                                    std::to_string(happened.groups_went) + " went, " +
                                    std::to_string(happened.upgrades) + " upgrades");
}

// Runs seeds as ExpectEverythingHolds does, prints what happened in all of them, and returns it.
inline GroupWorld::Happened ExpectGroupsHold(GroupOutcome (*run)(uint64_t, bool), uint64_t seeds) {
  uint64_t ran = 0;
  GroupWorld::Happened all;
  ExpectEverythingHolds(run, seeds, [&](const GroupOutcome& outcome) {
    ++ran;
    all.epochs += outcome.happened.epochs;
    all.processes += outcome.happened.processes;
    all.kills += outcome.happened.kills;
    all.stops += outcome.happened.stops;
    all.disbelieved += outcome.happened.disbelieved;
    all.maps += outcome.happened.maps;
    all.closed += outcome.happened.closed;
    all.losses += outcome.happened.losses;
    all.forced += outcome.happened.forced;
    all.garbage += outcome.happened.garbage;
    all.lost += outcome.happened.lost;
    all.leasing += outcome.happened.leasing;
    all.near_answers += outcome.happened.near_answers;
    all.hot_rounds += outcome.happened.hot_rounds;
    all.unseated += outcome.happened.unseated;
    all.whole_ns = std::max(all.whole_ns, outcome.happened.whole_ns);
    all.steps += outcome.happened.steps;
    all.pieces += outcome.happened.pieces;
    all.groups_came += outcome.happened.groups_came;
    all.groups_went += outcome.happened.groups_went;
    all.upgrades += outcome.happened.upgrades;
  });
  std::cout << ran << " seeds: " << ToString(all) << "\n";
  EXPECT_TRUE(all.near_answers > 0 || all.leasing < kLeasingMin) << "nobody answers from copies";
  return all;
}

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_GROUP_RUNS_H_
