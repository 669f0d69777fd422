#include "server/move/copy_pace.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr int64_t kBegan = 1'000'000;
constexpr int64_t kStepNs = 300'000;

TEST(CopyPaceTest, GoesOnAtOnceIfThereAreCoresToSpare) {
  CopyPace pace([] { return false; });
  EXPECT_LE(pace.due_ns(), 0) << "the first step";
  pace.OnWorked(kBegan, kBegan + kStepNs);
  EXPECT_EQ(pace.due_ns(), kBegan + kStepNs);
  CopyPace nobody_knows({});
  nobody_knows.OnWorked(kBegan, kBegan + kStepNs);
  EXPECT_EQ(nobody_knows.due_ns(), kBegan + kStepNs);
}

TEST(CopyPaceTest, LeavesTheCoresToOthersWhoWantThem) {
  bool scarce = true;
  CopyPace pace([&] { return scarce; });
  pace.OnWorked(kBegan, kBegan + kStepNs);
  EXPECT_EQ(pace.due_ns(), kBegan + CopyPace::kShareWhenScarce * kStepNs);
  scarce = false;
  pace.OnWorked(kBegan, kBegan + kStepNs);
  EXPECT_EQ(pace.due_ns(), kBegan + kStepNs);
}

// Its session's heartbeats go on.
TEST(CopyPaceTest, AStepThatWaitedForACoreMakesNoLongPause) {
  CopyPace pace([] { return true; });
  pace.OnWorked(kBegan, kBegan + kNsPerSecond);
  EXPECT_EQ(pace.due_ns(), kBegan + kNsPerSecond + CopyPace::kPauseNsMax);
}

}  // namespace
}  // namespace gannet
