// The parts of the ordinary GET that are called seldom. The others are in ordinary_get_inline.h.

#include "client/engine/engine.h"
#include "client/engine/ordinary_get_inline.h"

namespace gannet {

// Report would free the slot. So an operation whose number is still in a queue is not ordinary.
void Engine::StartGet(Op& op) {
  EngineServer& server = *op.server;
  if (!op.busy.quiet()) return StartLookup(op, server.cache.Find(op.hash, op.place));
  StartOrdinaryGet(server, op);
}

void Engine::OnSharedWindow(Op& op) { OnWindow(*op.server, op); }

// Not part of OnItem, so that it costs items without expiry nothing.
[[gnu::noinline]] void Engine::OnExpiringItem(Op& op, bool cached) {
  const ItemHeader header = LoadItemHeader(op.buffers->item);
  if (op.server->PastExpiry(header, now_ns_)) {
    // A miss, with the item's READ as its only cost.
    if (op.server->SurelyPastExpiry(header, op.begun_ns())) return FinishMiss(op);
    return GoOnAsLookup(op);
  }
  op.done.cost.from_cached_location = cached;
  if (!cached) op.server->cache.Remember(op.hash, op.place, op.slot);
  Report(op, op.server->MakeItemInfo(header, now_ns_));
}

}  // namespace gannet
