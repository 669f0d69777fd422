// GETs of large items (common/layout/item.h). A Lookup finds the item and proves it. In between the
// value is READ: into memory of the caller's own, or into a long buffer of this client.

#include <algorithm>
#include <array>
#include <cstring>

#include "client/engine/caller_memory.h"
#include "client/engine/engine.h"

namespace gannet {

// Begins to READ the value that the lookup found.
void Engine::ReadValue(Op& op) {
  const uint32_t value_bytes = op.lookup.large().item.value_bytes;
  op.known_large = false;
  op.value_posted = 0;
  op.value_wanted = value_bytes;
  if (op.uses_caller_memory()) {
    op.value_wanted =
        static_cast<uint32_t>(std::min<uint64_t>(value_bytes, BytesOf(op.request.memory)));
  } else if (op.BorrowItem(value_bytes) == nullptr) {
    return Starve(op);
  }
  op.phase = Op::Phase::kReadingValue;
  if (op.value_wanted == 0) return ConfirmValue(op);
  PostValueReads(op);
}

// Adds as many READs of the value as there is room for. The completion of each calls OnValueRead.
void Engine::PostValueReads(Op& op) {
  ClientSession& session = op.session();
  const uint32_t domain = session.memory().domain;
  while (op.value_posted < op.value_wanted && session.ready()) {
    std::array<LocalPiece, SessionMemory::kPiecesMax> pieces;
    size_t n = 1;
    if (op.uses_caller_memory()) {
      n = PiecesOf(op.request.memory, domain, op.value_posted, op.value_wanted,
                   std::span(pieces).first(session.memory().pieces_max()));
    } else {
      pieces[0] = {op.item.address(), op.value_wanted, op.item.lkey};
    }
    const std::span<const LocalPiece> read(pieces.data(), n);
    if (!session.TryReadInto(op.number, op.lookup.value_offset() + op.value_posted, read)) {
      if (op.busy.in_flight == 0) Starve(op);
      return;
    }
    uint32_t bytes = 0;
    for (const LocalPiece& piece : read) bytes += piece.bytes;
    op.value_posted += bytes;
    ++op.busy.in_flight;
    ++op.done.cost.reads;
    op.done.cost.read_bytes += bytes;
  }
}

void Engine::OnValueRead(Op& op) {
  if (!op.late && op.value_posted < op.value_wanted) PostValueReads(op);
  if (op.busy.in_flight > 0) return;
  if (op.late) return Finish(op, servers_.LateOutcome(op.request.server));
  if (op.value_posted == op.value_wanted && op.phase == Op::Phase::kReadingValue) {
    ConfirmValue(op);
  }
}

// READs the commit word again, after all of the value was READ. It lands in the operation's own
// buffer, so that this never waits for room.
void Engine::ConfirmValue(Op& op) {
  op.lookup.OnValue();
  const Lookup::ReadPlan& plan = op.lookup.plan();
  op.phase = Op::Phase::kConfirming;
  op.posted_ns = now_ns_;
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += plan.bytes;
  op.session().QueueRead({op.buffers->item, plan.offset, op.number, plan.bytes, {}});
}

// Ends a GET of a large item.
void Engine::FinishLargeHit(Op& op) {
  op.server->large.Remember(op.hash, op.lookup.slot(), op.lookup.large());
  std::string_view value;
  if (!op.uses_caller_memory()) {
    value = {reinterpret_cast<const char*>(op.item.data), op.value_wanted};
  }
  FinishHit(op, op.server->MakeItemInfo(op.lookup.item().header, now_ns_), value);
}

// Copies a value that is not large to where the caller wants it.
void Engine::CopyToCallerMemory(Op& op) {
  if (!CopyTo(op.request.memory, op.value)) op.outcome = Outcome::kNoCpuAddress;
  op.value = {};
}

}  // namespace gannet
