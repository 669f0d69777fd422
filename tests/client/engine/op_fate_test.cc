#include "client/engine/op_fate.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/client/engine/phases.h"

namespace gannet {

void PrintTo(const OpVerdict& verdict, std::ostream* out) {
  *out << "fate " << int{static_cast<uint8_t>(verdict.fate)} << ", outcome "
       << int{static_cast<uint8_t>(verdict.outcome)} << ", owes "
       << int{static_cast<uint8_t>(verdict.owes)};
}

namespace {

using enum OpPhase;

// What becomes of an operation in a phase.
struct Fates {
  OpVerdict lost;   // its connection
  OpVerdict down;   // its connection, and the server cannot be reached
  OpVerdict moved;  // its partition
  OpVerdict late;   // its deadline is over, and its server can be asked
};
using FatesOfPhases = std::map<OpPhase, Fates>;

constexpr OpVerdict kOn = {Fate::kGoesOn};
constexpr OpVerdict kWaits = {Fate::kWaits};
constexpr OpVerdict kAnew = {Fate::kBeginsAnew};
constexpr OpVerdict kAimed = {Fate::kIsAimed};
constexpr OpVerdict kQueued = {Fate::kIsQueued};
constexpr OpVerdict kReadsOut = {Fate::kReadsOut};
constexpr OpVerdict kMayHoldBack = {Fate::kMayHoldBack};
constexpr OpVerdict kLingers = {Fate::kLingers};
constexpr OpVerdict Ends(Outcome outcome, Owes owes = Owes::kNothing) {
  return {Fate::kEnds, outcome, owes};
}
bool IsUnsent(OpPhase phase) {
  return phase == kHeldBack || phase == kWaiting || phase == kPausing || phase == kRequestQueued;
}

constexpr OpVerdict kGone = Ends(Outcome::kUnavailable);
constexpr OpVerdict kLate = Ends(Outcome::kDeadlineExceeded);
constexpr OpVerdict kUnknown = Ends(Outcome::kUnknown);
constexpr OpVerdict kLockLost = Ends(Outcome::kLockLost);

class OpFateTest : public ::testing::Test {
 protected:
  // Returns an operation in a phase. READs are in flight if the phase has any.
  static std::unique_ptr<Op> Make(OpType type, OpPhase phase) {
    auto op = std::make_unique<Op>();
    op->request.type = type;
    op->key_bytes = 1;
    LeadTo(phase, op.get());
    if (op->reads() && phase != kStarved) op->busy.in_flight = 1;
    return op;
  }
  static Fates FatesOfOp(const Op& op) {
    return {.lost = FateOf(op, Loss::kConnection, ServerReach::kAway),
            .down = FateOf(op, Loss::kConnection, ServerReach::kDown),
            .moved = FateOf(op, Loss::kPlace, ServerReach::kReady),
            .late = FateOf(op, Loss::kTime, ServerReach::kReady)};
  }
  static void Expect(OpType type, const FatesOfPhases& wanted) {
    for (const auto& [phase, fates] : wanted) {
      const Fates got = FatesOfOp(*Make(type, phase));
      EXPECT_EQ(got.lost, fates.lost) << NameOf(phase);
      EXPECT_EQ(got.down, fates.down) << NameOf(phase);
      EXPECT_EQ(got.moved, fates.moved) << NameOf(phase);
      EXPECT_EQ(got.late, fates.late) << NameOf(phase);
    }
  }
  // Gives it memory of the caller's own.
  void GiveMemory(Op* op) const { op->request.memory = memory_; }

