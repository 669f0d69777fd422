// What becomes of an operation that loses its connection, session, store, place or time: one
// function for each group of phases, and a switch over all phases. These functions only decide;
// OpRecovery and OpRerouting act. op_fate.h has the table that this source writes out.

#include "client/engine/op_fate.h"

namespace gannet {
namespace {

// Doing it twice has the same effect as doing it once.
bool IsRepeatable(OpType type) {
  return type == OpType::kGet || type == OpType::kGetInto || ReadsHead(type) ||
         type == OpType::kStats || type == OpType::kPing || type == OpType::kListLocks ||
         type == OpType::kStorage || type == OpType::kListClients || type == OpType::kSlowLog ||
         type == OpType::kMap;
}

// It is of no use without a lock that it has.
bool NeedsLock(OpType type) { return type == OpType::kUnlock || type == OpType::kExtendLock; }

OpVerdict Ends(Outcome outcome, Owes owes = Owes::kNothing) { return {Fate::kEnds, outcome, owes}; }

// An operation of which nothing is sent now ends.
OpVerdict EndsUndone(const Op& op) {
  return Ends(op.PartlyDone() ? Outcome::kUnknown : Outcome::kUnavailable);
}

// An operation whose request was sent ends, as the answer will not come.
OpVerdict EndsUnanswered(const Op& op) {
  if (IsWrite(op.request.type)) return Ends(Outcome::kUnknown);
  return Ends(NeedsLock(op.request.type) ? Outcome::kLockLost : Outcome::kUnavailable);
}

// The partition of a lock that is being taken moved.
OpVerdict EndsWithoutLock(const Op& op) {
  return Ends(Outcome::kUnavailable, op.may_have_lock() ? Owes::kRelease : Owes::kNothing);
}

Owes OwesAtDeadline(const Op& op, bool sent) {
  if (op.request.type == OpType::kUnlock) return Owes::kUnlock;
  if (!TakesLock(op.request.type)) return Owes::kNothing;
  if (op.has_lock()) return Owes::kRelease;
  if (sent) return Owes::kAnswer;
  return op.may_have_lock() ? Owes::kRelease : Owes::kNothing;
}

OpVerdict EndsLate(const Op& op, ServerReach reach) {
  const bool sent = op.phase == Op::Phase::kRequestSent;
  const bool in_doubt = (sent && IsWrite(op.request.type)) || op.PartlyDone();
  const bool unknown = in_doubt && reach != ServerReach::kReady;
  return Ends(unknown ? Outcome::kUnknown : LateOutcome(reach), OwesAtDeadline(op, sent));
}

// Nothing of it was sent, or what was is answered.
OpVerdict EndsUnsent(const Op& op, Loss loss, ServerReach reach) {
  switch (loss) {
    case Loss::kServer:
      return EndsUndone(op);
    case Loss::kStore:  // it was meant for another store
      return IsWrite(op.request.type) ? EndsUndone(op) : OpVerdict{};
    case Loss::kTime:
      return EndsLate(op, reach);
    case Loss::kConnection:
    case Loss::kOnlyConnection:
    case Loss::kSession:
    case Loss::kPlace:
      return {};
  }
  return {};
}

OpVerdict OfHeldBack(const Op& op, Loss loss, ServerReach reach) {
  if (loss == Loss::kPlace) return {Fate::kIsAimed};
  if (loss == Loss::kConnection && reach == ServerReach::kDown) return Ends(Outcome::kUnavailable);
  return EndsUnsent(op, loss, reach);
}

OpVerdict OfWaiting(const Op& op, Loss loss, ServerReach reach) {
  if (loss == Loss::kPlace) return {Fate::kBeginsAnew};
  const bool ends = TakesLock(op.request.type) || reach == ServerReach::kDown;
  if (loss == Loss::kConnection && ends) return EndsUndone(op);
  return EndsUnsent(op, loss, reach);
}

// `fills_memory`: READs may write to the caller's memory, if the operation has any.
OpVerdict OfReading(const Op& op, Loss loss, ServerReach reach, bool fills_memory) {
  const bool takes_lock = TakesLock(op.request.type);
  switch (loss) {
    case Loss::kConnection:
      if (op.late) return Ends(LateOutcome(reach));
      return takes_lock || reach == ServerReach::kDown ? EndsUndone(op) : OpVerdict{Fate::kWaits};
    case Loss::kPlace:
      if (takes_lock) return EndsWithoutLock(op);
      return {op.busy.in_flight == 0 ? Fate::kBeginsAnew : Fate::kReadsOut};
    case Loss::kTime:
      if (fills_memory && op.uses_caller_memory()) return {Fate::kLingers};
      return EndsLate(op, reach);
    case Loss::kOnlyConnection:
    case Loss::kSession:
    case Loss::kStore:
    case Loss::kServer:
      return {};
  }
  return {};
}

OpVerdict OfStarved(const Op& op, Loss loss, ServerReach reach) {
  if (loss == Loss::kPlace && !TakesLock(op.request.type)) return {Fate::kBeginsAnew};
  return OfReading(op, loss, reach, false);
}

OpVerdict OfOutOfDate(const Op& op, Loss loss, ServerReach reach) {
  if (loss == Loss::kPlace) return {};
  if (loss == Loss::kConnection && !op.late) return {Fate::kBeginsAnew};
  return OfReading(op, loss, reach, true);
}

OpVerdict OfLocking(const Op& op, Loss loss, ServerReach reach) {
  if (loss == Loss::kConnection) return Ends(Outcome::kUnavailable);
  if (loss == Loss::kPlace) return EndsWithoutLock(op);
  return loss == Loss::kTime ? EndsLate(op, reach) : OpVerdict{};
}

OpVerdict OfUnlocking(const Op& op, Loss loss, ServerReach reach) {
  if (loss == Loss::kConnection) return Ends(Outcome::kLockLost);
  return loss == Loss::kTime ? EndsLate(op, reach) : OpVerdict{};
}

OpVerdict OfQueued(const Op& op, Loss loss, ServerReach reach) {
  if (loss == Loss::kPlace) return {op.IsWholeWrite() ? Fate::kIsQueued : Fate::kBeginsAnew};
  if (loss != Loss::kConnection) return EndsUnsent(op, loss, reach);
  if (NeedsLock(op.request.type)) return Ends(Outcome::kLockLost);
  const bool ends = TakesLock(op.request.type) || reach == ServerReach::kDown;
  return ends ? EndsUndone(op) : OpVerdict{};  // it is sent when connected again
}

OpVerdict OfSent(const Op& op, Loss loss, ServerReach reach) {
  switch (loss) {
    case Loss::kConnection:
      // If it is the GET of a LockAndGet, what it finds is of no use without the lock.
      if (reach == ServerReach::kDown || op.has_lock() || op.late) return EndsUnanswered(op);
      return {Fate::kMayHoldBack};
    case Loss::kSession:
      return IsRepeatable(op.request.type) ? OpVerdict{Fate::kWaits} : EndsUnanswered(op);
    case Loss::kTime:
      // The server may READ the value from there.
      if (op.uses_caller_memory() && IsWrite(op.request.type)) return {Fate::kLingers};
      return EndsLate(op, reach);
    case Loss::kOnlyConnection:
    case Loss::kStore:
    case Loss::kPlace:
    case Loss::kServer:
      return {};
  }
  return {};
}

// Nobody else releases a lock that the server keeps.
OpVerdict OfKeptLocks(const Op& op, ServerReach reach) {
  OpVerdict verdict = FateOf(op, Loss::kConnection, reach);
  if (verdict.fate != Fate::kEnds) return verdict;
  const bool asks = op.phase == Op::Phase::kPausing || op.phase == Op::Phase::kRequestQueued ||
                    op.phase == Op::Phase::kRequestSent;
  if (NeedsLock(op.request.type) && asks && reach != ServerReach::kDown) return {};
  verdict.owes = OwesAtDeadline(op, op.phase == Op::Phase::kRequestSent);
  return verdict;
}

}  // namespace

OpVerdict FateOf(const Op& op, Loss loss, ServerReach reach) {
  if (loss == Loss::kOnlyConnection) return OfKeptLocks(op, reach);
  switch (op.phase) {
    case Op::Phase::kFresh:
      return {loss == Loss::kPlace ? Fate::kIsAimed : Fate::kGoesOn};
    case Op::Phase::kHeldBack:
      return OfHeldBack(op, loss, reach);
    case Op::Phase::kWaiting:
      return OfWaiting(op, loss, reach);
    case Op::Phase::kStarved:
      return OfStarved(op, loss, reach);
    case Op::Phase::kReadingWindow:
    case Op::Phase::kReadingWindows:
    case Op::Phase::kReadingItem:
    case Op::Phase::kReadingCached:
    case Op::Phase::kLookingUp:
    case Op::Phase::kConfirming:
    case Op::Phase::kConfirmingKnown:
    case Op::Phase::kReadingHead:
      return OfReading(op, loss, reach, /*fills_memory=*/false);
    case Op::Phase::kReadingKnown:
    case Op::Phase::kReadingValue:
      return OfReading(op, loss, reach, /*fills_memory=*/true);
    case Op::Phase::kOutOfDate:
      return OfOutOfDate(op, loss, reach);
    case Op::Phase::kLocking:
      return OfLocking(op, loss, reach);
    case Op::Phase::kUnlocking:
      return OfUnlocking(op, loss, reach);
    case Op::Phase::kPausing:
    case Op::Phase::kRequestQueued:
      return OfQueued(op, loss, reach);
    case Op::Phase::kRequestSent:
      return OfSent(op, loss, reach);
    case Op::Phase::kFree:
    case Op::Phase::kFinished:
    case Op::Phase::kReleased:
      return {};
  }
  return {};
}

}  // namespace gannet
