// Writes: how a write is decided, and what becomes of a change that is decided.

#include "server/writes/writes.h"

#include <algorithm>
#include <utility>

namespace gannet {

Writes::Writes(Store* store) : store_(store) {}

Writes::~Writes() {
  if (!waits()) return;
  store_->EvictLater(nullptr);
  for (const Pending& block : waiting_->TakeAll()) store_->Drop(block);
}

void Writes::WaitFor(ChangeRecorder* recorder) {
  waiting_ = std::make_unique<WaitingChanges>(recorder);
  store_->EvictLater(waiting_.get());
}

// An item that has expired counts as absent, wherever it is.
Writes::Newest Writes::NewestOf(const Locked& key) const {
  const WaitingChanges::Entry* const entry = waits() ? waiting_->LastOf(key.hash) : nullptr;
  if (entry == nullptr) {
    Newest newest{.slot = key.item.slot, .version = key.item.version};
    if (waits() && newest.there()) newest.expiry_ms = store_->ItemAt(newest.slot).expiry_ms;
    return newest;
  }
  Newest newest{.slot = Slot(), .waiting = entry, .collides = waiting_->KeyOf(*entry) != key.key};
  if (entry->kind == WaitingChanges::Kind::kUpdate) {
    // It is the same item with another value.
    if (!newest.collides) newest.slot = key.item.slot;
    newest.version = UpdateVersion(entry->update);
    return newest;
  }
  const Pending& pending = entry->pending;
  if (entry->kind != WaitingChanges::Kind::kPut) return newest;
  if (pending.expiry_ms != 0 && store_->Now(key.now).IsPast(pending.expiry_ms)) return newest;
  newest.slot = Slot::Of(key.hash.Tag(), pending.size_class, pending.offset);
  newest.version = pending.version;
  newest.expiry_ms = pending.expiry_ms;
  return newest;
}

Change Writes::ItemOf(const Newest& newest) const {
  const bool is_update =
      newest.waiting != nullptr && newest.waiting->kind == WaitingChanges::Kind::kUpdate;
  return is_update ? waiting_->PutOf(*newest.waiting) : store_->ItemAt(newest.slot);
}

WriteOutcome Writes::Check(const Locked& key, const Newest& newest,
                           const WriteConditions& conditions) const {
  if (newest.collides) return {.status = ReplyStatus::kTryAgain};
  if (conditions.under_lock) {
    const uint64_t word = store_->LockWord(key.hash);
    if (word != *conditions.under_lock) {
      return {.status = ReplyStatus::kLockLost, .lock_word = word};
    }
  }
  WriteOutcome outcome{.version = newest.version, .slot = newest.slot.word()};
  if (conditions.only_if_absent && newest.there()) {
    outcome.status = ReplyStatus::kExists;
  } else if (conditions.only_if_present && !newest.there()) {
    outcome.status = ReplyStatus::kNotFound;
  } else if (conditions.only_if_version && *conditions.only_if_version != outcome.version) {
    outcome.status = ReplyStatus::kVersionMismatch;
  }
  return outcome;
}

Writes::Decided Writes::Refuse(const WriteOutcome& outcome, const Newest& newest,
                               const WriteConditions& conditions) {
  if (newest.waiting == nullptr) return {.outcome = outcome};
  const ChangeOrigin origin = conditions.origin == nullptr ? ChangeOrigin{} : *conditions.origin;
  const std::optional<uint64_t> ticket = waiting_->AddRefusal(*newest.waiting, origin);
  if (!ticket) return {.outcome = {.status = ReplyStatus::kDiskRefuses}};
  return {outcome, *ticket};
}

Change Writes::PutOf(std::string_view key, std::string_view value, ItemAttributes attributes,
                     const ChangeOrigin* origin) {
  Change put{.kind = Change::Kind::kPut,
             .version = store_->NextVersion(),
             .expiry_ms = std::min(attributes.expiry_ms, kExpiryMsMax),
             .flags = attributes.flags,
             .key = key,
             .value = value};
  put.SetOrigin(origin);
  return put;
}

Writes::Decided Writes::MakeShort(const Locked& key, const Change& put, uint64_t decided_until_ms) {
  if (!waits()) [[likely]]
    return {.outcome = store_->PutShort(key, put)};
  const std::optional<Pending> pending = store_->Make(key.hash, put);
  if (!pending) return {.outcome = {.status = ReplyStatus::kHeapFull}};
  return Wait(key, put, *pending, decided_until_ms);
}

Writes::Decided Writes::MakePending(const Locked& key, const Change& put, const Pending& pending,
                                    uint64_t decided_until_ms) {
  if (!waits()) return {.outcome = store_->Install(key, pending, &put)};
  return Wait(key, put, pending, decided_until_ms);
}

Writes::Decided Writes::MakeDeletion(const Locked& key, const Change& deletion) {
  if (!waits()) return {.outcome = store_->Remove(key, deletion)};
  return Wait(key, deletion, {}, 0);
}

Writes::Decided Writes::Wait(const Locked& key, const Change& change, const Pending& pending,
                             uint64_t decided_until_ms) {
  const std::optional<uint64_t> ticket = waiting_->Add(key.hash, change, pending, decided_until_ms);
  const bool put = change.kind == Change::Kind::kPut;
  if (!ticket) {
    if (put) store_->Drop(pending);
    return {.outcome = {.status = ReplyStatus::kDiskRefuses}};
  }
  if (!put) return {{}, *ticket};
  const Slot slot = Slot::Of(key.hash.Tag(), pending.size_class, pending.offset);
  return {{.version = change.version, .slot = slot.word()}, *ticket};
}

}  // namespace gannet
