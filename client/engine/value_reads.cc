// READs long values, as many pieces at once as there is room for, and then the commit word again.
// That lands in the operation's own buffer, so the last step never waits for room. Whoever finds
// no room waits in one queue, in which Resume goes on.

#include "client/engine/value_reads.h"

#include <algorithm>
#include <array>

#include "client/engine/caller_memory.h"
#include "client/engine/op_fate.h"
#include "common/base/data_path_checks.h"

namespace gannet {

void ValueReads::Read(Op& op) {
  const uint32_t value_bytes = op.lookup.large().item.value_bytes;
  op.value_read.posted = 0;
  op.value_read.wanted = value_bytes;
  if (op.uses_caller_memory()) {
    op.value_read.wanted =
        static_cast<uint32_t>(std::min<uint64_t>(value_bytes, BytesOf(op.request.memory)));
  } else if (op.BorrowItem(value_bytes) == nullptr) {
    return Starve(op);
  }
  op.phase.FastGoTo(Op::Phase::kReadingValue);
  if (op.value_read.wanted == 0) return Confirm(op, Op::Phase::kConfirming);
  Post(op);
}

void ValueReads::ReadKnown(Op& op, const MemoryRange& range, uint64_t at, uint32_t bytes) {
  ClientSession& session = op.session();
  op.value_read.wanted = op.value_read.posted = bytes;
  op.phase.FastGoTo(Op::Phase::kReadingKnown);
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += bytes;
  session.sends().QueueRead({reinterpret_cast<std::byte*>(range.address() + at),
                             op.lookup.value_offset(), op.number, bytes, &range.keys()});
}

// Adds as many READs of the value as there is room for. The completion of each calls OnRead.
void ValueReads::Post(Op& op) {
  ClientSession& session = op.session();
  const uint32_t stripe = session.sends().rail_reads().StripeBytes(op.value_read.wanted);
  while (op.value_read.posted < op.value_read.wanted && session.ready()) {
    std::array<LocalPiece, SessionMemory::kPiecesMax> pieces;
    size_t n = 1;
    const uint32_t from = op.value_read.posted;
    const uint32_t end = from + std::min(stripe, op.value_read.wanted - from);
    if (op.uses_caller_memory()) {
      n = PiecesOf(op.request.memory, from, end,
                   std::span(pieces).first(session.memory().pieces_max()));
    } else {
      pieces[0] = {op.item.lent.address() + from, end - from, op.item.lent.keys};
    }
    const std::span<const LocalPiece> read(pieces.data(), n);
    if (!session.sends().TryReadInto(op.number, op.lookup.value_offset() + op.value_read.posted,
                                     read)) {
      if (op.busy.in_flight == 0) Starve(op);
      return;
    }
    uint32_t bytes = 0;
    for (const LocalPiece& piece : read) bytes += piece.bytes;
    op.value_read.posted += bytes;
    ++op.busy.in_flight;
    ++op.done.cost.reads;
    op.done.cost.read_bytes += bytes;
  }
}

void ValueReads::OnRead(Op& op) {
  if (!op.late && op.value_read.posted < op.value_read.wanted) Post(op);
  if (op.busy.in_flight > 0) return;
  if (op.late) return ops_.Finish(op, LateOutcome(ReachOf(op.session())));
  if (op.value_read.posted == op.value_read.wanted && op.phase == Op::Phase::kReadingValue) {
    Confirm(op, Op::Phase::kConfirming);
  }
}

void ValueReads::OnKnownRead(Op& op) {
  if (op.late) return ops_.Finish(op, LateOutcome(ReachOf(op.session())));
  Confirm(op, Op::Phase::kConfirmingKnown);
}

// READs the commit word again, after all of the value was READ. It lands in the operation's own
// buffer, so that this never waits for room.
void ValueReads::Confirm(Op& op, Op::Phase next) {
  op.lookup.OnValue();
  const Lookup::ReadPlan& plan = op.lookup.plan();
  op.phase.FastGoTo(next);
  op.posted_ns = ops_.now_ns();
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += plan.bytes;
  op.session().sends().QueueRead({op.buffers->item, plan.offset, op.number, plan.bytes, nullptr});
}

void ValueReads::Resume(Op& op) {
  GANNET_CHECK_DATA_PATH(op.lookup.reads_value(), "the operation READs no value");
  if (op.value_read.posted == 0) return Read(op);
  op.phase.FastGoTo(Op::Phase::kReadingValue);
  Post(op);
}

void ValueReads::Starve(Op& op) {
  const bool wants_buffer = !op.uses_caller_memory();
  if (wants_buffer && !op.session().memory().items.error().ok())
    return ops_.Finish(op, Outcome::kNoBuffers);
  op.phase.GoTo(Op::Phase::kStarved);
  if (!op.busy.starving) starved_.Push(op.number);
  op.busy.starving = true;
}

}  // namespace gannet
