#ifndef GANNET_CLIENT_ENGINE_OP_PHASE_H_
#define GANNET_CLIENT_ENGINE_OP_PHASE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "common/base/check.h"
#include "common/base/data_path_checks.h"

namespace gannet {

// What an operation does or waits for. Each phase has one reason to wait, and one function that
// ends the wait. Besides, every wait before kFinished ends at the operation's deadline, and with
// what it counted on: its connection, its server, its key's place (op_fate.h).
//
//   phase            waits for                                    until
//   kFresh           the next Poll                                Engine::StartFresh
//   kHeldBack        its turn: earlier writes of its key are      OpTable::TakeReleased
//                    over, or it begins anew
//   kWaiting         its session                                  OpRecovery::OnReady
//   kStarved         a long buffer, or room in the send queues    LookupGets::FeedStarved
//   kReading...,     its READs                                    OrdinaryGets::OnRead
//   kLookingUp, kConfirming..., kOutOfDate
//   kLocking         its compare-and-swap, and a READ behind it   LockOps::OnCompareAndSwapDone,
//                                                                 LookupGets::OnRead
//   kUnlocking       its compare-and-swap                         LockOps::OnCompareAndSwapDone
//   kPausing         Op::again_ns                                 OpTable::EndPause
//   kRequestQueued   a credit, a connection, a buffer to lend     RequestOps::SendQueued
//   kRequestSent     the answer                                   RequestOps::OnReply
//   kFinished        its caller                                   OpTable::Release
//   kReleased        all that Op::Busy names                      OpTable::FreeIfQuiet
enum class OpPhase : uint8_t {
  kFree,
  kFresh,     // begun
  kHeldBack,  // key_order.h
  kWaiting,
  kStarved,
  // An ordinary GET (ordinary_gets_inline.h) READs:
  kReadingWindow,   // its home window
  kReadingItem,     // the item that the window names
  kReadingCached,   // the item whose location is cached
  kReadingWindows,  // its home window, together with those of others (ordinary_gets_shared.cc)
  kLookingUp,       // READs what `lookup` wants
  // A GET of a large item into the caller's memory (lookup_gets_heads.cc) READs:
  kReadingKnown,     // the value, whose head is remembered
  kConfirmingKnown,  // the commit word
  kReadingValue,     // READs the value of the large item that `lookup` found
  kConfirming,       // READs the commit word of that item again
  kReadingHead,      // READs what `lookup` wants, and no value (lookup_gets_heads.cc)
  kOutOfDate,        // its READs are of an older map: it begins anew when they are done
  kLocking,          // compares and swaps; behind that, a LockAndGet READs
  kUnlocking,        // compares and swaps
  kPausing,          // its request is queued again later, as the server told it to try again
  kRequestQueued,
  kRequestSent,
  kFinished,
  kReleased,
};
inline constexpr size_t kOpPhases = 23;

std::string_view NameOf(OpPhase phase);

class OpPhaseSet {
 public:
  constexpr OpPhaseSet() = default;
  constexpr OpPhaseSet(std::initializer_list<OpPhase> phases) {
    for (const OpPhase phase : phases) bits_ |= uint32_t{1} << static_cast<uint8_t>(phase);
  }
  constexpr OpPhaseSet operator|(OpPhaseSet other) const {
    other.bits_ |= bits_;
    return other;
  }
  constexpr bool Contains(OpPhase phase) const {
    return (bits_ >> static_cast<uint8_t>(phase) & 1) != 0;
  }

 private:
  uint32_t bits_ = 0;
};
static_assert(kOpPhases <= 32);

// The phases that may follow each phase. A phase follows itself only where it is in its own row.
class OpTransitions {
 public:
  constexpr OpTransitions() {
    using enum OpPhase;
    // As Engine::Start begins it.
    const OpPhaseSet starts = {kWaiting, kReadingWindow, kReadingCached, kLookingUp, kReadingHead,
                               kLocking, kUnlocking,     kRequestQueued, kFinished};
    // What READs may lose its connection (kWaiting) or its key's place, and ends at its deadline.
    const OpPhaseSet stops_reading = {kWaiting, kOutOfDate, kHeldBack, kFinished};
    // What a lookup may come to.
    const OpPhaseSet looks_up =
        stops_reading | OpPhaseSet{kStarved, kReadingValue, kRequestQueued, kPausing};

    From(kFree) = {kFresh};
    From(kFresh) = starts | OpPhaseSet{kHeldBack, kReadingKnown, kFree};
    From(kHeldBack) = starts;
    From(kWaiting) = starts | OpPhaseSet{kHeldBack};
    From(kStarved) = {kLookingUp, kReadingHead, kWaiting, kHeldBack, kFinished};
    From(kReadingWindow) = stops_reading | OpPhaseSet{kReadingItem, kReadingWindows, kLookingUp};
    From(kReadingWindows) = stops_reading | OpPhaseSet{kReadingItem, kLookingUp};
    From(kReadingItem) = stops_reading | OpPhaseSet{kLookingUp, kFree};
    From(kReadingCached) = stops_reading | OpPhaseSet{kLookingUp, kFree};
    From(kLookingUp) = looks_up;
    From(kReadingHead) = stops_reading | OpPhaseSet{kStarved, kRequestQueued, kPausing, kLookingUp};
    From(kReadingValue) = stops_reading | OpPhaseSet{kStarved, kConfirming};
    From(kConfirming) = stops_reading | OpPhaseSet{kLookingUp};
    From(kReadingKnown) = stops_reading | OpPhaseSet{kConfirmingKnown};
    From(kConfirmingKnown) = stops_reading | OpPhaseSet{kLookingUp, kFree};
    From(kOutOfDate) = {kHeldBack, kFinished};
    From(kLocking) = {kLookingUp, kFinished};
    From(kUnlocking) = {kFinished};
    From(kPausing) = {kRequestQueued, kHeldBack, kFinished};
    From(kRequestQueued) = {kRequestSent, kRequestQueued, kHeldBack, kFinished};
    From(kRequestSent) = {kPausing,   kRequestQueued, kHeldBack, kWaiting,
                          kLookingUp, kReadingHead,   kFinished};
    From(kFinished) = {kReleased, kFree};
    From(kReleased) = {kFree};
  }

  constexpr bool Allow(OpPhase from, OpPhase to) const {
    return rows_[static_cast<uint8_t>(from)].Contains(to);
  }

 private:
  constexpr OpPhaseSet& From(OpPhase from) { return rows_[static_cast<uint8_t>(from)]; }

  std::array<OpPhaseSet, kOpPhases> rows_;
};
inline constexpr OpTransitions kOpTransitions;

// The phase of an operation. Changes only as kOpTransitions allows.
class CheckedPhase {
 public:
  operator OpPhase() const { return phase_; }

  // Changes the phase. Ends the process if that phase may not follow.
  void GoTo(OpPhase next) {
    if (!kOpTransitions.Allow(phase_, next)) [[unlikely]]
      RefuseTransition(phase_, next);
    phase_ = next;
  }
  // The same for what every GET and PUT does. Checked only where data paths are
  // (data_path_checks.h).
  void FastGoTo(OpPhase next) {
    if constexpr (kChecksDataPaths) {
      GoTo(next);
    } else {
      phase_ = next;
    }
  }

 private:
  [[noreturn]] static void RefuseTransition(OpPhase from, OpPhase to);

  OpPhase phase_ = OpPhase::kFree;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_OP_PHASE_H_
