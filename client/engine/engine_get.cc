// Every GET that is not an ordinary one: its lookup says what to READ.

#include <cstring>
#include <utility>

#include "client/engine/engine.h"

namespace gannet {

// Where the READ that the lookup wants goes, and counts it. nullptr: there is no buffer for so long
// an item now.
inline std::byte* Engine::PlanTarget(uint32_t i, std::optional<uint32_t>* lkey) {
  Op& op = ops_[i];
  OpBuffers& buffers = *op.buffers;
  const Lookup::ReadPlan& plan = op.lookup.plan();
  std::byte* local = buffers.window[static_cast<int>(plan.target) & 1];
  if (plan.target == Lookup::Target::kItem) {
    local = buffers.item;
    if (plan.bytes > OpBuffers::kSmallItemBytes) [[unlikely]] {
      local = LongBuffer(op, plan.bytes);
      if (local == nullptr) return nullptr;
      *lkey = op.item.lkey;
    }
  }
  op.posted_ns = now_ns_;
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += plan.bytes;
  return local;
}

void Engine::PlanRead(uint32_t i) {
  Op& op = ops_[i];
  std::optional<uint32_t> lkey;
  std::byte* local = PlanTarget(i, &lkey);
  if (local == nullptr) [[unlikely]]
    return Starve(i);
  const Lookup::ReadPlan& plan = op.lookup.plan();
  SessionOf(op).QueueRead({local, plan.offset, i, plan.bytes, lkey});
}

// Behind a compare-and-swap. Does nothing when there is no buffer.
void Engine::PlanOrderedRead(uint32_t i) {
  Op& op = ops_[i];
  std::optional<uint32_t> lkey;
  std::byte* local = PlanTarget(i, &lkey);
  if (local == nullptr) return;
  SessionOf(op).QueueOrdered({.op = i,
                              .kind = InFlightWork::Kind::kRead,
                              .bytes = op.lookup.plan().bytes,
                              .lkey = lkey.value_or(SessionOf(op).memory().op_buffers.lkey()),
                              .local = local,
                              .offset = op.lookup.plan().offset});
}

void Engine::StartLookup(uint32_t i, Slot cached) {
  Op& op = ops_[i];
  op.phase = Op::Phase::kLookingUp;
  op.lookup.Start(&SessionOf(op).view(), op.key(), op.hash, cached);
  PlanRead(i);
}

// A GET that began as an ordinary one: its lookup is told of all that was READ so far, in that
// order, as if it had asked for it.
void Engine::GoOnAsLookup(uint32_t i) {
  Op& op = ops_[i];
  const Op::Phase was = std::exchange(op.phase, Op::Phase::kLookingUp);
  const Slot cached = was == Op::Phase::kReadingCached ? op.slot : Slot();
  op.lookup.Start(&SessionOf(op).view(), op.key(), op.hash, cached);
  if (was == Op::Phase::kReadingItem) op.lookup.OnRead(LookupBuffers(i), op.posted_ns, *clock_);
  FeedLookup(i);
}

void Engine::OnDoorbell(uint32_t i) { ++ops_[i].done.cost.posts; }

bool Engine::OnPostOrdered(uint32_t i, InFlightWork::Kind kind, bool doorbell) {
  Op& op = ops_[i];
  if (op.over() && !op.busy.releasing) [[unlikely]] {
    --op.busy.in_flight;
    if (kind == InFlightWork::Kind::kCompareAndSwap) op.acquiring = false;
    FreeIfQuiet(i);
    return false;
  }
  op.done.cost.posts += doorbell;
  return true;
}

Lookup::Buffers Engine::LookupBuffers(uint32_t i) {
  const Op& op = ops_[i];
  const OpBuffers& buffers = *op.buffers;
  const bool is_long = op.lookup.plan().bytes > OpBuffers::kSmallItemBytes;
  return {{buffers.window[0], buffers.window[1]}, is_long ? op.item.data : buffers.item};
}

// A READ that is not an ordinary GET's; or that, and the operation is over.
void Engine::OnLookupRead(uint32_t i) {
  Op& op = ops_[i];
  if (op.first_sharer != kNoOp) FeedSharers(i);
  if (op.over()) return FreeIfQuiet(i);
  if (op.phase == Op::Phase::kReadingWindows) return OnSharedWindow(op);
  if (op.phase == Op::Phase::kLocking) {  // a LockAndGet's, whose compare-and-swap came before
    if (!op.lock_acquired) return Finish(i, Outcome::kOk);
    op.phase = Op::Phase::kLookingUp;
  }
  if (op.phase == Op::Phase::kLookingUp) FeedLookup(i);
}

// What the lookup wanted is READ.
void Engine::FeedLookup(uint32_t i) {
  Op& op = ops_[i];
  const bool cached = op.lookup.from_cached();
  const Lookup::Step step = op.lookup.OnRead(LookupBuffers(i), op.posted_ns, *clock_);
  if (cached && step != Lookup::Step::kHit) CacheOf(op).Forget(op.hash, op.lookup.slot());
  Advance(i, step);
}

void Engine::FinishHit(uint32_t i, ItemInfo info, std::string_view value) {
  Op& op = ops_[i];
  op.done.found = true;
  op.done.info = info;
  op.value = value;
  Finish(i, Outcome::kOk);
}

void Engine::Advance(uint32_t i, Lookup::Step step) {
  switch (step) {
    case Lookup::Step::kRead:
      PlanRead(i);
      return;
    case Lookup::Step::kHit: {
      Op& op = ops_[i];
      const Lookup& lookup = op.lookup;
      // The server, not this client, decides what is expired.
      if (PastExpiry(*op.server, lookup.item().header)) return QueueRequest(i);
      op.done.cost.from_cached_location = lookup.from_cached();
      if (!lookup.from_cached()) CacheOf(op).Remember(op.hash, op.place, lookup.slot());
      return FinishHit(i, InfoOf(*op.server, lookup.item().header), lookup.item().value);
    }
    case Lookup::Step::kMiss:
      return Finish(i, Outcome::kOk);
    case Lookup::Step::kAskServer:
      return QueueRequest(i);
  }
}

// Waits for a long buffer, if there will ever be one.
void Engine::Starve(uint32_t i) {
  Op& op = ops_[i];
  if (!SessionOf(op).memory().items.error().ok()) return Finish(i, Outcome::kNoBuffers);
  op.phase = Op::Phase::kStarved;
  if (!op.busy.starving) starved_.Push(i);
  op.busy.starving = true;
}

// One on loan, in op.item; nullptr: none is free.
std::byte* Engine::LongBuffer(Op& op, uint32_t bytes) {
  if (op.item_is_reply || op.item.bytes < bytes) {
    ReturnItem(op);
    op.item = SessionOf(op).memory().items.Take(bytes);
  }
  return op.item.data;
}

void Engine::ReturnItem(Op& op) {
  if (op.item.data == nullptr) return;
  SessionMemory& memory = SessionOf(op).memory();
  (op.item_is_reply ? memory.replies : memory.items).Return(op.item);
  op.item = {};
  op.item_is_reply = false;
}

// Operations that waited for a long buffer get it in turn.
void Engine::FeedStarved() {
  for (uint32_t n = starved_.size(); n > 0; --n) {
    const uint32_t i = starved_.front();
    starved_.Pop();
    Op& op = ops_[i];
    op.busy.starving = false;
    if (op.phase == Op::Phase::kStarved) {
      op.phase = Op::Phase::kLookingUp;
      PlanRead(i);
      if (op.phase == Op::Phase::kStarved) return;
    }
    FreeIfQuiet(i);
  }
}

}  // namespace gannet
