// The order of operations on one key, and what holds a write back: one of its key ahead of it, or a
// pause that its server asked for.

#include "client/engine/op_table.h"

#include "client/engine/request_encoding.h"
#include "common/base/data_path_checks.h"
#include "common/layout/item_lease_header.h"

namespace gannet {
namespace {

// The pause before a request is sent again: at least about a round trip, and at most as long as a
// server is busy with much other work.
constexpr int64_t kPauseNsMin = 10 * kNsPerUs;
constexpr int64_t kPauseNsMax = 5 * kNsPerMs;

KeyOrder::Kind OrderKind(const Op& op) {
  if (!IsWrite(op.request.type)) return KeyOrder::Kind::kRead;
  return op.IsEager() ? KeyOrder::Kind::kWrite : KeyOrder::Kind::kSlowWrite;
}

}  // namespace

bool OpTable::Enter(Op& op) {
  const KeyOrder::Kind kind = OrderKind(op);
  const bool starts = order_.Enter(op.number, op.hash.value(), kind);
  op.in_order = kind != KeyOrder::Kind::kRead || !starts;
  if (!starts) op.phase.FastGoTo(Op::Phase::kHeldBack);
  return starts;
}

void OpTable::LeaveOrder(Op& op) {
  op.in_order = false;
  order_.Leave(op.number, [this](uint32_t next, bool stays) {
    slots_[next].in_order = stays;
    released_.Push(next);
  });
}

// Without a pause, the clients that are told to try again would keep the server from everything
// else. The longer an operation has waited, the longer is the pause, so pauses grow exponentially.
// A server that says how long it takes, because the item is leased, is believed.
void OpTable::Postpone(Op& op, uint64_t wait_ms) {
  const int64_t waited_ns = now_ns_ - (op.deadline_ns - op.request.timeout_ns);
  const int64_t pause_ns = std::clamp(waited_ns / 2, kPauseNsMin, kPauseNsMax);
  const int64_t told_ns =
      static_cast<int64_t>(std::min<uint64_t>(wait_ms, kItemLeaseMsMax)) * kNsPerMs;
  op.rpc.again_ns = now_ns_ + (told_ns > 0 ? told_ns : pause_ns);
  if (op.over()) {
    op.busy.debt = Op::LockDebt::kPausing;
  } else {
    op.phase.GoTo(Op::Phase::kPausing);
  }
  LookAt(op.rpc.again_ns);
}

// What is not sent yet is held back until its turn comes again.
bool OpTable::HoldUnsent(uint32_t number) {
  Op& op = slots_[number];
  if (op.phase != Op::Phase::kRequestQueued && op.phase != Op::Phase::kPausing) return false;
  op.CancelRequest();
  op.phase.GoTo(Op::Phase::kHeldBack);
  return true;
}

void OpTable::HoldBehind(Op& op) {
  order_.HoldBehind(op.number, [this](uint32_t number) { return HoldUnsent(number); });
}

// Returns whether a write that was refused or put off is to be sent again as the first of those. It
// then says that the client was told only if no write is ahead of it: a next primary may refuse
// that one, and must not take this word for an answer to it.
bool OpTable::Lead(Op& op, bool in_order) {
  const bool leads =
      order_.PutOff(op.number, in_order, [this](uint32_t number) { return HoldUnsent(number); });
  op.rpc.put_off = leads && in_order && order_.IsFirst(op.number);
  return leads;
}

bool OpTable::Refuse(Op& op, bool in_order) {
  const bool leads = Lead(op, in_order);
  if (!leads) op.phase.GoTo(Op::Phase::kHeldBack);
  return leads;
}

void OpTable::PutOff(Op& op, bool in_order, uint64_t wait_ms) {
  if (Lead(op, in_order)) return Postpone(op, wait_ms);
  op.phase.GoTo(Op::Phase::kHeldBack);
}

bool OpTable::HoldBackBehindPutOff(Op& op) {
  if (!op.in_order || !order_.WaitBehindPutOff(op.number)) return false;
  op.IgnoreAnswer();
  op.phase.GoTo(Op::Phase::kHeldBack);
  return true;
}

void OpTable::EndPause(Op& op) {
  GANNET_CHECK_DATA_PATH(op.pauses(), "the operation does not pause");
  if (now_ns_ < op.rpc.again_ns) return LookAt(op.rpc.again_ns);
  if (!op.over()) return RequestOpcode(op) == Opcode::kGet ? op.QueueGet() : op.QueueRequest();
  op.busy.debt = Op::LockDebt::kReleasing;
  op.EnqueueRequest();
}

}  // namespace gannet
