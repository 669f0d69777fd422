// GET: the one-sided path, where no operation costs an allocation or a system call.

#include <cstring>
#include <utility>

#include "client/engine/engine.h"

namespace gannet {

uint32_t Engine::TakeSlot() {
  if (alive_ == depth_ || free_.empty()) return kNoOp;
  const uint32_t i = free_.back();
  free_.pop_back();
  ++alive_;
  Op& op = ops_[i];
  op.phase = Op::Phase::kFresh;
  op.acquiring = op.lock_acquired = false;
  op.first_sharer = op.next_sharer = kNoOp;
  op.done = {};
  op.value = {};
  fresh_.Push(i);
  return i;
}

uint32_t Engine::BeginGet(std::string_view key, int64_t timeout_ns, uint64_t user_data) {
  const uint32_t i = TakeSlot();
  if (i == kNoOp) return kNoOp;
  Op& op = ops_[i];
  OpRequest& request = op.request;
  request.type = OpType::kGet;
  request.under_lock = request.share_window = false;
  request.server = rendezvous_.ServerOf(key);
  request.timeout_ns = timeout_ns;
  request.user_data = user_data;
  request.key = {op.key, key.size()};
  std::memcpy(op.key, key.data(), key.size());
  op.value_needed = 0;
  op.word = LockWord();
  return i;
}

// Where the READ that the lookup wants goes, and counts it. nullptr: there is no buffer for so long
// an item now.
inline std::byte* Engine::PlanTarget(Op& op, uint32_t* lkey) {
  const Lookup::ReadPlan& plan = op.lookup.plan();
  std::byte* local = op.buffers->window[static_cast<int>(plan.target) & 1];
  *lkey = op.buffers_lkey;
  if (plan.target == Lookup::Target::kItem) {
    local = op.buffers->item;
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

inline void Engine::PlanRead(uint32_t i) {
  Op& op = ops_[i];
  uint32_t lkey;
  std::byte* local = PlanTarget(op, &lkey);
  if (local == nullptr) [[unlikely]]
    return Starve(i);
  const Lookup::ReadPlan& plan = op.lookup.plan();
  SessionOf(op).QueueRead({local, plan.offset, i, plan.bytes, lkey});
}

// Behind a compare-and-swap. Does nothing when there is no buffer.
void Engine::PlanOrderedRead(uint32_t i) {
  Op& op = ops_[i];
  uint32_t lkey;
  std::byte* local = PlanTarget(op, &lkey);
  if (local == nullptr) return;
  SessionOf(op).QueueOrdered({.op = i,
                              .kind = InFlightWork::Kind::kRead,
                              .bytes = op.lookup.plan().bytes,
                              .lkey = lkey,
                              .local = local,
                              .offset = op.lookup.plan().offset});
}

void Engine::StartGet(uint32_t i) {
  Op& op = ops_[i];
  op.phase = Op::Phase::kLookingUp;
  const Slot cached = CacheOf(op).Find(op.hash);
  op.lookup.Start(&SessionOf(op).view(), op.request.key, op.hash, cached);
  if (op.request.share_window && JoinWindowRead(i)) [[unlikely]]
    return;
  PlanRead(i);
}

void Engine::StartFresh() {
  while (!fresh_.empty()) {
    const uint32_t i = fresh_.front();
    fresh_.Pop();
    Op& op = ops_[i];
    op.deadline_ns = now_ns_ + op.request.timeout_ns;
    earliest_deadline_ns_ = std::min(earliest_deadline_ns_, op.deadline_ns);
    Start(i);
  }
}

void Engine::Start(uint32_t i) {
  Op& op = ops_[i];
  const ClientSession& session = SessionOf(op);
  if (!session.ready()) {
    if (session.dead()) return Finish(i, Outcome::kUnavailable);
    op.phase = Op::Phase::kWaiting;
    return;
  }
  op.hash = KeyHash::Of(op.request.key, session.view().hash_seed);
  op.buffers = session.memory().op(i);
  op.buffers_lkey = session.memory().op_buffers.lkey();
  if (op.request.type == OpType::kGet) [[likely]]
    return StartGet(i);
  switch (op.request.type) {
    case OpType::kLock:
    case OpType::kLockAndGet:
      return StartLock(i);
    case OpType::kUnlock:
      return StartUnlock(i);
    case OpType::kPut:
    case OpType::kDelete:
    case OpType::kStats:
    case OpType::kPing:
      return QueueRequest(i);
    case OpType::kGet:
      return;  // above
  }
}

inline void Engine::FinishHit(uint32_t i) {
  Op& op = ops_[i];
  const ItemHeader& header = op.lookup.item().header;
  op.done.found = true;
  op.value = op.lookup.item().value;
  op.done.info = {header.version, header.flags, header.expiry_ms(), header.value_bytes};
  op.done.cost.from_cached_location = op.lookup.from_cached();
  if (!op.done.cost.from_cached_location) CacheOf(op).Remember(op.hash, op.lookup.slot());
  Finish(i, Outcome::kOk);
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

void Engine::OnWorksDone(std::span<const InFlightWork::Work> works, bool signaled) {
  const InFlightWork::Work last = works.back();
  if (signaled && last.kind != InFlightWork::Kind::kMessage) ++ops_[last.op].done.cost.completions;
  for (const InFlightWork::Work& work : works) {
    if (work.kind == InFlightWork::Kind::kRead) [[likely]] {
      OnReadDone(work.op);
    } else if (work.kind == InFlightWork::Kind::kCompareAndSwap) {
      --ops_[work.op].busy.in_flight;
      OnCompareAndSwapDone(work.op);
      FreeIfQuiet(work.op);
    }
  }
}

inline void Engine::OnReadDone(uint32_t i) {
  Op& op = ops_[i];
  --op.busy.in_flight;
  if (op.first_sharer != kNoOp) [[unlikely]]
    FeedSharers(i);
  if (op.phase != Op::Phase::kLookingUp) [[unlikely]]
    return OnOtherReadDone(i);
  const bool cached = op.lookup.from_cached();
  const OpBuffers* buffers = op.buffers;
  const bool is_long = op.lookup.plan().bytes > OpBuffers::kSmallItemBytes;
  const Lookup::Step step = op.lookup.OnRead(
      {{buffers->window[0], buffers->window[1]}, is_long ? op.item.data : buffers->item},
      op.posted_ns, *clock_);
  if (step == Lookup::Step::kHit) [[likely]]
    return FinishHit(i);
  if (cached) CacheOf(op).Forget(op.hash, op.lookup.slot());
  Advance(i, step);
}

// Of an operation that is over, or the READ of a LockAndGet, whose compare-and-swap came before.
void Engine::OnOtherReadDone(uint32_t i) {
  Op& op = ops_[i];
  if (op.over()) return FreeIfQuiet(i);
  if (op.phase != Op::Phase::kLocking) return;
  if (!op.lock_acquired) return Finish(i, Outcome::kOk);
  op.phase = Op::Phase::kLookingUp;
  ++op.busy.in_flight;
  OnReadDone(i);
}

void Engine::Advance(uint32_t i, Lookup::Step step) {
  switch (step) {
    case Lookup::Step::kRead:
      PlanRead(i);
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

// Whether the window that the operation wants first is already being READ for another one that was
// begun with it; it then gets a copy. That READ is posted after both were begun.
bool Engine::JoinWindowRead(uint32_t i) {
  Op& op = ops_[i];
  const Lookup::ReadPlan& plan = op.lookup.plan();
  if (plan.target == Lookup::Target::kItem) return false;
  WindowRead& read = window_reads_[Mix64(plan.offset) % window_reads_.size()];
  if (read.poll != polls_ || read.offset != plan.offset || read.server != op.request.server) {
    read = {polls_, plan.offset, op.request.server, i};
    return false;
  }
  op.next_sharer = std::exchange(ops_[read.op].first_sharer, i);
  op.posted_ns = now_ns_;
  ++op.busy.in_flight;
  return true;
}

void Engine::FeedSharers(uint32_t i) {
  const std::byte* window = ops_[i].buffers->window[0];
  uint32_t next = std::exchange(ops_[i].first_sharer, kNoOp);
  while (next != kNoOp) {
    const uint32_t sharer = next;
    next = std::exchange(ops_[sharer].next_sharer, kNoOp);
    std::memcpy(ops_[sharer].buffers->window[0], window, kWindowBytes);
    OnReadDone(sharer);
  }
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
