// Two groups of whole servers in virtual time, between which partitions move: what clients saw
// holds whatever goes wrong.

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/simulation/group_runs.h"

namespace gannet::simulation {
namespace {

// Seeds of one run of ctest.
constexpr uint64_t kSeedsOfMoves = GANNET_SIMULATION_SEEDS;
constexpr uint64_t kSeedsOfMovesTwice = 2;
constexpr auto kMovesKind = GroupScenario::Kind::kTwoGroups;

TEST(MovesSimulationTest, EverythingHolds) {
  ExpectGroupsHold(RunGroups<kMovesKind>, kSeedsOfMoves);
}

TEST(MovesSimulationTest, OneSeedGivesOneRun) {
  ExpectOneSeedGivesOneRun(RunGroups<kMovesKind>, kSeedsOfMovesTwice);
}

// A client drops a session whose device is slow to flush it: that has to see time pass.
TEST(MovesSimulationTest, WhoWaitsForTheDeviceWithinAPollSeesTimePass) {
  EXPECT_EQ(RunSeed(RunGroups<kMovesKind>, 300'002).failure, "");
}

// A primary that was told to stop hands over once another member has joined, though its group has
// no partition, so that nobody would miss it.
TEST(MovesSimulationTest, AGroupIsNotWholeWhileAMemberIsToStop) {
  EXPECT_EQ(RunSeed(RunGroups<kMovesKind>, 1'258).failure, "");
}

// A client is stopped between the answer to its compare-and-swap and its own return, for longer
// than the server lives that gave it the lock.
TEST(MovesSimulationTest, WhoIsToldLateOfALockMayHaveLostIt) {
  EXPECT_EQ(RunSeed(RunGroups<kMovesKind>, 3'388).failure, "");
}

}  // namespace
}  // namespace gannet::simulation
