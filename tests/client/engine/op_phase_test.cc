#include "client/engine/op_phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/client/engine/phases.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using enum OpPhase;

// Returns the phases from which an operation may come to this one.
std::vector<OpPhase> Before(OpPhase phase) {
  std::vector<OpPhase> before;
  for (const OpPhase from : AllPhases()) {
    if (kOpTransitions.Allow(from, phase)) before.push_back(from);
  }
  return before;
}
std::vector<OpPhase> After(OpPhase phase) {
  std::vector<OpPhase> after;
  for (const OpPhase to : AllPhases()) {
    if (kOpTransitions.Allow(phase, to)) after.push_back(to);
  }
  return after;
}

TEST(OpPhaseTest, EachPhaseIsReachedAndLeft) {
  for (const OpPhase phase : AllPhases()) {
    if (phase == kFree) continue;
    EXPECT_FALSE(WayBetween(kFree, phase).empty()) << NameOf(phase);
    EXPECT_FALSE(WayBetween(phase, kFree).empty()) << NameOf(phase);
  }
}

TEST(OpPhaseTest, EachPhaseHasItsName) {
  std::set<std::string_view> names;
  for (const OpPhase phase : AllPhases()) names.insert(NameOf(phase));
  EXPECT_EQ(names.size(), kOpPhases);
  EXPECT_EQ(NameOf(kFree), "kFree");
  EXPECT_EQ(NameOf(kLookingUp), "kLookingUp");
  EXPECT_EQ(NameOf(kReleased), "kReleased");
}

TEST(OpPhaseTest, AnOperationThatIsOverNeverGoesOn) {
  EXPECT_THAT(After(kFinished), UnorderedElementsAre(kReleased, kFree));
  EXPECT_THAT(After(kReleased), ElementsAre(kFree));
  EXPECT_THAT(After(kFree), ElementsAre(kFresh));
}

TEST(OpPhaseTest, EachOperationThatBeganCanEnd) {
  for (const OpPhase phase : AllPhases()) {
    const bool under_way = phase != kFree && phase < kFinished;
    EXPECT_EQ(kOpTransitions.Allow(phase, kFinished), under_way) << NameOf(phase);
  }
}

TEST(OpPhaseTest, OnlyGetsThatReportAtOnceFreeTheirSlotWithoutEnding) {
  EXPECT_THAT(Before(kFree), UnorderedElementsAre(kFresh, kReadingItem, kReadingCached,
                                                  kConfirmingKnown, kFinished, kReleased));
}

TEST(OpPhaseTest, StepsOfAReadFollowEachOther) {
  EXPECT_THAT(Before(kReadingItem), UnorderedElementsAre(kReadingWindow, kReadingWindows));
  EXPECT_THAT(Before(kReadingWindows), ElementsAre(kReadingWindow));
  EXPECT_THAT(Before(kReadingCached), UnorderedElementsAre(kFresh, kHeldBack, kWaiting));
  EXPECT_THAT(Before(kConfirming), ElementsAre(kReadingValue))
      << "the commit word is READ again behind the value";
  EXPECT_THAT(Before(kConfirmingKnown), ElementsAre(kReadingKnown));
  for (const OpPhase phase : Before(kOutOfDate)) {
    EXPECT_TRUE(Op::kReading.Contains(phase)) << NameOf(phase);
  }
}

TEST(OpPhaseTest, ARequestIsSentFromTheQueueAlone) {
  EXPECT_THAT(Before(kRequestSent), ElementsAre(kRequestQueued));
  EXPECT_FALSE(kOpTransitions.Allow(kRequestSent, kRequestSent)) << "it would be sent twice";
  EXPECT_FALSE(kOpTransitions.Allow(kPausing, kRequestSent)) << "others are in the queue";
}

TEST(OpPhaseTest, LocksAreTakenAndReleasedFromTheStartAlone) {
  EXPECT_THAT(Before(kLocking), UnorderedElementsAre(kFresh, kHeldBack, kWaiting));
  EXPECT_THAT(Before(kUnlocking), UnorderedElementsAre(kFresh, kHeldBack, kWaiting));
  EXPECT_THAT(After(kUnlocking), ElementsAre(kFinished));
}

// Each of these was possible as long as anybody could write any phase.
TEST(OpPhaseDeathTest, EveryOtherTransitionEndsTheProcess) {
  for (const OpPhase from : AllPhases()) {
    Op op;
    LeadTo(from, &op);
    for (const OpPhase to : AllPhases()) {
      if (kOpTransitions.Allow(from, to)) continue;
      const std::string transition = std::string(NameOf(from)) + " -> " + std::string(NameOf(to));
      EXPECT_DEATH(op.phase.GoTo(to), "skips a phase .*" + transition);
    }
  }
}

TEST(OpPhaseDeathTest, DataPathsAreCheckedInBuildsForThat) {
  CheckedPhase phase;
  if (kChecksDataPaths) {
    EXPECT_DEATH(phase.FastGoTo(kRequestSent), "kFree -> kRequestSent");
  } else {
    phase.FastGoTo(kRequestSent);
    EXPECT_EQ(phase, kRequestSent);
  }
}

}  // namespace
}  // namespace gannet
