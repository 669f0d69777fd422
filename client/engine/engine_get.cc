// GET: the one-sided path, where no operation costs an allocation or a system call.

#include "client/engine/engine.h"

namespace gannet {

void Engine::StartGet(uint32_t i) {
  Op& op = ops_[i];
  op.phase = Op::Phase::kLookingUp;
  const Slot cached = CacheOf(op).Find(op.hash);
  Advance(i, op.lookup.Start(&SessionOf(op).view(), op.request.key, op.hash, cached));
}

bool Engine::OnPost(uint32_t i, InFlightWork::Kind kind, bool doorbell) {
  Op& op = ops_[i];
  if (op.over() && !op.releasing) [[unlikely]] {
    --op.in_flight;
    if (kind == InFlightWork::Kind::kCompareAndSwap) op.acquiring = false;
    FreeIfQuiet(i);
    return false;
  }
  op.cost.posts += doorbell;
  return true;
}

void Engine::OnWorkDone(uint32_t i, InFlightWork::Kind kind, bool signaled) {
  Op& op = ops_[i];
  --op.in_flight;
  op.cost.completions += signaled;
  if (kind == InFlightWork::Kind::kCompareAndSwap) {
    OnCompareAndSwapDone(i);
  } else if (!op.over()) [[likely]] {
    OnReadDone(i);
  }
  if (op.over()) FreeIfQuiet(i);
}

void Engine::OnReadDone(uint32_t i) {
  Op& op = ops_[i];
  if (op.phase == Op::Phase::kLocking) {  // LockAndGet; its compare-and-swap came before
    if (!op.lock_acquired) return Finish(i, Outcome::kOk);
    op.phase = Op::Phase::kLookingUp;
  }
  const bool cached = op.lookup.from_cached();
  const OpBuffers* buffers = BuffersOf(i);
  const bool is_long = op.lookup.plan().bytes > OpBuffers::kSmallItemBytes;
  const Lookup::Step step = op.lookup.OnRead(
      {{buffers->window[0], buffers->window[1]}, is_long ? op.item.data : buffers->item},
      op.posted_ns, *clock_);
  if (cached && step != Lookup::Step::kHit) CacheOf(op).Forget(op.hash, op.lookup.slot());
  Advance(i, step);
}

void Engine::Advance(uint32_t i, Lookup::Step step) {
  switch (step) {
    case Lookup::Step::kRead:
      if (!PlanRead(i, false)) Starve(i);
      return;
    case Lookup::Step::kHit:
      return FinishHit(i);
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
  if (!op.starving) starved_.Push(i);
  op.starving = true;
}

// Queues the READ that the lookup wants. False: there is no buffer for so long an item now.
bool Engine::PlanRead(uint32_t i, bool ordered) {
  Op& op = ops_[i];
  const Lookup::ReadPlan& plan = op.lookup.plan();
  OpBuffers* buffers = BuffersOf(i);
  ClientSession& session = SessionOf(op);
  QueuedWork work{.op = i,
                  .kind = InFlightWork::Kind::kRead,
                  .bytes = plan.bytes,
                  .lkey = session.memory().op_buffers.lkey(),
                  .offset = plan.offset};
  if (plan.target != Lookup::Target::kItem) {
    work.local = buffers->window[static_cast<int>(plan.target)];
  } else if (work.local = ItemBuffer(i, plan.bytes); work.local == nullptr) {
    return false;
  } else if (work.local == op.item.data) {
    work.lkey = op.item.lkey;
  }
  op.posted_ns = now_ns_;
  ++op.in_flight;
  ++op.cost.reads;
  op.cost.read_bytes += plan.bytes;
  ordered ? session.QueueOrdered(work) : session.QueueRead(work);
  return true;
}

// The operation's own buffer, or for a long item one on loan, in op.item.
std::byte* Engine::ItemBuffer(uint32_t i, uint32_t bytes) {
  if (bytes <= OpBuffers::kSmallItemBytes) return BuffersOf(i)->item;
  Op& op = ops_[i];
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

void Engine::FinishHit(uint32_t i) {
  Op& op = ops_[i];
  const ItemHeader& header = op.lookup.item().header;
  op.found = true;
  op.value = op.lookup.item().value;
  op.info = {header.version, header.flags, header.expiry_ms(), header.value_bytes};
  op.cost.from_cached_location = op.lookup.from_cached();
  if (!op.cost.from_cached_location) CacheOf(op).Remember(op.hash, op.lookup.slot());
  Finish(i, Outcome::kOk);
}

// Operations that waited for a long buffer get it in turn.
void Engine::FeedStarved() {
  for (uint32_t n = starved_.size(); n > 0; --n) {
    const uint32_t i = starved_.front();
    starved_.Pop();
    Op& op = ops_[i];
    op.starving = false;
    if (op.phase == Op::Phase::kStarved) {
      op.phase = Op::Phase::kLookingUp;
      if (!PlanRead(i, false)) Starve(i);
      if (op.phase == Op::Phase::kStarved) return;
    }
    FreeIfQuiet(i);
  }
}

}  // namespace gannet
