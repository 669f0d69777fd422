// Writes: how a write is decided, and what becomes of a change that is decided.

#include "server/writes/writes.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/layout/key_hash_inline.h"
#include "server/memory/store/item_writer.h"
#include "server/memory/store/write_limits.h"

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
    if (waits() && newest.there()) newest.expiry = store_->ItemAt(newest.slot).expiry;
    return newest;
  }
  Newest newest{.slot = Slot(), .waiting = entry, .collides = entry->Key() != key.key};
  if (entry->kind == WaitingChanges::Kind::kUpdate) {
    // It is the same item with another value.
    if (!newest.collides) newest.slot = key.item.slot;
    newest.version = UpdateVersion(entry->update);
    return newest;
  }
  const Pending& pending = entry->pending;
  if (entry->kind != WaitingChanges::Kind::kPut) return newest;
  if (!pending.expiry.never() && store_->Now(key.now).IsPast(pending.expiry)) return newest;
  newest.slot = Slot::Of(key.hash.Tag(), pending.size_class, pending.offset);
  newest.version = pending.version;
  newest.expiry = pending.expiry;
  return newest;
}

Change Writes::ItemOf(const Newest& newest) const {
  const bool is_update =
      newest.waiting != nullptr && newest.waiting->kind == WaitingChanges::Kind::kUpdate;
  return is_update ? newest.waiting->Put() : store_->ItemAt(newest.slot);
}

WriteOutcome Writes::Check(const Locked& key, const Newest& newest,
                           const WriteConditions& conditions) const {
  if (newest.collides) return {.status = ReplyStatus::kTryAgain};
  if (conditions.under_lock) {
    const uint64_t word = store_->lock_words().WordOf(key.hash);
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
  } else if (const uint64_t wait_ms = store_->EndLease(key.lock, key.hash, key.now)) {
    return {.status = ReplyStatus::kTryAgain, .wait_ms = static_cast<uint32_t>(wait_ms)};
  }
  return outcome;
}

Writes::Decided Writes::Refuse(const WriteOutcome& outcome, const Newest& newest,
                               const WriteConditions& conditions) {
  if (newest.waiting == nullptr) {
    Decided decided{.outcome = outcome};
    // Nobody can READ anything at a stub's place.
    if (IsStub(newest.slot)) decided.outcome.slot = 0;
    return decided;
  }
  const ChangeOrigin origin = conditions.origin == nullptr ? ChangeOrigin{} : *conditions.origin;
  const std::optional<uint64_t> ticket = waiting_->AddRefusal(*newest.waiting, origin);
  if (!ticket) return {.outcome = {.status = ReplyStatus::kDiskRefuses}};
  return {outcome, *ticket};
}

Change Writes::PutOf(std::string_view key, std::string_view value, ItemAttributes attributes,
                     const ChangeOrigin* origin) {
  Change put{.kind = Change::Kind::kPut,
             .version = store_->NextVersion(),
             .expiry = AsStored(attributes.expiry),
             .flags = attributes.flags,
             .key = key,
             .value = value};
  put.SetOrigin(origin);
  return put;
}

Writes::Decided Writes::MakeShort(const Locked& key, const Change& put, Expiry decided_until) {
  if (!waits()) [[likely]]
    return {.outcome = store_->PutShort(key, put)};
  const std::optional<Pending> pending = store_->Make(key.hash, put);
  if (!pending) return {.outcome = {.status = ReplyStatus::kHeapFull}};
  return Wait(key, put, *pending, decided_until);
}

Writes::Decided Writes::MakePending(const Locked& key, const Change& put, const Pending& pending,
                                    Expiry decided_until) {
  if (!waits()) return {.outcome = store_->Install(key, pending, &put)};
  return Wait(key, put, pending, decided_until);
}

Writes::Decided Writes::MakeDeletion(const Locked& key, const Change& deletion) {
  if (!waits()) return {.outcome = store_->Remove(key, deletion)};
  return Wait(key, deletion, {}, Expiry());
}

