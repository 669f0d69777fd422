#include "server/group/members/primary_phase.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace gannet {
namespace {

TEST(PrimaryPhaseTest, TakesNoStepButThoseOfThePicture) {
  using enum PrimaryPhase;
  const std::set<std::pair<PrimaryPhase, PrimaryPhase>> picture = {
      {kOpening, kApplies},     {kApplies, kOpen},   {kOpen, kHandsOver},
      {kHandsOver, kStepsDown}, {kStepsDown, kOpen}, {kOpening, kDeposed},
      {kApplies, kDeposed},     {kOpen, kDeposed},   {kHandsOver, kDeposed},
      {kStepsDown, kDeposed},
  };
  for (int i = 0; i <= static_cast<int>(kDeposed); ++i) {
    for (int j = 0; j <= static_cast<int>(kDeposed); ++j) {
      const auto from = static_cast<PrimaryPhase>(i);
      const auto to = static_cast<PrimaryPhase>(j);
      EXPECT_EQ(MayFollow(from, to), picture.contains({from, to})) << i << " to " << j;
    }
  }
}

TEST(PrimaryPhaseTest, ServesWhileItIsOpenAndRecordsUntilItStepsDown) {
  using enum PrimaryPhase;
  for (const PrimaryPhase phase : {kOpen, kHandsOver, kStepsDown}) EXPECT_TRUE(IsOpen(phase));
  for (const PrimaryPhase phase : {kOpening, kApplies, kDeposed}) EXPECT_FALSE(IsOpen(phase));
  for (const PrimaryPhase phase : {kOpening, kApplies, kOpen, kHandsOver}) {
    EXPECT_TRUE(Records(phase));
  }
  for (const PrimaryPhase phase : {kStepsDown, kDeposed}) EXPECT_FALSE(Records(phase));
}

}  // namespace
}  // namespace gannet