  const std::vector<RegisteredSpan> memory_ = std::vector<RegisteredSpan>(1);
};

TEST_F(OpFateTest, OfARead) {
  const Fates reads = {kWaits, kGone, kReadsOut, kLate};
  FatesOfPhases wanted = {{kFree, {kOn, kOn, kOn, kOn}},
                          {kFresh, {kOn, kOn, kAimed, kOn}},
                          {kHeldBack, {kOn, kGone, kAimed, kLate}},
                          {kWaiting, {kOn, kGone, kAnew, kLate}},
                          {kStarved, {kWaits, kGone, kAnew, kLate}},
                          {kOutOfDate, {kAnew, kAnew, kOn, kLate}},
                          {kPausing, {kOn, kGone, kAnew, kLate}},
                          {kRequestQueued, {kOn, kGone, kAnew, kLate}},
                          {kRequestSent, {kMayHoldBack, kGone, kOn, kLate}},
                          {kFinished, {kOn, kOn, kOn, kOn}},
                          {kReleased, {kOn, kOn, kOn, kOn}}};
  for (const OpPhase phase :
       {kReadingWindow, kReadingItem, kReadingCached, kReadingWindows, kLookingUp, kReadingKnown,
        kConfirmingKnown, kReadingValue, kConfirming, kReadingHead}) {
    wanted[phase] = reads;
  }
  for (const OpType type : {OpType::kGet, OpType::kGetInto, OpType::kExists}) Expect(type, wanted);
}

TEST_F(OpFateTest, OfAWrite) {
  Expect(OpType::kPut, {{kFresh, {kOn, kOn, kAimed, kOn}},
                        {kHeldBack, {kOn, kGone, kAimed, kLate}},
                        {kPausing, {kOn, kGone, kQueued, kLate}},
                        {kRequestQueued, {kOn, kGone, kQueued, kLate}},
                        {kRequestSent, {kMayHoldBack, kUnknown, kOn, kLate}},
                        {kFinished, {kOn, kOn, kOn, kOn}},
                        {kReleased, {kOn, kOn, kOn, kOn}}});
}

TEST_F(OpFateTest, OfWhatTakesALock) {
  Expect(
      OpType::kLockAndGet,
      {{kHeldBack, {kOn, kGone, kAimed, kLate}},
       {kWaiting, {kGone, kGone, kAnew, kLate}},
       {kStarved, {kGone, kGone, kGone, kLate}},
       {kLookingUp, {kGone, kGone, kGone, kLate}},
       {kLocking, {kGone, kGone, kGone, kLate}},
       {kPausing, {kGone, kGone, kAnew, kLate}},
       {kRequestQueued, {kGone, kGone, kAnew, kLate}},
       {kRequestSent, {kMayHoldBack, kGone, kOn, Ends(Outcome::kDeadlineExceeded, Owes::kAnswer)}},
       {kFinished, {kOn, kOn, kOn, kOn}}});
}

TEST_F(OpFateTest, OfWhatHasALock) {
  const OpVerdict late = Ends(Outcome::kDeadlineExceeded, Owes::kRelease);
  const OpVerdict moved = Ends(Outcome::kUnavailable, Owes::kRelease);
  const FatesOfPhases wanted = {{kStarved, {kGone, kGone, moved, late}},
                                {kLookingUp, {kGone, kGone, moved, late}},
                                {kReadingValue, {kGone, kGone, moved, late}},
                                {kLocking, {kGone, kGone, moved, late}},
                                {kRequestSent, {kGone, kGone, kOn, late}}};
  for (const auto& [phase, fates] : wanted) {
    const auto op = Make(OpType::kLockAndGet, phase);
    op->lock.hold = Op::Hold::kHas;
    const Fates got = FatesOfOp(*op);
    EXPECT_EQ(got.lost, fates.lost) << NameOf(phase);
    EXPECT_EQ(got.down, fates.down) << NameOf(phase);
    EXPECT_EQ(got.moved, fates.moved) << NameOf(phase);
    EXPECT_EQ(got.late, fates.late) << NameOf(phase);
  }
}

TEST_F(OpFateTest, OfWhatNeedsALock) {
  const OpVerdict unlocks = Ends(Outcome::kDeadlineExceeded, Owes::kUnlock);
  Expect(OpType::kUnlock, {{kHeldBack, {kOn, kGone, kAimed, unlocks}},
                           {kUnlocking, {kLockLost, kLockLost, kOn, unlocks}},
                           {kRequestSent, {kMayHoldBack, kLockLost, kOn, unlocks}}});
  for (const OpType type : {OpType::kUnlock, OpType::kExtendLock}) {
    for (const OpPhase phase : {kPausing, kRequestQueued}) {
      const auto op = Make(type, phase);
      EXPECT_EQ(FatesOfOp(*op).lost, kLockLost);
      EXPECT_EQ(FatesOfOp(*op).down, kLockLost);
    }
  }
}

// The server may have kept the session's locks. Nobody but the client releases them then.
TEST_F(OpFateTest, OfLocksThatMayBeKept) {
  const auto fate = [](OpType type, OpPhase phase, ServerReach reach, bool has_lock = false) {
    const auto op = Make(type, phase);
    if (has_lock) op->lock.hold = Op::Hold::kHas;
    return FateOf(*op, Loss::kOnlyConnection, reach);
  };
  constexpr ServerReach kAway = ServerReach::kAway, kDown = ServerReach::kDown;
  for (const OpPhase phase : {kPausing, kRequestQueued, kRequestSent}) {
    EXPECT_EQ(fate(OpType::kUnlock, phase, kAway).fate,
              phase == kRequestSent ? Fate::kMayHoldBack : Fate::kGoesOn);
    EXPECT_EQ(fate(OpType::kUnlock, phase, kDown), Ends(Outcome::kLockLost, Owes::kUnlock));
    EXPECT_EQ(fate(OpType::kExtendLock, phase, kDown), kLockLost);
  }
  EXPECT_EQ(fate(OpType::kExtendLock, kRequestQueued, kAway), kOn);
  EXPECT_EQ(fate(OpType::kUnlock, kWaiting, kDown), Ends(Outcome::kUnavailable, Owes::kUnlock));
  EXPECT_EQ(fate(OpType::kLock, kRequestSent, kAway), kMayHoldBack);
  EXPECT_EQ(fate(OpType::kLock, kRequestSent, kDown), Ends(Outcome::kUnavailable, Owes::kAnswer));
  EXPECT_EQ(fate(OpType::kLock, kRequestQueued, kAway), kGone) << "it was not sent";
  for (const OpPhase phase : {kStarved, kLookingUp, kReadingValue, kRequestSent}) {
    EXPECT_EQ(fate(OpType::kLockAndGet, phase, kAway, true),
              Ends(Outcome::kUnavailable, Owes::kRelease));
  }
  for (const OpPhase phase : AllPhases()) {
    for (const OpType type : {OpType::kGet, OpType::kPut}) {
      EXPECT_EQ(fate(type, phase, kAway), FateOf(*Make(type, phase), Loss::kConnection, kAway));
    }
  }
}

// The first copy of its request was sent over a connection that is lost, and may have taken it.
TEST_F(OpFateTest, WhatMayHaveTakenALockReleasesIt) {
  for (const OpPhase phase : {kPausing, kRequestQueued}) {
    const auto op = Make(OpType::kLock, phase);
    op->lock.hold = Op::Hold::kMayHave;
    EXPECT_EQ(FateOf(*op, Loss::kTime, ServerReach::kReady),
              Ends(Outcome::kDeadlineExceeded, Owes::kRelease));
    EXPECT_EQ(FateOf(*op, Loss::kOnlyConnection, ServerReach::kAway),
              Ends(Outcome::kUnavailable, Owes::kRelease));
  }
}

TEST_F(OpFateTest, WhatUsesItsCallersMemoryLingers) {
  for (const OpPhase phase : AllPhases()) {
    const auto get = Make(OpType::kGetInto, phase);
    GiveMemory(get.get());
    const bool filled = phase == kReadingKnown || phase == kReadingValue || phase == kOutOfDate;
    EXPECT_EQ(FatesOfOp(*get).late == kLingers, filled) << NameOf(phase);
    const auto put = Make(OpType::kPut, phase);
    GiveMemory(put.get());
    EXPECT_EQ(FatesOfOp(*put).late == kLingers, filled || phase == kRequestSent) << NameOf(phase);
  }
}

TEST_F(OpFateTest, WhatLingersEndsWhenItsConnectionIsLost) {
  for (const OpPhase phase : {kReadingKnown, kReadingValue, kOutOfDate}) {
    const auto get = Make(OpType::kGetInto, phase);
    get->late = true;
    EXPECT_EQ(FatesOfOp(*get).lost, kGone) << NameOf(phase);
  }
  const auto put = Make(OpType::kPut, kRequestSent);
  put->late = true;
  EXPECT_EQ(FatesOfOp(*put).lost, kUnknown);
}

TEST_F(OpFateTest, ALateWriteIsUnknownOnlyIfItsServerIsAway) {
  const auto sent = Make(OpType::kPut, kRequestSent);
  EXPECT_EQ(FateOf(*sent, Loss::kTime, ServerReach::kAway), kUnknown);
  const auto queued = Make(OpType::kPut, kRequestQueued);
  EXPECT_EQ(FateOf(*queued, Loss::kTime, ServerReach::kAway), kGone);
  queued->rpc.second_step = true;
  EXPECT_EQ(FateOf(*queued, Loss::kTime, ServerReach::kAway), kUnknown) << "a part of it was done";
  EXPECT_EQ(FateOf(*queued, Loss::kTime, ServerReach::kReady), kLate);
}

TEST_F(OpFateTest, AForgottenSessionAsksReadsAgainAndEndsWrites) {
  const auto fate = [](OpType type, OpPhase phase) {
    return FateOf(*Make(type, phase), Loss::kSession, ServerReach::kReady);
  };
  for (const OpPhase phase : AllPhases()) {
    if (phase == kRequestSent) continue;
    EXPECT_EQ(fate(OpType::kGet, phase), kOn) << NameOf(phase);
    EXPECT_EQ(fate(OpType::kPut, phase), kOn) << NameOf(phase);
  }
  EXPECT_EQ(fate(OpType::kGet, kRequestSent), kWaits);
  EXPECT_EQ(fate(OpType::kStats, kRequestSent), kWaits);
  EXPECT_EQ(fate(OpType::kPut, kRequestSent), kUnknown);
  EXPECT_EQ(fate(OpType::kFlush, kRequestSent), kUnknown);
  EXPECT_EQ(fate(OpType::kExtendLock, kRequestSent), kLockLost);
  EXPECT_EQ(fate(OpType::kLock, kRequestSent), kGone);
}

TEST_F(OpFateTest, AnotherStoreEndsWritesThatWereNotSent) {
  for (const OpPhase phase : AllPhases()) {
    const bool unsent = IsUnsent(phase);
    EXPECT_EQ(FateOf(*Make(OpType::kPut, phase), Loss::kStore, ServerReach::kReady),
              unsent ? kGone : kOn)
        << NameOf(phase);
    EXPECT_EQ(FateOf(*Make(OpType::kGet, phase), Loss::kStore, ServerReach::kReady), kOn)
        << NameOf(phase);
  }
}

TEST_F(OpFateTest, AnotherServerEndsWhatWasNotSent) {
  for (const OpPhase phase : AllPhases()) {
    const bool unsent = IsUnsent(phase);
    for (const OpType type : {OpType::kGet, OpType::kPut}) {
      EXPECT_EQ(FateOf(*Make(type, phase), Loss::kServer, ServerReach::kReady),
                unsent ? kGone : kOn)
          << NameOf(phase);
    }
  }
}

TEST_F(OpFateTest, WhatReadsNothingNowBeginsAnewAtOnce) {
  const auto op = Make(OpType::kGet, kReadingValue);
  op->busy.in_flight = 0;
  EXPECT_EQ(FatesOfOp(*op).moved, kAnew);
}

}  // namespace
}  // namespace gannet