Writes::Decided Writes::Wait(const Locked& key, const Change& change, const Pending& pending,
                             Expiry decided_until) {
  const std::optional<uint64_t> ticket = waiting_->Add(key.hash, change, pending, decided_until);
  const bool put = change.kind == Change::Kind::kPut;
  if (!ticket) {
    if (put) store_->Drop(pending);
    return {.outcome = {.status = ReplyStatus::kDiskRefuses}};
  }
  if (!put) return {{}, *ticket};
  const Slot slot = Slot::Of(key.hash.Tag(), pending.size_class, pending.offset);
  return {{.version = change.version, .slot = slot.word()}, *ticket};
}

// The verbs. Each finds the newest state of its key, checks the conditions, and makes the
// change, all under the key's lock. What takes long, or may make room, is done without it.

namespace {

// A long value is copied under the lock and written without it. If another write of the key comes
// in between, all is done again.
constexpr int kTriesMax = 8;

Writes::Decided Refused(ReplyStatus status) { return {.outcome = {.status = status}}; }

bool IsShort(std::string_view key, size_t value_bytes) {
  return SealedItemBytes(key.size(), value_bytes) <= kInPlaceBytesMax;
}

std::string_view ValueOf(const Reservation& reservation) {
  return {reinterpret_cast<const char*>(reservation.value.data()), reservation.value.size()};
}

}  // namespace

Writes::Decided Writes::Put(std::string_view key, std::string_view value, ItemAttributes attributes,
                            const WriteConditions& conditions, ServerTime now) {
  if (!WithinLimits(key, value.size())) return Refused(ReplyStatus::kInvalidArgument);
  if (IsShort(key, value.size())) {
    const Locked locked(*store_, store_->HashOf(key), key, now);
    const Newest newest = NewestOf(locked);
    const WriteOutcome checked = Check(locked, newest, conditions);
    if (checked.status != ReplyStatus::kOk) return Refuse(checked, newest, conditions);
    const Decided decided = MakeShort(locked, PutOf(key, value, attributes, conditions.origin),
                                      DecidedUntil(newest, conditions));
    const ReplyStatus status = decided.outcome.status;
    if (status != ReplyStatus::kHeapFull && status != ReplyStatus::kTryAgain) [[likely]]
      return decided;
  }
  // The value is long, or there is no room. Room can only be made without a lock.
  Decided decided = PutLong(key, value, attributes, conditions, now);
  // A store that evicts has its client send it again: what is in its way goes later.
  if (decided.outcome.status != ReplyStatus::kTryAgain || decided.outcome.wait_ms != 0 || waits() ||
      store_->evicts()) [[likely]] {
    return decided;
  }
  store_->MakeSlots();
  decided = PutLong(key, value, attributes, conditions, now);
  if (decided.outcome.status == ReplyStatus::kTryAgain) {
    decided.outcome.status = store_->RefuseForSlot();
  }
  return decided;
}

// Works like a value that the NIC brings: everything that takes time is done before the lock.
Writes::Decided Writes::PutLong(std::string_view key, std::string_view value,
                                ItemAttributes attributes, const WriteConditions& conditions,
                                ServerTime now, uint64_t number) {
  const std::optional<Reservation> reservation = store_->Reserve(key, value, now);
  if (!reservation) return PutOverOld(key, value, attributes, conditions, now, number);
  Change put = PutOf(key, ValueOf(*reservation), attributes, conditions.origin);
  put.number = number;
  return Commit(*reservation, put, conditions, now);
}

