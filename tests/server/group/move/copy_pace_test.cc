#include "server/group/move/copy_pace.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr BootTime kBegan = BootTime::FromNs(1'000'000);
constexpr int64_t kStepNs = 300'000;

TEST(CopyPaceTest, GoesOnAtOnceIfThereAreCoresToSpare) {
  CopyPace pace;
  EXPECT_LE(pace.due(), BootTime()) << "the first step";
  pace.OnWorked(kBegan, kBegan + kStepNs, /*cores_are_scarce=*/false);
  EXPECT_EQ(pace.due(), kBegan + kStepNs);
}

TEST(CopyPaceTest, LeavesTheCoresToOthersWhoWantThem) {
  CopyPace pace;
  pace.OnWorked(kBegan, kBegan + kStepNs, /*cores_are_scarce=*/true);
  EXPECT_EQ(pace.due(), kBegan + CopyPace::kShareWhenScarce * kStepNs);
  pace.OnWorked(kBegan, kBegan + kStepNs, /*cores_are_scarce=*/false);
  EXPECT_EQ(pace.due(), kBegan + kStepNs);
}

// Its session's heartbeats go on.
TEST(CopyPaceTest, AStepThatWaitedForACoreMakesNoLongPause) {
  CopyPace pace;
  pace.OnWorked(kBegan, kBegan + kNsPerSecond, /*cores_are_scarce=*/true);
  EXPECT_EQ(pace.due(), kBegan + kNsPerSecond + CopyPace::kPauseNsMax);
}

}  // namespace
}  // namespace gannet
