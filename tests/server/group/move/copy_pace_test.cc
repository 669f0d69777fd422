#include "server/group/move/copy_pace.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr int64_t kBegan = 1'000'000;
constexpr int64_t kStepNs = 300'000;

TEST(CopyPaceTest, GoesOnAtOnceIfThereAreCoresToSpare) {
  CopyPace pace;
  EXPECT_LE(pace.due_ns(), 0) << "the first step";
  pace.OnWorked(kBegan, kBegan + kStepNs, /*cores_are_scarce=*/false);
  EXPECT_EQ(pace.due_ns(), kBegan + kStepNs);
}

TEST(CopyPaceTest, LeavesTheCoresToOthersWhoWantThem) {
  CopyPace pace;
  pace.OnWorked(kBegan, kBegan + kStepNs, /*cores_are_scarce=*/true);
  EXPECT_EQ(pace.due_ns(), kBegan + CopyPace::kShareWhenScarce * kStepNs);
  pace.OnWorked(kBegan, kBegan + kStepNs, /*cores_are_scarce=*/false);
  EXPECT_EQ(pace.due_ns(), kBegan + kStepNs);
}

// Its session's heartbeats go on.
TEST(CopyPaceTest, AStepThatWaitedForACoreMakesNoLongPause) {
  CopyPace pace;
  pace.OnWorked(kBegan, kBegan + kNsPerSecond, /*cores_are_scarce=*/true);
  EXPECT_EQ(pace.due_ns(), kBegan + kNsPerSecond + CopyPace::kPauseNsMax);
}

}  // namespace
}  // namespace gannet