// No block is free. A write that does not wait may go over the old item.
Writes::Decided Writes::PutOverOld(std::string_view key, std::string_view value,
                                   ItemAttributes attributes, const WriteConditions& conditions,
                                   ServerTime now, uint64_t number) {
  if (waits()) return Refused(store_->NoRoom(key, value.size()));
  const Locked locked(*store_, store_->HashOf(key), key, now);
  const WriteOutcome checked = Check(locked, NewestOf(locked), conditions);
  if (checked.status != ReplyStatus::kOk) return {.outcome = checked};
  Change put = PutOf(key, value, attributes, conditions.origin);
  put.number = number;
  const WriteOutcome outcome = store_->Overwrite(locked, put);
  if (outcome.status != ReplyStatus::kHeapFull) return {.outcome = outcome};
  return Refused(store_->NoRoom(key, value.size()));
}

bool Writes::MayOverwrite(std::string_view key, uint32_t value_bytes, ServerTime now) {
  return !waits() && store_->FitsOld(key, value_bytes, now);
}

Writes::Decided Writes::CommitPut(const Reservation& reservation, std::string_view key,
                                  ItemAttributes attributes, const WriteConditions& conditions,
                                  ServerTime now) {
  return Commit(reservation, PutOf(key, ValueOf(reservation), attributes, conditions.origin),
                conditions, now);
}

// The version is taken before the lock, because a short item's checksum covers it. If another
// change of the key came first, it is taken again, so that the versions of a key grow.
Writes::Decided Writes::Commit(const Reservation& reservation, Change put,
                               const WriteConditions& conditions, ServerTime now) {
  const KeyHash hash = store_->HashOf(put.key);
  Pending pending = store_->Prepare(reservation, hash, put);
  const Locked locked(*store_, hash, put.key, now);
  const Newest newest = NewestOf(locked);
  const WriteOutcome checked = Check(locked, newest, conditions);
  if (checked.status != ReplyStatus::kOk) {
    store_->Abandon(reservation);
    return Refuse(checked, newest, conditions);
  }
  const uint64_t waiting = newest.waiting == nullptr ? 0 : newest.waiting->version;
  if (put.version < std::max({newest.version, waiting, store_->removed_version()})) {
    put.version = store_->NextVersion();
    pending = store_->Prepare(reservation, hash, put);
  }
  return MakePending(locked, put, pending, DecidedUntil(newest, conditions));
}

Writes::Decided Writes::Delete(std::string_view key, const WriteConditions& conditions,
                               ServerTime now) {
  const Decided decided = DeleteOne(key, conditions, now, Lease::kIsAwaited);
  if (decided.outcome.status == ReplyStatus::kOk) store_->CountDeleted();
  return decided;
}

Writes::Decided Writes::DeleteOne(std::string_view key, const WriteConditions& conditions,
                                  ServerTime now, Lease lease) {
  const Locked locked(*store_, store_->HashOf(key), key, now);
  if (lease == Lease::kIsForgotten && store_->leases() != nullptr)
    store_->leases()->Drop(locked.hash);
  const Newest newest = NewestOf(locked);
  WriteOutcome checked = Check(locked, newest, conditions);
  if (checked.status == ReplyStatus::kOk && !newest.there()) {
    checked = {.status = ReplyStatus::kNotFound};
  }
  if (checked.status != ReplyStatus::kOk) return Refuse(checked, newest, conditions);
  Change deletion{.kind = Change::Kind::kDelete, .version = store_->NextVersion(), .key = key};
  deletion.SetOrigin(conditions.origin);
  return MakeDeletion(locked, deletion);
}

