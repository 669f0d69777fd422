// What becomes of operations at their deadline, and when connections break and come back.

#include "client/engine/engine.h"

namespace gannet {
namespace {

bool ChangesTheStore(OpType type) { return type == OpType::kPut || type == OpType::kDelete; }

// Done twice, it is as if it was done once.
bool Repeatable(OpType type) {
  return type == OpType::kGet || type == OpType::kStats || type == OpType::kPing ||
         type == OpType::kListLocks;
}

}  // namespace

void Engine::Expire(uint32_t i) {
  Op& op = ops_[i];
  ClientSession& session = SessionOf(op);
  const Op::Phase was = op.phase;
  const bool sent = was == Op::Phase::kRequestSent;
  Outcome outcome = LateOutcome(op.request.server);
  if (sent && !session.ready() && ChangesTheStore(op.request.type)) outcome = Outcome::kUnknown;
  op.done.found = false;
  Finish(i, outcome);
  if (op.request.type == OpType::kUnlock) return KeepReleasing(i, was);
  CancelRequest(i);
  const bool taking_lock =
      op.request.type == OpType::kLock || op.request.type == OpType::kLockAndGet;
  // A lock that this request takes has to be given back, so its answer matters.
  op.busy.awaits_reply = sent && taking_lock && !op.lock_acquired;
  if (sent && !op.busy.awaits_reply) IgnoreAnswer(i);
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
  if (op.over()) {  // what it still had to do was about a lock, which is lost with the connection
    CancelRequest(i);
    IgnoreAnswer(i);
    op.busy.awaits_reply = false;
  }
  op.busy.in_flight = 0;
  op.first_sharer = op.next_sharer = kNoOp;
  const bool lost_lock = op.lock_acquired;
  op.acquiring = op.lock_acquired = op.busy.releasing = false;
  const bool locking = op.request.type == OpType::kLockAndGet || op.request.type == OpType::kLock;
  const bool needs_lock =
      op.request.type == OpType::kUnlock || op.request.type == OpType::kExtendLock;
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
      if (!locking && !needs_lock && !over_with) return;  // it is sent when connected again
      CancelRequest(i);
      return Finish(i, needs_lock ? Outcome::kLockLost : Outcome::kUnavailable);
    case Op::Phase::kHeldBack:
      if (over_with) Finish(i, Outcome::kUnavailable);
      return;
    case Op::Phase::kRequestSent:
      // The GET of a LockAndGet: what it finds is of no use without the lock.
      if (over_with || lost_lock) AbandonRequest(i);
      return;
    case Op::Phase::kFree:
    case Op::Phase::kFresh:
    case Op::Phase::kFinished:
    case Op::Phase::kReleased:
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
    case OpType::kExtendLock:
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
  if (!Repeatable(op.request.type)) return AbandonRequest(i);
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
    const bool unsent = op.phase == Op::Phase::kWaiting || op.phase == Op::Phase::kHeldBack ||
                        op.phase == Op::Phase::kRequestQueued;
    if (comeback == Comeback::kNewIncarnation && unsent && ChangesTheStore(op.request.type)) {
      CancelRequest(i);
      Finish(i, Outcome::kUnavailable);  // it was meant for another store
    } else if (op.phase == Op::Phase::kWaiting) {
      Start(i);
    }
  }
  // A server has a seed of its own for the hashes of keys, and so has each of its runs. What is
  // begun from now on must find the writes that were begun before.
  if (comeback != Comeback::kResumed) {
    order_.Rehash([this](uint32_t op) { return ops_[op].hash.value(); });
  }
  ReadSharedWindows();
}

}  // namespace gannet
