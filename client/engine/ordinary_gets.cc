#include "client/engine/ordinary_gets.h"

#include "client/engine/ordinary_gets_inline.h"

namespace gannet {

// Report would free the slot. So an operation whose number is still in a queue is not ordinary.
void OrdinaryGets::StartAnyGet(Op& op) {
  EngineServer& server = *op.server;
  if (!op.busy.quiet()) return lookups_.Start(op, server.cache.Find(op.hash, op.place));
  StartGet(ops_table_, server, op);
}

// The READ brought windows that are shared. Its operation may be over.
void OrdinaryGets::OnSharedRead(EngineServer& server, Op& op) {
  if (op.window.first_sharer != kInvalidOp) FeedSharers(op);
  if (op.phase == Op::Phase::kReadingWindows) return OnWindow(server, op);
  lookups_.OnRead(op);
}

// Not part of OnItem, so that it costs items without expiry nothing.
[[gnu::noinline]] void OrdinaryGets::OnExpiringItem(Op& op, bool cached) {
  const ItemHeader header = LoadItemHeader(op.buffers->item);
  if (op.server->PastExpiry(header, ops_table_.now_ns())) {
    // A miss, with the item's READ as its only cost.
    if (op.server->SurelyPastExpiry(header, op.begun_ns())) return lookups_.FinishMiss(op);
    return lookups_.GoOn(op);
  }
  op.done.cost.from_cached_location = cached;
  if (!cached) op.server->cache.Remember(op.hash, op.place, op.ordinary.slot);
  Report(ops_table_, op, op.server->MakeItemInfo(header, ops_table_.now_ns()));
}

}  // namespace gannet