template <class Make>
Writes::Decided Writes::Modify(std::string_view key, ItemAttributes attributes,
                               const WriteConditions& conditions, ServerTime now, Needs needs,
                               Make make) {
  const KeyHash hash = store_->HashOf(key);
  for (int tries = 0; tries < kTriesMax; ++tries) {
    std::string value;
    Content content{.attributes = attributes};
    WriteConditions unchanged = conditions;
    {
      const Locked locked(*store_, hash, key, now);
      const Newest newest = NewestOf(locked);
      WriteOutcome checked = Check(locked, newest, conditions);
      if (checked.status != ReplyStatus::kOk) return Refuse(checked, newest, conditions);
      std::optional<std::string_view> old;
      if (IsStub(newest.slot) && needs == Needs::kValue) {
        checked = {.status = ReplyStatus::kUnimplemented, .needs_value = true};
        return Refuse(checked, newest, conditions);
      }
      if (newest.there()) {
        const Change item = ItemOf(newest);
        content.attributes = {item.flags, item.expiry};
        old = item.value;
      }
      checked.status = make(old, &content);
      if (checked.status != ReplyStatus::kOk) return Refuse(checked, newest, conditions);
      if (content.same_value && !waits()) {
        Change put = PutOf(key, *old, content.attributes, conditions.origin);
        return {.outcome = store_->Touch(locked, put)};
      }
      if (IsShort(key, content.value.size())) {
        std::array<char, kInPlaceBytesMax> buffer;
        Change put =
            PutOf(key, content.value.CopyTo(buffer.data()), content.attributes, conditions.origin);
        put.number = content.number;
        const Decided decided = MakeShort(locked, put, newest.expiry);
        if (decided.outcome.status != ReplyStatus::kHeapFull) return decided;
      }
      value.resize(content.value.size());
      content.value.CopyTo(value.data());
      unchanged.only_if_version = newest.version;
    }
    // The value is long, or there is no room. Room can only be made without a lock.
    const Decided decided = PutLong(key, value, content.attributes, unchanged, now, content.number);
    if (decided.outcome.status != ReplyStatus::kVersionMismatch) return decided;
  }
  return Refused(ReplyStatus::kTryAgain);
}

Writes::Decided Writes::Append(std::string_view key, std::string_view piece, End end,
                               ItemAttributes made, const WriteConditions& conditions,
                               ServerTime now) {
  const auto make = [&](std::optional<std::string_view> old, Content* content) {
    return MakeAppended(old, piece, end == End::kFront, &content->value);
  };
  return Modify(key, made, conditions, now, Needs::kValue, make);
}

Writes::Decided Writes::Increment(std::string_view key, const CounterOperands& operands,
                                  ItemAttributes made, const WriteConditions& conditions,
                                  ServerTime now) {
  std::array<char, kCounterBytesMax> text;
  int64_t number = 0;
  const auto make = [&](std::optional<std::string_view> old, Content* content) {
    const ReplyStatus status = MakeIncremented(old, operands, &text, &number, &content->value);
    content->number = static_cast<uint64_t>(number);
    return status;
  };
  Decided decided = Modify(key, made, conditions, now, Needs::kValue, make);
  if (decided.outcome.status == ReplyStatus::kOk) decided.outcome.number = number;
  return decided;
}

Writes::Decided Writes::Touch(std::string_view key, Expiry expiry,
                              const WriteConditions& conditions, ServerTime now) {
  const auto make = [&](std::optional<std::string_view> old, Content* content) {
    if (!old) return ReplyStatus::kNotFound;
    content->attributes.expiry = expiry;
    content->value = {*old, {}};
    content->same_value = true;
    return ReplyStatus::kOk;
  };
  return Modify(key, {}, conditions, now, Needs::kAttributes, make);
}

// All leases end at once, so that it waits once for all of them.
Writes::Flushed Writes::FlushSome(uint64_t position, ServerTime now) {
  if (store_->leases() != nullptr) store_->leases()->EndAll();
  return FlushSome(position, kFlushHomesPerStep, nullptr, now);
}

Writes::Flushed Writes::FlushSome(uint64_t position, uint64_t homes,
                                  const std::bitset<kPartitions>* partitions, ServerTime now) {
  const Lease lease = partitions == nullptr ? Lease::kIsAwaited : Lease::kIsForgotten;
  Flushed flushed{.next = position};
  std::vector<std::string> keys;
  for (; homes > 0 && flushed.removed < kFlushItemsPerStep; --homes) {
    keys.clear();
    const uint64_t next = store_->ListKeys(flushed.next, &keys);
    for (const std::string& key : keys) {
      if (partitions != nullptr && !(*partitions)[PartitionOf(key)]) continue;
      const Decided decided = DeleteOne(key, {}, now, lease);
      flushed.ticket = std::max(flushed.ticket, decided.ticket);
      flushed.removed += decided.outcome.status == ReplyStatus::kOk;
      flushed.refused |= decided.outcome.status == ReplyStatus::kDiskRefuses;
      flushed.wait_ms = std::max(flushed.wait_ms, decided.outcome.wait_ms);
    }
    if (flushed.refused || flushed.wait_ms != 0) break;
    flushed.next = next;
    if (next == 0) break;
  }
  return flushed;
}

