// Takes and gives back locks, by compare-and-swap of the NIC or by requests. An unlock whose
// deadline has come is reported, and still goes on until the lock is surely released: its caller
// relies on it. A lock that was taken for a caller who has gone is given back.

#include "client/engine/lock_ops.h"

#include "client/engine/request_encoding.h"
#include "common/base/check.h"
#include "common/base/data_path_checks.h"

namespace gannet {
namespace {

void QueueCompareAndSwap(Op& op, uint64_t expected, uint64_t desired) {
  ++op.busy.in_flight;
  ++op.done.cost.cas;
  op.server->ordered.Push({.op = op.number,
                           .kind = InFlightWork::Kind::kCompareAndSwap,
                           .of_locks = true,
                           .bytes = sizeof(uint64_t),
                           .local = reinterpret_cast<std::byte*>(&op.buffers->cas_result),
                           .keys = nullptr,
                           .offset = op.server->locks.IndexOf(op.hash) * sizeof(uint64_t),
                           .expected = expected,
                           .desired = desired});
}

}  // namespace

void LockOps::StartLock(Op& op) {
  GANNET_CHECK_DATA_PATH(op.session().ready(), "no lock can be taken now");
  LockTable& locks = op.server->locks;
  if (locks.HoldsForAnotherKey(op.hash)) return ops_.Finish(op, Outcome::kKeysShareWord);
  if (locks.full()) return ops_.Finish(op, Outcome::kTooManyLocks);
  op.lock.word = locks.NextWord(op.hash);
  // Only the server can break a lock at the end of its lease, so it takes the lock with the lease.
  if (!op.session().terms().lock_by_nic || op.request.ttl_ms != 0) return op.QueueRequest();
  op.phase.FastGoTo(Op::Phase::kLocking);
  op.lock.hold = Op::Hold::kTaking;
  QueueCompareAndSwap(op, 0, op.lock.word.word());
  if (op.request.type != OpType::kLockAndGet) return;
  // The first READ travels behind the compare-and-swap. It may be served before it: a write under
  // the lock carries the version read, so nothing depends on their order.
  gets_.StartBehindLock(op);  // if there is no buffer for it, OnAnswer looks up afterwards
}

void LockOps::StartUnlock(Op& op) {
  GANNET_CHECK_DATA_PATH(op.session().ready(), "no lock can be released now");
  if (!op.server->locks.HasToRelease(op.hash, op.lock.word)) {
    return ops_.Finish(op, Outcome::kLockLost);
  }
  if (!op.session().terms().lock_by_nic) return op.QueueRequest();
  op.phase.FastGoTo(Op::Phase::kUnlocking);
  QueueCompareAndSwap(op, op.lock.word.word(), 0);
}

void LockOps::OnCompareAndSwapDone(Op& op) {
  --op.busy.in_flight;
  const LockWord previous(op.buffers->cas_result);
  if (op.busy.releases_lock()) {
    op.busy.debt = Op::LockDebt::kNone;
  } else if (op.phase == Op::Phase::kUnlocking) {
    const bool held = op.server->locks.Holds(op.hash, op.lock.word, op.place_changes);
    op.server->locks.OnReleased(op.hash, op.lock.word);
    ops_.Finish(op, held && previous == op.lock.word ? Outcome::kOk : Outcome::kLockLost);
  } else if (op.phase == Op::Phase::kLocking) {
    op.lock.hold = Op::Hold::kNot;
    OnAnswer(op, previous.free(), previous);
  } else if (op.lock.hold == Op::Hold::kTaking) {  // the operation is past its deadline
    op.lock.hold = Op::Hold::kNot;
    if (previous.free()) GiveBack(op);
  }
  ops_.FreeIfQuiet(op);
}

// The compare-and-swap or the server says: the lock was acquired, or `holder` has it.
void LockOps::OnAnswer(Op& op, bool acquired, LockWord holder) {
  LockTable& locks = op.server->locks;
  if (!acquired) {
    if (locks.HoldsForAnotherKey(op.hash)) return ops_.Finish(op, Outcome::kKeysShareWord);
    op.lock.word = holder;
    // If a READ is behind the compare-and-swap, the operation ends after that.
    if (op.busy.in_flight == 0) ops_.Finish(op, Outcome::kOk);
    return;
  }
  locks.OnAcquired(op.hash, op.lock.word, op.place_changes);
  op.done.found = true;
  op.lock.hold = Op::Hold::kHas;
  if (op.misplaced) [[unlikely]]
    return GiveUp(op);
  if (op.request.type != OpType::kLockAndGet) return ops_.Finish(op, Outcome::kOk);
  if (op.busy.in_flight == 0) gets_.Start(op, op.server->cache.Find(op.hash, op.place));
}

void LockOps::OnReply(Op& op, const ReplyView& reply) {
  LockTable& locks = op.server->locks;
  const auto status = static_cast<ReplyStatus>(reply.header.status);
  const OpType type = op.request.type;
  if (type == OpType::kBreakLock) {
    op.done.found = status == ReplyStatus::kOk;  // otherwise nobody held it
    return ops_.Finish(op, ToOutcome(status));
  }
  const bool taking = TakesLock(type);
  const bool released = type == OpType::kUnlock || status == ReplyStatus::kLockLost;
  const bool held = taking || locks.Holds(op.hash, op.lock.word, op.place_changes);
  if (released) locks.OnReleased(op.hash, op.lock.word);
  // The connection broke before the answer came. Whatever the answer says, the lock is lost.
  if (!locks.IsOfThisConnection(op.lock.word)) {
    return ops_.Finish(op, taking ? Outcome::kUnavailable : Outcome::kLockLost);
  }
  if (!taking) return ops_.Finish(op, held ? ToOutcome(status) : Outcome::kLockLost);
  if (status == ReplyStatus::kLockHeld) {
    return OnAnswer(op, false, LockWord(reply.header.lock.lock_word));
  }
  if (status == ReplyStatus::kOk) return OnAnswer(op, true, op.lock.word);
  ops_.Finish(op, ToOutcome(status));
  if (op.may_have_lock()) GiveBack(op);
}

bool LockOps::MustAskAgain(const Op& op, const ReplyHeader& reply) {
  return op.request.type == OpType::kExtendLock &&
         reply.status == static_cast<uint8_t>(ReplyStatus::kOk) && !op.session().BelievesNow();
}

void LockOps::GiveBack(Op& op) {
  op.server->locks.OnReleased(op.hash, op.lock.word);
  const bool ready = op.session().ready();
  if (!ready && !op.server->MayKeepLocks()) return;  // the server breaks it
  op.busy.debt = Op::LockDebt::kReleasing;
  if (ready && op.session().terms().lock_by_nic)
    return QueueCompareAndSwap(op, op.lock.word.word(), 0);
  op.EnqueueRequest();
}

void LockOps::GiveUp(Op& op) {
  op.done.found = false;
  ops_.Finish(op, Outcome::kUnavailable);
  if (op.has_lock()) GiveBack(op);
}

void LockOps::End(Op& op, const OpVerdict& verdict) {
  GANNET_CHECK(verdict.fate == Fate::kEnds, "an operation ends that should go on");
  const Op::Phase was = op.phase;
  op.done.found = false;
  ops_.Finish(op, verdict.outcome);
  if (verdict.owes == Owes::kUnlock) return KeepReleasing(op, was);
  op.CancelRequest();
  if (verdict.owes == Owes::kAnswer) {
    op.busy.debt = Op::LockDebt::kAnswer;
  } else if (was == Op::Phase::kRequestSent) {
    op.IgnoreAnswer();
  }
  if (verdict.owes == Owes::kRelease) GiveBack(op);
}

// An unlock in phase `was` reached its deadline. Its caller is told so, but still relies on it. So
// this goes on to send it until the lock is surely released.
void LockOps::KeepReleasing(Op& op, Op::Phase was) {
  LockTable& locks = op.server->locks;
  const bool held = locks.HasToRelease(op.hash, op.lock.word);
  locks.OnReleased(op.hash, op.lock.word);
  const bool begun = was == Op::Phase::kUnlocking || was == Op::Phase::kPausing ||
                     was == Op::Phase::kRequestQueued || was == Op::Phase::kRequestSent;
  if (!op.session().ready() && !op.server->MayKeepLocks()) {  // the lock is lost
    op.CancelRequest();
    op.IgnoreAnswer();
  } else if (begun) {
    // Its compare-and-swap, or request, is on its way.
    op.busy.debt = was == Op::Phase::kPausing ? Op::LockDebt::kPausing : Op::LockDebt::kReleasing;
  } else if (held) {
    GiveBack(op);
  }
}

}  // namespace gannet
