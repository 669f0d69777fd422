// GETs that are not ordinary: a Lookup says what to READ.

#include <utility>

#include "client/engine/engine.h"

namespace gannet {
namespace {

// Counts the READ that the lookup wants, and returns where it goes. `lkey` is set if that is a
// borrowed buffer. Returns nullptr if no buffer for so long an item is free now.
inline std::byte* PrepareRead(Op& op, int64_t now_ns, std::optional<uint32_t>* lkey) {
  OpBuffers& buffers = *op.buffers;
  const Lookup::ReadPlan& plan = op.lookup.plan();
  std::byte* local = buffers.window[static_cast<int>(plan.target) & 1];
  if (plan.target == Lookup::Target::kItem) {
    local = buffers.item;
    if (plan.bytes > OpBuffers::kSmallItemBytes) [[unlikely]] {
      local = op.BorrowItem(plan.bytes);
      if (local == nullptr) return nullptr;
      *lkey = op.item.lkey;
    }
  }
  op.posted_ns = now_ns;
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += plan.bytes;
  return local;
}

Lookup::Buffers LookupBuffers(const Op& op) {
  const OpBuffers& buffers = *op.buffers;
  const bool is_long = op.lookup.plan().bytes > OpBuffers::kSmallItemBytes;
  return {{buffers.window[0], buffers.window[1]}, is_long ? op.item.data : buffers.item};
}

}  // namespace

void Engine::PlanRead(Op& op) {
  std::optional<uint32_t> lkey;
  std::byte* local = PrepareRead(op, now_ns_, &lkey);
  if (local == nullptr) [[unlikely]]
    return Starve(op);
  const Lookup::ReadPlan& plan = op.lookup.plan();
  op.session().QueueRead({local, plan.offset, op.number, plan.bytes, lkey});
}

// The same behind a compare-and-swap. Does nothing if there is no buffer.
void Engine::PlanOrderedRead(Op& op) {
  std::optional<uint32_t> lkey;
  std::byte* local = PrepareRead(op, now_ns_, &lkey);
  if (local == nullptr) return;
  op.server->ordered.Push({.op = op.number,
                           .kind = InFlightWork::Kind::kRead,
                           .bytes = op.lookup.plan().bytes,
                           .lkey = lkey.value_or(op.session().memory().op_buffers.lkey()),
                           .local = local,
                           .offset = op.lookup.plan().offset});
}

void Engine::StartLookup(Op& op, Slot cached) {
  op.phase = Op::Phase::kLookingUp;
  if (const LargeItemHeader* head = op.server->large.Find(op.hash, cached)) [[unlikely]] {
    op.lookup.StartKnown(&op.session().view(), op.key(), op.hash, cached, *head);
    return ReadValue(op);
  }
  op.lookup.Start(&op.session().view(), op.key(), op.hash, cached);
  PlanRead(op);
}

// Continues an ordinary GET. Its lookup is told of all that was READ so far, in that order, as if
// it had asked for it.
void Engine::GoOnAsLookup(Op& op) {
  const Op::Phase was = std::exchange(op.phase, Op::Phase::kLookingUp);
  const Slot cached = was == Op::Phase::kReadingCached ? op.slot : Slot();
  op.lookup.Start(&op.session().view(), op.key(), op.hash, cached);
  if (was == Op::Phase::kReadingItem) op.lookup.OnRead(LookupBuffers(op), op.posted_ns, *clock_);
  FeedLookup(op);
}

// A READ is done that is not an ordinary GET's, or whose operation is over.
void Engine::OnLookupRead(Op& op) {
  if (op.phase == Op::Phase::kReadingValue) return OnValueRead(op);
  if (op.phase == Op::Phase::kConfirming) return OnConfirmRead(op);
  if (op.first_sharer != kInvalidOp) FeedSharers(op);
  if (op.over()) return slots_.FreeIfQuiet(op);
  if (op.phase == Op::Phase::kReadingWindows) return OnSharedWindow(op);
  if (op.phase == Op::Phase::kLocking) {  // a LockAndGet; its compare-and-swap was done before
    if (!op.lock_acquired) return Finish(op, Outcome::kOk);
    op.phase = Op::Phase::kLookingUp;
  }
  if (op.phase == Op::Phase::kLookingUp) return FeedLookup(op);
  if (op.phase == Op::Phase::kReadingHead) OnHeadRead(op);
}

// Tells the lookup that the READ it wanted is done, and returns the next step. Forgets a cached
// location that was wrong.
Lookup::Step Engine::StepLookup(Op& op) {
  const bool cached = op.lookup.from_cached();
  const Lookup::Step step = op.lookup.OnRead(LookupBuffers(op), op.posted_ns, *clock_);
  const bool good = step == Lookup::Step::kHit || step == Lookup::Step::kReadValue;
  if (cached && !good) op.server->cache.Forget(op.hash, op.lookup.slot());
  return step;
}

void Engine::FeedLookup(Op& op) { Advance(op, StepLookup(op)); }

// Inlined into the path of a lookup, so that the item's description is not copied on the way.
[[gnu::always_inline]] inline void Engine::EndWithHit(Op& op, const ItemInfo& info,
                                                      std::string_view value) {
  op.session().usage().Hit();
  op.done.found = true;
  op.done.info = info;
  op.value = value;
  Finish(op, Outcome::kOk);
  if (op.uses_caller_memory()) [[unlikely]]
    CopyToCallerMemory(op);
}

void Engine::Advance(Op& op, Lookup::Step step) {
  switch (step) {
    case Lookup::Step::kRead:
      return PlanRead(op);
    case Lookup::Step::kReadValue:
      return ReadValue(op);
    case Lookup::Step::kHit: {
      EngineServer& server = *op.server;
      const Lookup& lookup = op.lookup;
      const ItemHeader& header = lookup.item().header;
      // The server's clock decides what is expired. If this client does not know, it asks.
      if (header.version != op.version_alive && server.PastExpiry(header, now_ns_)) [[unlikely]] {
        if (server.SurelyPastExpiry(header, op.begun_ns())) return FinishMiss(op);
        return op.QueueRequest();
      }
      if (server.touches != nullptr) server.touches->Used(lookup.slot());
      op.done.cost.from_cached_location = lookup.from_cached();
      if (!lookup.from_cached()) server.cache.Remember(op.hash, op.place, lookup.slot());
      if (IsLargeClass(lookup.slot().size_class())) return FinishLargeHit(op);
      return EndWithHit(op, server.MakeItemInfo(header, now_ns_), lookup.item().value);
    }
    case Lookup::Step::kMiss:
      if (op.server->touches != nullptr) op.server->touches->Missed();
      return FinishMiss(op);
    case Lookup::Step::kAskServer:
      if (op.lookup.next_index_unknown()) op.session().WantIndex();
      if (op.version_alive == 0) return op.QueueRequest();
      // The server was asked before, and the item changed since, again and again.
      op.phase = Op::Phase::kRequestQueued;
      return Postpone(op);
  }
}

void Engine::FinishHit(Op& op, ItemInfo info, std::string_view value) {
  EndWithHit(op, info, value);
}

void Engine::FinishMiss(Op& op) {
  op.session().usage().Missed();
  Finish(op, Outcome::kOk);
}

// Waits for a long buffer, unless there will never be one; or for room in the send queues.
void Engine::Starve(Op& op) {
  const bool wants_buffer = !op.uses_caller_memory();
  if (wants_buffer && !op.session().memory().items.error().ok())
    return Finish(op, Outcome::kNoBuffers);
  op.phase = Op::Phase::kStarved;
  if (!op.busy.starving) starved_.Push(op.number);
  op.busy.starving = true;
}

// Gives long buffers to the operations that wait for one, in their order.
void Engine::FeedStarved() {
  for (uint32_t n = starved_.size(); n > 0; --n) {
    Op& op = slots_[starved_.front()];
    starved_.Pop();
    op.busy.starving = false;
    if (op.phase == Op::Phase::kStarved) {
      op.phase = ReadsHead(op.request.type) ? Op::Phase::kReadingHead : Op::Phase::kLookingUp;
      if (!op.lookup.reads_value()) {
        PlanRead(op);
      } else if (op.value_posted == 0) {
        ReadValue(op);
      } else {
        op.phase = Op::Phase::kReadingValue;
        PostValueReads(op);
      }
      if (op.phase == Op::Phase::kStarved) return;
    }
    slots_.FreeIfQuiet(op);
  }
}

}  // namespace gannet
