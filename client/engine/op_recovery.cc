#include "client/engine/op_recovery.h"

namespace gannet {
namespace {

// Doing it twice has the same effect as doing it once.
bool IsRepeatable(OpType type) {
  return type == OpType::kGet || type == OpType::kGetInto || ReadsHead(type) ||
         type == OpType::kStats || type == OpType::kPing || type == OpType::kListLocks ||
         type == OpType::kStorage || type == OpType::kListClients || type == OpType::kSlowLog ||
         type == OpType::kMap;
}

// How an operation ends of which nothing is sent now.
Outcome UndoneOutcome(const Op& op) {
  return op.PartlyDone() ? Outcome::kUnknown : Outcome::kUnavailable;
}

}  // namespace

void OpRecovery::Expire(Op& op) {
  const OpType type = op.request.type;
  const Op::Phase was = op.phase;
  const bool sent = was == Op::Phase::kRequestSent;
  // The caller may use its memory again when the operation has ended.
  const bool reads = was == Op::Phase::kReadingValue || was == Op::Phase::kOutOfDate;
  if (op.uses_caller_memory() && (reads || (sent && IsWrite(type)))) {
    op.late = true;
    op.deadline_ns = INT64_MAX;
    return;
  }
  Outcome outcome = op.server->LateOutcome();
  const bool in_doubt = (sent && IsWrite(type)) || op.PartlyDone();
  if (in_doubt && !op.session().ready()) outcome = Outcome::kUnknown;
  op.done.found = false;
  ops_.Finish(op, outcome);
  if (type == OpType::kUnlock) return locks_.KeepReleasing(op, was);
  op.CancelRequest();
  // If this request takes a lock, the lock must be given back, so its answer matters.
  op.busy.awaits_reply = sent && TakesLock(type) && !op.lock_acquired;
  if (sent && !op.busy.awaits_reply) op.IgnoreAnswer();
  if (TakesLock(type) && op.lock_acquired) locks_.GiveBack(op);
}

void OpRecovery::OnLost(EngineServer& server) {
  server.locks.Restart(0, 1);
  server.ordered.Clear();
  for (Op& op : ops_) {
    if (op.phase > Op::Phase::kFresh && op.server == &server) LoseOp(op);
  }
}

// Nothing of the operation is in flight any more. What it had posted may or may not have happened.
void OpRecovery::LoseOp(Op& op) {
  if (op.over()) {  // what it still had to do was about a lock, which is lost with the connection
    op.CancelRequest();
    op.IgnoreAnswer();
    op.busy.awaits_reply = false;
  }
  op.busy.in_flight = 0;
  op.first_sharer = op.next_sharer = kInvalidOp;
  const bool lost_lock = op.lock_acquired;
  op.acquiring = op.lock_acquired = op.busy.releasing = false;
  const bool takes_lock = TakesLock(op.request.type);
  const bool needs_lock =
      op.request.type == OpType::kUnlock || op.request.type == OpType::kExtendLock;
  const bool server_down = op.session().down();
  switch (op.phase) {
    case Op::Phase::kReadingWindow:
    case Op::Phase::kReadingWindows:
    case Op::Phase::kReadingItem:
    case Op::Phase::kReadingCached:
    case Op::Phase::kLookingUp:
    case Op::Phase::kReadingValue:
    case Op::Phase::kConfirming:
    case Op::Phase::kReadingHead:
    case Op::Phase::kStarved:
      op.ReturnItem();
      op.phase.GoTo(Op::Phase::kWaiting);
      if (op.late) return ops_.Finish(op, op.server->LateOutcome());
      [[fallthrough]];
    case Op::Phase::kWaiting:
      if (takes_lock || server_down) ops_.Finish(op, UndoneOutcome(op));
      return;
    case Op::Phase::kOutOfDate:
      if (op.late) return ops_.Finish(op, op.server->LateOutcome());
      return rerouting_.BeginAnew(op);
    case Op::Phase::kLocking:
      return ops_.Finish(op, Outcome::kUnavailable);
    case Op::Phase::kUnlocking:
      return ops_.Finish(op, Outcome::kLockLost);
    case Op::Phase::kRequestQueued:
      if (!takes_lock && !needs_lock && !server_down) return;  // sent when connected again
      op.CancelRequest();
      return ops_.Finish(op, needs_lock ? Outcome::kLockLost : UndoneOutcome(op));
    case Op::Phase::kHeldBack:
      if (server_down) ops_.Finish(op, Outcome::kUnavailable);
      return;
    case Op::Phase::kRequestSent:
      if (!server_down && !op.late && ops_.HoldBackBehindPutOff(op)) return;
      // If it is the GET of a LockAndGet, what it finds is of no use without the lock.
      if (server_down || lost_lock || op.late) FailSentRequest(op);
      return;
    case Op::Phase::kFree:
    case Op::Phase::kFresh:
    case Op::Phase::kFinished:
    case Op::Phase::kReleased:
      return ops_.FreeIfQuiet(op);
  }
}

// Ends an operation whose request was sent and whose answer will not come.
void OpRecovery::FailSentRequest(Op& op) {
  op.IgnoreAnswer();
  if (IsWrite(op.request.type)) return ops_.Finish(op, Outcome::kUnknown);
  switch (op.request.type) {
    case OpType::kUnlock:
    case OpType::kExtendLock:
      return ops_.Finish(op, Outcome::kLockLost);
    default:
      return ops_.Finish(op, Outcome::kUnavailable);
  }
}

// The server forgot the session, and with it the operation's request.
void OpRecovery::AbandonOp(Op& op) {
  if (op.over()) {
    op.busy.awaits_reply = op.busy.releasing = false;
    return ops_.FreeIfQuiet(op);
  }
  if (!IsRepeatable(op.request.type)) return FailSentRequest(op);
  op.phase.GoTo(Op::Phase::kWaiting);  // OnReady starts it again
}

void OpRecovery::OnReady(EngineServer& server, Comeback comeback,
                         std::span<const uint32_t> abandoned,
                         const std::function<void(Op&)>& start) {
  const Grant& grant = server.session->grant();
  for (const uint32_t op : abandoned) AbandonOp(ops_[op]);
  server.locks.Restart(grant.connection_id, grant.lock_words);
  server.touches = server.session->touches().on() ? &server.session->touches() : nullptr;
  if (comeback == Comeback::kNewIncarnation || comeback == Comeback::kFailedOver) {
    server.cache.Clear();
    server.large.Clear();
    server.short_heads.Clear();
  }
  for (Op& op : ops_) {
    if (op.server != &server) continue;
    op.FindBuffers();
    if (op.phase <= Op::Phase::kFresh || op.over()) continue;
    servers_.HashKey(op);
    if (comeback == Comeback::kNewIncarnation && op.unsent() && IsWrite(op.request.type)) {
      op.CancelRequest();
      ops_.Finish(op, UndoneOutcome(op));  // it was meant for another store
    } else if (op.phase == Op::Phase::kWaiting) {
      start(op);
    }
  }
  // Each run of a server has its own seed for the hashes of keys. Operations that begin from now on
  // must find the writes that were begun before.
  const auto order_hash = [this](const Op& op) { return servers_.OrderHash(op); };
  if (comeback != Comeback::kResumed) ops_.Rehash(order_hash);
}

void OpRecovery::OnKeysMoved() {
  for (Op& op : ops_) {
    if (!op.unsent() || op.key_bytes == 0 || op.request.type == OpType::kUnlock) continue;
    const bool routed = servers_.routing_status().ok();
    if (routed && servers_.ServerOf(op.key()) == op.request.server) continue;
    op.CancelRequest();
    ops_.Finish(op, UndoneOutcome(op));
  }
}

}  // namespace gannet
