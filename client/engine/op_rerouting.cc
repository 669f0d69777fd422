// Does what op_fate.h decides of operations when a map changes or a server refuses a request:
// Apply has one case a fate. Writes that wait for a credit at one server keep their order at the
// next one. Unlocks follow the lock, and not the key.

#include "client/engine/op_rerouting.h"

#include <algorithm>

#include "common/base/check.h"

namespace gannet {
namespace {

// Unlocks follow the lock, and not the key.
bool FollowsKey(const Op& op) {
  return op.key_bytes > 0 && op.request.type != OpType::kUnlock &&
         op.request.type != OpType::kExtendLock && op.request.type != OpType::kBreakLock;
}

}  // namespace

void OpRerouting::OnRoutes(const Changed& changed, uint64_t revision) {
  known_ = {.revision = revision};
  for (uint32_t partition = 0; partition < kPartitions; ++partition) {
    known_.all_served &= servers_.router().RouteOf(partition).served;
  }
  for (Op& op : ops_) {
    if (op.phase == Op::Phase::kFree || op.over() || op.key_bytes == 0) continue;
    const uint32_t partition = PartitionOf(op.key());
    const Router::Route& route = servers_.router().RouteOf(partition);
    if (!FollowsKey(op)) {
      op.place_changes = route.changes;  // it tells whether the lock is lost
      continue;
    }
    const bool elsewhere = op.server == &servers_.waiting() || op.request.server != route.server;
    op.misplaced |= changed[partition] || elsewhere;
  }
  // What is behind a request that stays where it is must not be sent before it.
  for (Op& op : ops_) {
    const bool sent = op.phase == Op::Phase::kRequestSent;
    if (op.misplaced && sent && op.in_order && op.IsWholeWrite()) ops_.HoldBehind(op);
  }
  MoveQueued(servers_.waiting());
  for (EngineServer& server : servers_) MoveQueued(server);
  for (Op& op : ops_) {
    if (op.misplaced && !op.over()) Misplace(op);
  }
  ops_.Rehash([this](const Op& op) { return servers_.OrderHash(op); });
}

// Writes that wait for a credit at one server keep their order at the next one.
void OpRerouting::MoveQueued(EngineServer& server) {
  constexpr RequestQueue::Line kWrites = RequestQueue::Line::kOthers;
  RequestQueue& queue = server.requests;
  if (queue.empty(kWrites)) return;
  const uint32_t last = queue.back(kWrites);
  for (uint32_t number = kInvalidOp; number != last;) {
    number = queue.front(kWrites);
    queue.Remove(number);
    queue.Push(number, kWrites);
    Op& op = ops_[number];
    if (op.misplaced && !op.over()) Misplace(op);
  }
}

void OpRerouting::Misplace(Op& op) { Apply(op, FateOf(op, Loss::kPlace, ReachOf(op.session()))); }

void OpRerouting::Apply(Op& op, const OpVerdict& verdict) {
  switch (verdict.fate) {
    case Fate::kGoesOn:
      return;
    case Fate::kWaits:
      return op.phase.GoTo(Op::Phase::kWaiting);
    case Fate::kBeginsAnew:
      op.CancelRequest();
      return BeginAnew(op);
    case Fate::kIsAimed:
      return Aim(op);
    case Fate::kIsQueued:
      op.CancelRequest();
      return Queue(op);
    case Fate::kReadsOut:
      return op.phase.GoTo(Op::Phase::kOutOfDate);
    case Fate::kMayHoldBack:
      ops_.HoldBackBehindPutOff(op);
      return;
    case Fate::kLingers:
      op.late = true;
      op.deadline_ns = INT64_MAX;
      return;
    case Fate::kEnds:
      return locks_.End(op, verdict);
  }
}

// REQUIRES: it is in no queue of requests, and nothing of it is in flight.
void OpRerouting::Queue(Op& op) {
  if (!op.IsWholeWrite()) return BeginAnew(op);
  Aim(op);
  op.QueueRequest();
}

void OpRerouting::TryAgain() {
  if (!AnyWaits()) return;
  EngineServer& waiting = servers_.waiting();
  for (Op& op : ops_) {
    const bool waits = op.phase > Op::Phase::kFree && !op.over() && op.server == &waiting;
    if (waits && servers_.Serves(op.key())) op.misplaced = true;
  }
  MoveQueued(waiting);
  for (Op& op : ops_) {
    if (op.misplaced && !op.over() && op.server == &waiting) Misplace(op);
  }
}

bool OpRerouting::HeldSince(uint64_t begun, uint64_t told) {
  if (begun == known_.revision && told <= known_.revision && known_.all_served) return true;
  // What is closed is open by a later map.
  Want(std::max(told, known_.revision + (known_.all_served ? 0 : 1)));
  return false;
}

bool OpRerouting::AnyWaits() const {
  if (wanted_ > known_.revision) return true;
  const EngineServer* const waiting = servers_.waiting_or_null();
  if (waiting == nullptr) return false;
  for (const Op& op : ops_) {
    if (op.phase > Op::Phase::kFree && !op.over() && op.server == waiting) return true;
  }
  return false;
}

void OpRerouting::OnRefused(Op& op, const ReplyView& reply) {
  if (!FollowsKey(op)) return ops_.Finish(op, Outcome::kLockLost);
  if (TakesLock(op.request.type) && op.has_lock()) return locks_.GiveUp(op);
  op.rpc.refused_at = reply.header.words[0];
  const bool in_order = reply.header.words[1] == kPutOffInOrder;
  op.misplaced = true;
  if (op.in_order && op.IsWholeWrite() && !ops_.Refuse(op, in_order)) return;
  const bool elsewhere = servers_.ServerOf(op.key()) != op.request.server;
  if (elsewhere || op.rpc.refused_at > known_.revision) return Queue(op);
  // The server does not know the newest map yet, or it is about to. It is asked again after the
  // next look at the map.
  servers_.AimAtWaiting(op);
  ops_.LookAt(0);
  if (op.IsWholeWrite()) return op.QueueRequest();
  op.phase.GoTo(Op::Phase::kWaiting);
}

void OpRerouting::Aim(Op& op) {
  GANNET_CHECK(op.misplaced && op.busy.in_flight == 0, "an operation that is where it belongs");
  const uint32_t told_by = op.request.server;
  op.misplaced = false;
  if (op.rpc.refused_at > known_.revision) {
    servers_.AimAtWaiting(op);
  } else {
    op.rpc.refused_at = 0;
    op.rpc.version_alive = 0;
    servers_.Aim(op);
  }
  if (op.server == servers_.waiting_or_null()) ops_.LookAt(0);  // to ask for the map
  if (op.request.server != told_by) op.rpc.put_off = false;     // this one told nothing
}

void OpRerouting::BeginAnew(Op& op) {
  op.ReturnItem();
  ops_.BeginAnew(op);
}

}  // namespace gannet
