// Two groups of whole servers in virtual time, with the stores that they have for etcd: etcd loses
// its data, and an operator makes the cluster again with what lives; or it has what Gannet has not
// written. What clients saw holds, nobody founds a group again, and no process ends by it.

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/simulation/group_runs.h"

namespace gannet::simulation {
namespace {

// Seeds of one run of ctest.
constexpr uint64_t kSeedsOfEtcd = GANNET_SIMULATION_SEEDS;
constexpr uint64_t kSeedsOfEtcdTwice = 1;
constexpr auto kEtcdKind = GroupScenario::Kind::kBadEtcd;

TEST(EtcdSimulationTest, EverythingHolds) { ExpectGroupsHold(RunGroups<kEtcdKind>, kSeedsOfEtcd); }

// A GET's READ is believed only by a map that closes its partition.
TEST(EtcdSimulationTest, AnOperationThatBeginsAnewHasTheMapAskedFor) {
  EXPECT_EQ(RunSeed(RunGroups<kEtcdKind>, 2959).failure, "");
}

TEST(EtcdSimulationTest, OneSeedGivesOneRun) {
  ExpectOneSeedGivesOneRun(RunGroups<kEtcdKind>, kSeedsOfEtcdTwice);
}

// Of two backups of a dead primary, one was taken out before the last write, and does not know it.
// Both said first what they had before that, which was as much.
TEST(EtcdSimulationTest, TheBestIsWhoHasMostNow) {
  EXPECT_EQ(RunSeed(RunGroups<kEtcdKind>, 2'624).failure, "");
}

}  // namespace
}  // namespace gannet::simulation