// Changes that another group's primary decided (docs/partitions.md).

namespace {

Writes::Decided NotBrought(ReplyStatus status) { return {.outcome = {.status = status}}; }

// Returns the change without what it says of the other group's sessions and of the item's place.
Change Unasked(const Change& change) {
  return {.kind = change.kind,
          .version = change.version,
          .expiry = change.expiry,
          .flags = change.flags,
          .key = change.key,
          .value = change.value};
}

}  // namespace

ReplyStatus Writes::MayBring(const Newest& newest, const Change& change, Brings brings) {
  if (newest.collides) return ReplyStatus::kTryAgain;
  const bool absent = !newest.there();
  if (change.kind == Change::Kind::kDelete && absent) return ReplyStatus::kNotFound;
  if (absent) return ReplyStatus::kOk;
  const bool newer = newest.version < change.version;
  return newer && brings == Brings::kChange ? ReplyStatus::kOk : ReplyStatus::kExists;
}

// The versions are raised before the change is made. So whoever changes the key later, or evicts
// it, has a higher one.
Writes::Decided Writes::Bring(const Change& given, Brings brings, ServerTime now) {
  if (!WithinLimits(given.key, given.value.size()))
    return NotBrought(ReplyStatus::kInvalidArgument);
  store_->RaiseVersions(given.version + 1);
  Change change = Unasked(given);
  if (now.IsPast(change.expiry)) {
    change.kind = Change::Kind::kDelete;
    change.expiry = Expiry();
    change.value = {};
  }
  const bool is_put = change.kind == Change::Kind::kPut;
  if (!is_put || SealedItemBytes(change.key.size(), change.value.size()) <= kInPlaceBytesMax) {
    const Locked locked(*store_, store_->HashOf(change.key), change.key, now);
    const ReplyStatus status = MayBring(NewestOf(locked), change, brings);
    if (status != ReplyStatus::kOk) return NotBrought(status);
    const Decided decided =
        is_put ? MakeShort(locked, change, Expiry()) : MakeDeletion(locked, change);
    if (decided.outcome.status != ReplyStatus::kHeapFull) return decided;
  }
  return BringLong(change, brings, now);
}

Writes::Decided Writes::RecordVersion(uint64_t version, ServerTime now) {
  store_->RaiseVersions(version + 1);
  for (uint64_t i = 0;; ++i) {
    const std::string key = absl::StrCat("gannet.version.", i);
    const Locked locked(*store_, store_->HashOf(key), key, now);
    const Newest newest = NewestOf(locked);
    if (newest.there() || newest.collides) continue;
    return MakeDeletion(locked, {.kind = Change::Kind::kDelete, .version = version, .key = key});
  }
}

// The value is long, or there is no room. Room can only be made without a lock.
Writes::Decided Writes::BringLong(const Change& put, Brings brings, ServerTime now) {
  const KeyHash hash = store_->HashOf(put.key);
  const std::optional<Pending> pending = store_->MakeLong(hash, put, now);
  if (!pending) return NotBrought(store_->NoRoom(put.key, put.value.size()));
  const Locked locked(*store_, hash, put.key, now);
  const ReplyStatus status = MayBring(NewestOf(locked), put, brings);
  if (status != ReplyStatus::kOk) {
    store_->Drop(*pending);
    return NotBrought(status);
  }
  return MakePending(locked, put, *pending, Expiry());
}

}  // namespace gannet
