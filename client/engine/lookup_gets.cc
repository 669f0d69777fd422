// GETs that are not ordinary, as a Lookup asks: it says what to READ, this posts it, tells the
// Lookup of it, and acts on the next step. A hit counts only if the item is not past its expiry by
// the client's bounds; in between the server is asked. Who finds no buffer for a long item waits
// (Starve) until one is given back.

#include "client/engine/lookup_gets.h"

#include "client/engine/caller_memory.h"
#include "client/engine/op_fate.h"

namespace gannet {
namespace {

// Counts the READ that the lookup wants, and returns where it goes. `keys` is set if that is a
// borrowed buffer. Returns nullptr if no buffer for so long an item is free now.
inline std::byte* PrepareRead(Op& op, int64_t now_ns, const MemoryKeys** keys) {
  OpBuffers& buffers = *op.buffers;
  const Lookup::ReadPlan& plan = op.lookup.plan();
  std::byte* local = buffers.window[static_cast<int>(plan.target) & 1];
  if (plan.target == Lookup::Target::kItem) {
    local = buffers.item;
    if (plan.bytes > OpBuffers::kSmallItemBytes) [[unlikely]] {
      local = op.BorrowItem(plan.bytes);
      if (local == nullptr) return nullptr;
      *keys = op.item.lent.keys;
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
  return {{buffers.window[0], buffers.window[1]}, is_long ? op.item.lent.data : buffers.item};
}

}  // namespace

void LookupGets::PlanRead(Op& op) {
  const MemoryKeys* keys = nullptr;
  std::byte* local = PrepareRead(op, ops_.now_ns(), &keys);
  if (local == nullptr) [[unlikely]]
    return values_.Starve(op);
  const Lookup::ReadPlan& plan = op.lookup.plan();
  op.session().sends().QueueRead({local, plan.offset, op.number, plan.bytes, keys});
}

void LookupGets::StartBehindLock(Op& op) {
  const Slot cached = op.server->cache.Find(op.hash, op.place);
  op.lookup.Start(&op.session().terms().view, op.key(), op.hash, cached);
  const MemoryKeys* keys = nullptr;
  std::byte* local = PrepareRead(op, ops_.now_ns(), &keys);
  if (local == nullptr) return;
  op.server->ordered.Push({.op = op.number,
                           .kind = InFlightWork::Kind::kRead,
                           .bytes = op.lookup.plan().bytes,
                           .local = local,
                           .keys = keys,
                           .offset = op.lookup.plan().offset});
}

void LookupGets::Start(Op& op, Slot cached) {
  op.phase.FastGoTo(Op::Phase::kLookingUp);
  if (const LargeItemHeader* head = op.server->large.Find(op.HeadHash(), cached)) [[unlikely]] {
    op.lookup.StartKnown(&op.session().terms().view, op.key(), op.hash, cached, *head);
    return values_.Read(op);
  }
  op.lookup.Start(&op.session().terms().view, op.key(), op.hash, cached);
  PlanRead(op);
}

// Continues an ordinary GET. Its lookup is told of all that was READ so far, in that order, as if
// it had asked for it.
void LookupGets::GoOn(Op& op) {
  const Op::Phase was = op.phase;
  op.phase.FastGoTo(Op::Phase::kLookingUp);
  const Slot cached = was == Op::Phase::kReadingCached ? op.ordinary.slot : Slot();
  op.lookup.Start(&op.session().terms().view, op.key(), op.hash, cached);
  if (was == Op::Phase::kReadingItem) op.lookup.OnRead(LookupBuffers(op), op.posted_ns, clock_);
  Feed(op);
}

void LookupGets::OnRead(Op& op) {
  if (op.phase == Op::Phase::kReadingKnown) return values_.OnKnownRead(op);
  if (op.phase == Op::Phase::kConfirmingKnown) return OnKnownConfirmed(op);
  if (op.phase == Op::Phase::kLookingUp) return Feed(op);
  if (op.phase == Op::Phase::kReadingValue) return values_.OnRead(op);
  if (op.over()) return ops_.FreeIfQuiet(op);
  if (op.phase == Op::Phase::kReadingHead) return OnHeadRead(op);
  if (op.phase == Op::Phase::kOutOfDate) {
    if (op.busy.in_flight == 0) OnOutOfDate(op);
    return;
  }
  // A LockAndGet's compare-and-swap was done before its READ.
  if (op.phase == Op::Phase::kLocking && !op.has_lock()) return ops_.Finish(op, Outcome::kOk);
  op.phase.FastGoTo(Op::Phase::kLookingUp);  // from kConfirming, or kLocking
  Feed(op);
}

// All READs are done that the operation had posted before its key's partition moved.
void LookupGets::OnOutOfDate(Op& op) {
  if (op.late) return ops_.Finish(op, LateOutcome(ReachOf(op.session())));
  op.ReturnItem();
  ops_.BeginAnew(op);
}

// Tells the lookup that the READ it wanted is done, and returns the next step. Forgets a cached
// location that was wrong.
Lookup::Step LookupGets::Step(Op& op) {
  const bool cached = op.lookup.from_cached();
  const Lookup::Step step = op.lookup.OnRead(LookupBuffers(op), op.posted_ns, clock_);
  const bool good = step == Lookup::Step::kHit || step == Lookup::Step::kReadValue;
  if (cached && !good) op.server->cache.Forget(op.hash, op.place, op.lookup.slot());
  return step;
}

void LookupGets::Feed(Op& op) { Advance(op, Step(op)); }

// Inlined into the path of a lookup, so that the item's description is not copied on the way.
[[gnu::always_inline]] inline void LookupGets::EndWithHit(Op& op, const ItemInfo& info,
                                                          std::string_view value) {
  op.session().news().usage().Hit();
  op.done.found = true;
  op.done.info = info;
  op.value = value;
  ops_.Finish(op, Outcome::kOk);
  if (op.uses_caller_memory()) [[unlikely]]
    CopyToCallerMemory(op);
}

void LookupGets::Advance(Op& op, Lookup::Step step) {
  switch (step) {
    case Lookup::Step::kRead:
      return PlanRead(op);
    case Lookup::Step::kReadValue:
      return values_.Read(op);
    case Lookup::Step::kHit: {
      EngineServer& server = *op.server;
      const Lookup& lookup = op.lookup;
      const ItemHeader& header = lookup.item().header;
      // The server's clock decides what is expired. If this client does not know, it asks.
      if (header.version != op.rpc.version_alive && server.PastExpiry(header, ops_.now_ns()))
          [[unlikely]] {
        if (server.SurelyPastExpiry(header, op.begun_ns())) return FinishMiss(op);
        return op.QueueGet();
      }
      if (server.touches != nullptr) server.touches->Used(lookup.slot());
      op.done.cost.from_cached_location = lookup.from_cached();
      if (!lookup.from_cached()) server.cache.Remember(op.hash, op.place, lookup.slot());
      if (IsLargeClass(lookup.slot().size_class())) return FinishLargeHit(op);
      if (server.near_cache != nullptr) [[unlikely]]
        NoteItem(op, lookup.item().value);
      return EndWithHit(op, server.MakeItemInfo(header, ops_.now_ns()), lookup.item().value);
    }
    case Lookup::Step::kMiss:
      if (op.server->touches != nullptr) op.server->touches->Missed();
      return FinishMiss(op);
    case Lookup::Step::kAskServer:
      if (op.lookup.next_index_unknown()) op.session().WantIndex();
      if (op.rpc.version_alive == 0) return op.QueueGet();
      // The server was asked before, and the item changed since, again and again.
      return ops_.Postpone(op);
  }
}

void LookupGets::FinishHit(Op& op, ItemInfo info, std::string_view value) {
  EndWithHit(op, info, value);
}

void LookupGets::FinishMiss(Op& op) {
  op.session().news().usage().Missed();
  ops_.Finish(op, Outcome::kOk);
}

// Ends a GET of a large item.
void LookupGets::FinishLargeHit(Op& op) {
  op.server->large.Remember(op.HeadHash(), op.lookup.slot(), op.lookup.large());
  std::string_view value;
  if (!op.uses_caller_memory()) {
    value = {reinterpret_cast<const char*>(op.item.lent.data), op.value_read.wanted};
    if (op.server->near_cache != nullptr && op.value_read.wanted > 0) NoteItem(op, value);
  }
  FinishHit(op, op.server->MakeItemInfo(op.lookup.item().header, ops_.now_ns()), value);
}

// Tells the near cache of an item that was READ, and has proven itself.
void LookupGets::NoteItem(const Op& op, std::string_view value) {
  op.server->near_cache->Note(op.session(), op.hash, op.key(), value, op.lookup.item().header,
                              op.lookup.slot(), ops_.now_ns());
}

void LookupGets::CopyToCallerMemory(Op& op) {
  if (!CopyTo(op.request.memory, op.value)) op.outcome = Outcome::kNoCpuAddress;
  op.value = {};
}

void LookupGets::FeedStarved() {
  values_.FeedStarved([this](Op& op) {
    const bool reads_head = ReadsHead(op.request.type) && !op.lookup.reads_value();
    op.phase.GoTo(reads_head ? Op::Phase::kReadingHead : Op::Phase::kLookingUp);
    if (!op.lookup.reads_value()) return PlanRead(op);
    values_.Resume(op);
  });
}

}  // namespace gannet
