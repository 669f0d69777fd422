#ifndef GANNET_CLIENT_ENGINE_OP_TABLE_H_
#define GANNET_CLIENT_ENGINE_OP_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "client/engine/fixed_stack.h"
#include "client/engine/key_order.h"
#include "client/engine/op.h"
#include "client/engine/op_slots.h"
#include "client/session/fixed_ring.h"
#include "common/base/check.h"

namespace gannet {

// The operations of an Engine, from Take to Release: which are to be started, which wait for their
// key's turn, which have ended, and when to look at them again. Knows nothing of what they do. The
// engine's other parts share it, and tell it when an operation ends.
//
//   Take -> fresh -> (held back -> its turn) -> started -> Finish -> NextFinished -> Release
//
// Allocates only when it is made, and in Rehash. One owner thread.
class OpTable {
 public:
  // `all_enter`: order() is never empty.
  explicit OpTable(uint32_t depth, bool all_enter = false)
      : slots_(depth),
        fresh_(size()),
        finished_(size()),
        order_(size(), all_enter),
        released_(size()) {}

  uint32_t size() const { return slots_.size(); }
  Op& operator[](uint32_t number) { return slots_[number]; }
  const Op& operator[](uint32_t number) const { return slots_[number]; }
  auto begin() { return slots_.begin(); }
  auto end() { return slots_.end(); }
  // How many operations are taken and not released, and how many slots are not free.
  uint32_t alive() const { return slots_.alive(); }
  uint32_t not_free() const { return slots_.not_free(); }

  // The time of this Poll.
  int64_t now_ns() const { return now_ns_; }
  void SetNow(int64_t now_ns) { now_ns_ = now_ns; }

  bool HasRoom() const { return slots_.HasRoom(); }
  // Takes a slot for an operation that the next Poll starts. REQUIRES: HasRoom().
  Op& Take() {
    Op& op = slots_.Take();
    op.phase.FastGoTo(Op::Phase::kFresh);
    fresh_.Push(&op);
    return op;
  }
  // What was taken and is not started yet. Who starts or ends one takes it out.
  FixedStack<Op*>& fresh() { return fresh_; }
  const FixedStack<Op*>& fresh() const { return fresh_; }

  // The writes that are under way. Fresh ones are not yet. If it is empty, no operation has to
  // Enter.
  const KeyOrder& order() const { return order_; }
  // Returns whether an operation with a key may start now. Otherwise it is held back until its turn
  // comes, and is then `released`.
  bool Enter(Op& op);
  bool has_released() const { return !released_.empty(); }
  // Calls start(Op&) for each operation whose turn came, and passes over those that ended before.
  // What starts may end at once, and release others.
  template <class F>
  void TakeReleased(F start) {
    while (!released_.empty()) {
      Op& op = slots_[released_.front()];
      released_.Pop();
      if (op.phase == Op::Phase::kHeldBack) start(op);
    }
  }
  // Call it when the hashes of keys changed.
  // `hash_of(const Op&)` is the hash with which an operation of the same key begins now.
  template <class F>
  void Rehash(F hash_of) {
    order_.Rehash([&](uint32_t op) { return hash_of(slots_[op]); });
  }
  // Has an operation with a key begin anew, with the next operations whose turn comes. REQUIRES: it
  // is in no queue, and nothing of it is in flight.
  void BeginAnew(Op& op) {
    GANNET_CHECK(!op.busy.queued_request && op.busy.in_flight == 0,
                 "an operation begins anew while it is under way");
    op.phase.GoTo(Op::Phase::kHeldBack);
    released_.Push(op.number);
  }

  // Ends an operation. Others may get their turn.
  void Finish(Op& op, Outcome outcome) {
    op.phase.FastGoTo(Op::Phase::kFinished);
    op.outcome = outcome;
    if (op.in_order) [[unlikely]]
      LeaveOrder(op);
    finished_.Push(op.number);
  }
  // Those that finished and were not returned by NextFinished.
  const FixedRing<uint32_t>& finished() const { return finished_; }
  // Returns an operation that finished and was not returned before; kInvalidOp if there is none.
  uint32_t NextFinished() {
    if (finished_.empty()) return kInvalidOp;
    const uint32_t op = finished_.front();
    finished_.Pop();
    return op;
  }
  // See OpSlots.
  void Release(uint32_t number) { slots_.Release(slots_[number]); }
  void Free(Op& op) { slots_.Free(op); }
  void FreeIfQuiet(Op& op) { slots_.FreeIfQuiet(op); }

  // When to look at all operations: a deadline or the end of a pause, or a time before it.
  int64_t look_ns() const { return look_ns_; }
  void LookAt(int64_t ns) { look_ns_ = std::min(look_ns_, ns); }
  void LookNever() { look_ns_ = INT64_MAX; }
  // The server has no room for the operation's request now, so it is queued again after a pause:
  // the operation's own (Phase::kPausing), or the one that releases its lock (LockDebt::kPausing).
  // `wait_ms`: how long the server says that it takes; 0: it does not say.
  void Postpone(Op& op, uint64_t wait_ms = 0);
  // The server puts off a write that was sent. It is sent again later, before any other write of
  // its key that is behind it. `in_order`: the server executes nothing that was sent behind it.
  // `wait_ms` as for Postpone.
  void PutOff(Op& op, bool in_order, uint64_t wait_ms);
  // A write was sent before its key's partition moved. What is behind it of its key, and was not
  // sent, is held back until it is over.
  void HoldBehind(Op& op);
  // A server does not serve a write's key, so it is to be sent again. `in_order` as for PutOff.
  // Returns false if it waits for another write of its key that is ahead, and was refused before.
  // It is then held back.
  bool Refuse(Op& op, bool in_order);
  // The answer to a request did not come, and will not, as its connection is lost. Returns true if
  // it is a write that the server put off behind another one. Then it is held back.
  bool HoldBackBehindPutOff(Op& op);
  // Ends that pause if its time is over. REQUIRES: op.pauses().
  void EndPause(Op& op);

 private:
  void LeaveOrder(Op& op);
  bool Lead(Op& op, bool in_order);
  bool HoldUnsent(uint32_t number);

  int64_t now_ns_ = 0;
  int64_t look_ns_ = INT64_MAX;
  OpSlots slots_;
  FixedStack<Op*> fresh_;
  FixedRing<uint32_t> finished_;
  KeyOrder order_;
  FixedRing<uint32_t> released_;  // by `order_`, to be started
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_OP_TABLE_H_
