// What becomes of operations at their deadline, and when connections break and come back.

#include "client/engine/engine.h"

namespace gannet {
namespace {

bool ChangesTheStore(OpType type) { return type == OpType::kPut || type == OpType::kDelete; }

}  // namespace

void Engine::Expire(uint32_t i) {
  Op& op = ops_[i];
  ClientSession& session = SessionOf(op);
  const bool ready = session.ready();
  const bool sent = op.phase == Op::Phase::kRequestSent;
  Outcome outcome = ready ? Outcome::kDeadlineExceeded : Outcome::kUnavailable;
  if (sent && !ready && ChangesTheStore(op.request.type)) outcome = Outcome::kUnknown;
  const bool unlocking = op.request.type == OpType::kUnlock;
  if (unlocking && op.phase > Op::Phase::kWaiting) LocksOf(op).OnReleased(op.hash, op.word);
  op.done.found = false;
  const bool taking_lock =
      op.request.type == OpType::kLock || op.request.type == OpType::kLockAndGet;
  if (sent) {
    // A lock that this request takes has to be given back, so its answer matters.
    op.busy.awaits_reply = taking_lock && !op.lock_acquired;
    if (!op.busy.awaits_reply) IgnoreAnswer(i);
  }
  Finish(i, outcome);
  if (taking_lock && op.lock_acquired) GiveBackLock(i);
}

// To the request that the operation sent last, if it is unanswered: the slot may be another's when
// it comes.
void Engine::IgnoreAnswer(uint32_t i) {
  RequestWindow::Entry* entry = SessionOf(ops_[i]).window().Find(ops_[i].sequence);
  if (entry != nullptr && entry->op == i) entry->op = kNoOp;
}

void Engine::OnLost(uint32_t server) {
  servers_[server].locks.Restart(0, 1);
  for (uint32_t i = 0; i < ops_.size(); ++i) {
    const Op& op = ops_[i];
    if (op.phase > Op::Phase::kFresh && op.server == &servers_[server]) LoseOp(i);
  }
}

// Nothing of the operation is in flight any more; what it had posted may or may not have happened.
void Engine::LoseOp(uint32_t i) {
  Op& op = ops_[i];
  if (op.busy.releasing) IgnoreAnswer(i);  // the lock is lost anyway
  op.busy.in_flight = 0;
  op.first_sharer = op.next_sharer = kNoOp;
  op.acquiring = op.lock_acquired = op.busy.releasing = false;
  const bool locking = op.request.type == OpType::kLockAndGet || op.request.type == OpType::kLock;
  const bool over_with = SessionOf(op).down();
  switch (op.phase) {
    case Op::Phase::kReadingWindow:
    case Op::Phase::kReadingWindows:
    case Op::Phase::kReadingItem:
    case Op::Phase::kReadingCached:
    case Op::Phase::kLookingUp:
    case Op::Phase::kStarved:
      ReturnItem(op);
      op.phase = Op::Phase::kWaiting;
      [[fallthrough]];
    case Op::Phase::kWaiting:
      if (locking || over_with) Finish(i, Outcome::kUnavailable);
      return;
    case Op::Phase::kLocking:
      return Finish(i, Outcome::kUnavailable);
    case Op::Phase::kUnlocking:
      return Finish(i, Outcome::kLockLost);
    case Op::Phase::kRequestQueued:
      if (op.request.type == OpType::kUnlock) return Finish(i, Outcome::kLockLost);
      if (locking || over_with) Finish(i, Outcome::kUnavailable);
      return;
    case Op::Phase::kRequestSent:
      if (over_with) AbandonRequest(i);
      return;
    case Op::Phase::kFree:
    case Op::Phase::kFresh:
    case Op::Phase::kFinished:
    case Op::Phase::kReleased:
      if (over_with && op.busy.awaits_reply) {
        IgnoreAnswer(i);  // the session may come back, and the slot be another operation's
        op.busy.awaits_reply = false;
      }
      return FreeIfQuiet(i);
  }
}

// The answer to the operation's request will not come.
void Engine::AbandonRequest(uint32_t i) {
  Op& op = ops_[i];
  IgnoreAnswer(i);
  switch (op.request.type) {
    case OpType::kPut:
    case OpType::kDelete:
      return Finish(i, Outcome::kUnknown);
    case OpType::kUnlock:
      return Finish(i, Outcome::kLockLost);
    default:
      return Finish(i, Outcome::kUnavailable);
  }
}

void Engine::OnAbandoned(uint32_t i) {
  Op& op = ops_[i];
  if (op.over()) {
    op.busy.awaits_reply = op.busy.releasing = false;
    return FreeIfQuiet(i);
  }
  const bool repeatable = op.request.type == OpType::kGet || op.request.type == OpType::kStats ||
                          op.request.type == OpType::kPing;
  if (!repeatable) return AbandonRequest(i);
  op.phase = Op::Phase::kWaiting;  // OnReady starts it again
}

void Engine::OnReady(uint32_t server, Comeback comeback) {
  Server& of = servers_[server];
  const ClientSession& session = *of.session;
  hash_seed_ = session.view().hash_seed;
  of.locks.Restart(session.grant().connection_id, session.grant().lock_words);
  if (comeback == Comeback::kNewIncarnation) of.cache.Clear();
  for (uint32_t i = 0; i < ops_.size(); ++i) {
    Op& op = ops_[i];
    if (op.server != &of) continue;
    op.buffers = BuffersOf(op);
    if (op.phase <= Op::Phase::kFresh || op.over()) continue;
    HashKeyOf(op);
    const bool unsent = op.phase == Op::Phase::kWaiting || op.phase == Op::Phase::kRequestQueued;
    if (comeback == Comeback::kNewIncarnation && unsent && ChangesTheStore(op.request.type)) {
      Finish(i, Outcome::kUnavailable);  // it was meant for another store
    } else if (op.phase == Op::Phase::kWaiting) {
      Start(i);
    }
  }
  ReadSharedWindows();
}

}  // namespace gannet
