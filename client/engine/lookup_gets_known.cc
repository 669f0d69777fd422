// GETs of large items into one piece of the caller's memory, by an AsyncClient. If the location is
// cached and the item's head is remembered, such a GET is two READs on a short path:
//
//   READ value (kReadingKnown) -> READ commit word (kConfirmingKnown) -> report
//
// All other cases take the steps of lookup_gets.cc and value_reads.cc. Both paths READ the same
// in the same order, and this one decides only hits.

#include <algorithm>

#include "client/engine/lookup_gets.h"
#include "client/session/memory_domains.h"
#include "common/layout/item_proof.h"

namespace gannet {

void LookupGets::StartInto(Op& op) {
  EngineServer& server = *op.server;
  const Slot cached = server.cache.Find(op.hash, op.place);
  const LargeItemHeader* const head = server.large.Find(op.HeadHash(), cached);
  if (head == nullptr || op.request.memory.size() != 1 || head->item.value_bytes == 0)
    return Start(op, cached);
  const RegisteredSpan& span = op.request.memory[0];
  op.lookup.StartKnown(&server.session->view(), op.key(), op.hash, cached, *head);
  const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(head->item.value_bytes, span.bytes));
  values_.ReadKnown(op, *span.memory->range(), span.offset, bytes);
}

// The commit word was READ again.
void LookupGets::OnKnownConfirmed(Op& op) {
  const LargeItemHeader& head = op.lookup.large();
  const auto commit = ItemField<uint64_t>(op.buffers->item, offsetof(ItemHeader, commit));
  // Report frees the slot, so nothing else may be busy with it.
  const bool reports = commit == head.item.commit && head.item.expiry_ms() == 0 &&
                       !reports_.full() && op.busy.quiet();
  if (reports) [[likely]]
    return ReportKnown(op);
  op.phase.FastGoTo(Op::Phase::kLookingUp);
  Feed(op);
}

// Tells the caller of Poll at once that a GET found its item, as Report does. Frees the slot, and
// leaves it as a new one.
void LookupGets::ReportKnown(Op& op) {
  EngineServer& server = *op.server;
  if (server.touches != nullptr) server.touches->Used(op.lookup.slot());
  op.done.cost.from_cached_location = true;
  const ItemHeader& header = op.lookup.large().item;
  reports_.Next() = {.user_data = op.request.user_data,
                     .type = OpType::kGetInto,
                     .found = true,
                     .info = {header.version, header.flags, 0, header.value_bytes},
                     .cost = op.done.cost};
  op.done.cost = {};
  op.request.type = OpType::kGet;
  op.request.memory = {};
  ops_.Free(op);
}

}  // namespace gannet
