// A lost connection, and the next one. Between them nobody knows whether the server keeps the
// locks; the next grant says so.

#include "client/engine/op_recovery.h"

namespace gannet {
namespace {

// A server takes a connection that it closes for closed by then.
constexpr int64_t kCloseNsMax = 10 * kNsPerSecond;

}  // namespace

void OpRecovery::Suffer(Op& op, Loss loss) {
  rerouting_.Apply(op, FateOf(op, loss, ReachOf(op.session())));
}

void OpRecovery::OnLost(EngineServer& server) {
  if (server.away_since_ns == 0) server.away_since_ns = ops_.now_ns();
  // Then the server has broken them, too: it heard nothing for a silence, closed the connection,
  // and kept the locks for another one. A slot that is to release one must not wait for ever.
  const int64_t kept_ns = 3 * server.session->terms().silence_ns() + kCloseNsMax;
  const bool over = ops_.now_ns() - server.away_since_ns > kept_ns;
  // But a server that stood still may keep them yet, and would give them to this session's next
  // connection, which does not know them any more. As nobody's they end with a silence.
  if (over && server.MayKeepLocks()) server.session->first().ForgetSession();
  if (over || !server.MayKeepLocks()) server.locks.Restart(0, 1);
  server.ordered.Clear();
  const Loss loss = server.MayKeepLocks() ? Loss::kOnlyConnection : Loss::kConnection;
  for (Op& op : ops_) {
    if (op.phase > Op::Phase::kFresh && op.server == &server) LoseOp(op, loss);
  }
}

// Nothing of the operation is in flight any more. What it had posted may or may not have happened.
void OpRecovery::LoseOp(Op& op, Loss loss) {
  const OpVerdict verdict = FateOf(op, loss, ReachOf(op.session()));
  if (op.over()) {
    if (loss == Loss::kConnection) ForgiveDebt(op);
  } else if (op.reads()) {
    op.ReturnItem();
  }
  op.busy.in_flight = 0;
  op.window.first_sharer = op.window.next_sharer = kInvalidOp;
  // Its request is sent again. Until that is answered, the first copy may have taken the lock.
  const bool asked = op.phase == Op::Phase::kRequestSent || op.lock.hold == Op::Hold::kMayHave ||
                     op.busy.debt == Op::LockDebt::kAnswer;
  const bool may_have = loss == Loss::kOnlyConnection && TakesLock(op.request.type) && asked;
  op.lock.hold = may_have ? Op::Hold::kMayHave : Op::Hold::kNot;
  rerouting_.Apply(op, verdict);
  ops_.FreeIfQuiet(op);
}

void OpRecovery::ForgiveDebt(Op& op) {
  op.CancelRequest();
  op.IgnoreAnswer();
  op.busy.debt = Op::LockDebt::kNone;
}

// The server forgot the session, and with it the operation's request.
void OpRecovery::AbandonOp(Op& op) {
  if (op.over()) {
    op.busy.debt = Op::LockDebt::kNone;
    return ops_.FreeIfQuiet(op);
  }
  Suffer(op, Loss::kSession);  // if it waits, OnReady starts it again
}

void OpRecovery::OnReady(EngineServer& server, Comeback comeback,
                         std::span<const uint32_t> abandoned, absl::FunctionRef<void(Op&)> start) {
  const Grant& grant = server.session->grant();
  for (const uint32_t op : abandoned) AbandonOp(ops_[op]);
  server.away_since_ns = 0;
  const bool kept =
      comeback == Comeback::kResumed && server.locks.connection_id() == grant.connection_id;
  if (!kept) server.locks.Restart(grant.connection_id, grant.lock_words);
  server.touches =
      server.session->news().touches().on() ? &server.session->news().touches() : nullptr;
  if (comeback == Comeback::kNewIncarnation || comeback == Comeback::kFailedOver) {
    server.cache.Clear();
    server.large.Clear();
    server.short_heads.Clear();
  }
  for (Op& op : ops_) {
    if (op.server != &server) continue;
    op.FindBuffers();
    if (!kept && op.over()) {
      ForgiveDebt(op);
      ops_.FreeIfQuiet(op);
    }
    if (op.phase <= Op::Phase::kFresh || op.over()) continue;
    servers_.HashKey(op);
    if (comeback == Comeback::kNewIncarnation) Suffer(op, Loss::kStore);
    if (op.phase == Op::Phase::kWaiting) start(op);
  }
  // Each run of a server has its own seed for the hashes of keys. Operations that begin from now on
  // must find the writes that were begun before.
  const auto order_hash = [this](const Op& op) { return servers_.OrderHash(op); };
  if (comeback != Comeback::kResumed) ops_.Rehash(order_hash);
}

void OpRecovery::OnKeysMoved() {
  for (Op& op : ops_) {
    if (op.phase == Op::Phase::kFree || op.over() || op.key_bytes == 0) continue;
    if (op.request.type == OpType::kUnlock) continue;
    const bool routed = servers_.routing_status().ok();
    if (routed && servers_.ServerOf(op.key()) == op.request.server) continue;
    Suffer(op, Loss::kServer);
  }
}

}  // namespace gannet
