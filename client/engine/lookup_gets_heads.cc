// Exists, and GetIfChanged: reads that need no value, or perhaps none.
//
//   location cached, head remembered:  READ commit word, 8 bytes
//   location cached:                   READ head -> proof
//   not cached:         READ window -> READ head -> proof
//
// A head is what must be READ of an item so that it proves itself:
//   - of a large item: the header and the key. Its commit word covers the header and the key's hash
//     and not the value, so the header alone proves that this item was live when its commit word
//     was sampled. No byte of the value is READ.
//   - of any other item: all of it, at most 4 KiB. Its commit word is a checksum over header and
//     value, and the key lies behind the value. With less than that a reader could neither find the
//     key nor tell a whole header from a torn one.
//
// What a client remembers of a head is enough for later: the commit word names one content at one
// place in one run of the server. As long as that word is there the item is live there, and one
// word is sampled at one moment. If it is another word, the READ proves nothing, and a lookup
// follows.
//
// A miss needs all that a GET's miss needs (common/lookup/lookup.h). docs/consistency.md has the
// rules.

#include <algorithm>

#include "client/engine/lookup_gets.h"
#include "client/session/memory_domains.h"
#include "common/layout/item_proof.h"

namespace gannet {

void LookupGets::StartHeadRead(Op& op, Slot cached) {
  const EngineServer& server = *op.server;
  const IndexView& view = op.session().terms().view;
  op.phase.FastGoTo(Op::Phase::kReadingHead);
  op.value_read.wanted = 0;
  const LargeItemHeader* head = server.large.Find(op.HeadHash(), cached);
  if (head == nullptr) head = server.short_heads.Find(op.HeadHash(), cached);
  if (head != nullptr && WantsNoValue(op.request, head->item.version)) {
    op.lookup.StartKnown(&view, op.key(), op.hash, cached, *head);
    op.lookup.OnValue();  // of which nothing is wanted
  } else {
    op.lookup.Start(&view, op.key(), op.hash, cached);
  }
  PlanHeadRead(op);
}

void LookupGets::PlanHeadRead(Op& op) {
  op.lookup.ShortenHead();
  PlanRead(op);
}

// The READ that the lookup wanted is done.
void LookupGets::OnHeadRead(Op& op) {
  EngineServer& server = *op.server;
  Lookup& lookup = op.lookup;
  const Lookup::Step step = Step(op);
  switch (step) {
    case Lookup::Step::kRead:
      return PlanHeadRead(op);
    case Lookup::Step::kReadValue:
      if (WantsNoValue(op.request, lookup.large().item.version))
        return Advance(op, Lookup::Step::kHit);
      op.phase.FastGoTo(Op::Phase::kLookingUp);
      return Advance(op, step);
    case Lookup::Step::kHit:
      if (!IsLargeClass(lookup.slot().size_class())) {
        server.short_heads.Remember(op.HeadHash(), lookup.slot(), {lookup.item().header, 0});
      }
      return Advance(op, step);
    case Lookup::Step::kMiss:
    case Lookup::Step::kAskServer:
      return Advance(op, step);
  }
}

// GETs of large items into one piece of the caller's memory, by an AsyncClient. If the location is
// cached and the item's head is remembered, such a GET is two READs on a short path:
//
//   READ value (kReadingKnown) -> READ commit word (kConfirmingKnown) -> report
//
// All other cases take the steps of lookup_gets.cc and value_reads.cc. Both paths READ the same
// in the same order, and this one decides only hits.

void LookupGets::StartInto(Op& op) {
  EngineServer& server = *op.server;
  const Slot cached = server.cache.Find(op.hash, op.place);
  const LargeItemHeader* const head = server.large.Find(op.HeadHash(), cached);
  if (head == nullptr || op.request.memory.size() != 1 || head->item.value_bytes == 0)
    return Start(op, cached);
  const RegisteredSpan& span = op.request.memory[0];
  op.lookup.StartKnown(&server.session->terms().view, op.key(), op.hash, cached, *head);
  const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(head->item.value_bytes, span.bytes));
  values_.ReadKnown(op, *span.memory->range(), span.offset, bytes);
}

// The commit word was READ again.
void LookupGets::OnKnownConfirmed(Op& op) {
  const LargeItemHeader& head = op.lookup.large();
  const auto commit = ItemField<uint64_t>(op.buffers->item, offsetof(ItemHeader, commit));
  // Report frees the slot, so nothing else may be busy with it.
  const bool reports = commit == head.item.commit && head.item.expiry().never() &&
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
