// Locks: one compare-and-swap each way, or by RPC where a NIC cannot.

#include <utility>

#include "client/engine/engine.h"

namespace gannet {

void Engine::StartLock(uint32_t i) {
  Op& op = ops_[i];
  LockTable& locks = LocksOf(op);
  if (locks.HoldsForAnotherKey(op.hash)) return Finish(i, Outcome::kKeysShareWord);
  if (locks.full()) return Finish(i, Outcome::kTooManyLocks);
  op.word = locks.NextWord(op.hash);
  // Only the server can break a lock at the end of its lease, so it takes the lock with the lease.
  if (!SessionOf(op).lock_by_nic() || op.request.ttl_ms != 0) return QueueRequest(i);
  op.phase = Op::Phase::kLocking;
  op.acquiring = true;
  QueueCompareAndSwap(i, 0, op.word.word());
  if (op.request.type != OpType::kLockAndGet) return;
  // The first READ travels behind the compare-and-swap. It may be served before: a write under the
  // lock carries the version read, so nothing depends on their order.
  const Slot cached = CacheOf(op).Find(op.hash, op.place);
  op.lookup.Start(&SessionOf(op).view(), op.key(), op.hash, cached);
  PlanOrderedRead(i);  // without a buffer for it: OnLockAnswer looks up afterwards
}

void Engine::StartUnlock(uint32_t i) {
  Op& op = ops_[i];
  if (!LocksOf(op).Holds(op.hash, op.word)) return Finish(i, Outcome::kLockLost);
  if (!SessionOf(op).lock_by_nic()) return QueueRequest(i);
  op.phase = Op::Phase::kUnlocking;
  QueueCompareAndSwap(i, op.word.word(), 0);
}

void Engine::QueueCompareAndSwap(uint32_t i, uint64_t expected, uint64_t desired) {
  Op& op = ops_[i];
  ClientSession& session = SessionOf(op);
  ++op.busy.in_flight;
  ++op.done.cost.cas;
  session.QueueOrdered({.op = i,
                        .kind = InFlightWork::Kind::kCompareAndSwap,
                        .of_locks = true,
                        .bytes = sizeof(uint64_t),
                        .lkey = session.memory().op_buffers.lkey(),
                        .local = reinterpret_cast<std::byte*>(&op.buffers->cas_result),
                        .offset = LocksOf(op).IndexOf(op.hash) * sizeof(uint64_t),
                        .expected = expected,
                        .desired = desired});
}

void Engine::OnCompareAndSwapDone(uint32_t i) {
  Op& op = ops_[i];
  const LockWord previous(ops_[i].buffers->cas_result);
  if (op.busy.releasing) {
    op.busy.releasing = false;
  } else if (op.phase == Op::Phase::kUnlocking) {
    LocksOf(op).OnReleased(op.hash, op.word);
    Finish(i, previous == op.word ? Outcome::kOk : Outcome::kLockLost);
  } else if (op.phase == Op::Phase::kLocking) {
    op.acquiring = false;
    OnLockAnswer(i, previous.free(), previous);
  } else if (op.acquiring) {  // past its deadline
    op.acquiring = false;
    if (previous.free()) GiveBackLock(i);
  }
}

// By compare-and-swap or by RPC: the lock was acquired, or `holder` has it.
void Engine::OnLockAnswer(uint32_t i, bool acquired, LockWord holder) {
  Op& op = ops_[i];
  LockTable& locks = LocksOf(op);
  if (!acquired) {
    if (locks.HoldsForAnotherKey(op.hash)) return Finish(i, Outcome::kKeysShareWord);
    op.word = holder;
    if (op.busy.in_flight == 0) Finish(i, Outcome::kOk);  // else after the READ behind it
    return;
  }
  locks.OnAcquired(op.hash, op.word);
  op.done.found = op.lock_acquired = true;
  if (op.request.type != OpType::kLockAndGet) return Finish(i, Outcome::kOk);
  if (op.busy.in_flight == 0) StartLookup(i, CacheOf(op).Find(op.hash, op.place));
}

// The operation is over, and nobody will ever unlock what it acquired.
void Engine::GiveBackLock(uint32_t i) {
  Op& op = ops_[i];
  LocksOf(op).OnReleased(op.hash, op.word);
  if (!SessionOf(op).ready()) return;  // the server breaks the locks of a lost connection
  op.busy.releasing = true;
  if (SessionOf(op).lock_by_nic()) return QueueCompareAndSwap(i, op.word.word(), 0);
  PushRequest(i);
}

// An unlock is at its deadline, in the phase that it `was` in. Its caller is told so, but goes on
// to count on it: it is sent, or sent again, until the lock is surely released.
void Engine::KeepReleasing(uint32_t i, Op::Phase was) {
  Op& op = ops_[i];
  LockTable& locks = LocksOf(op);
  const bool held = locks.Holds(op.hash, op.word);
  locks.OnReleased(op.hash, op.word);
  const bool begun = was == Op::Phase::kUnlocking || was == Op::Phase::kRequestQueued ||
                     was == Op::Phase::kRequestSent;
  if (!SessionOf(op).ready()) {  // the lock is lost with the connection
    CancelRequest(i);
    IgnoreAnswer(i);
  } else if (begun) {
    op.busy.releasing = true;  // its compare-and-swap, or request, is on its way
  } else if (held) {
    GiveBackLock(i);
  }
}

}  // namespace gannet
