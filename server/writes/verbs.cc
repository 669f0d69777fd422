// Writes: the verbs. Each finds the newest state of its key, checks the conditions, and makes the
// change, all under the key's lock. What takes long, or may make room, is done without it.

#include <array>
#include <string>
#include <vector>

#include "common/layout/key_hash_inline.h"
#include "server/store/item_writer.h"
#include "server/store/write_limits.h"
#include "server/writes/writes.h"

namespace gannet {
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
  if (decided.outcome.status != ReplyStatus::kTryAgain || waits() || store_->evicts()) [[likely]]
    return decided;
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
  const Decided decided = DeleteOne(key, conditions, now);
  if (decided.outcome.status == ReplyStatus::kOk) store_->CountDeleted();
  return decided;
}

Writes::Decided Writes::DeleteOne(std::string_view key, const WriteConditions& conditions,
                                  ServerTime now) {
  const Locked locked(*store_, store_->HashOf(key), key, now);
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
                               const WriteConditions& conditions, ServerTime now, Make make) {
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
      if (newest.there()) {
        const Change item = ItemOf(newest);
        content.attributes = {item.flags, item.expiry_ms};
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
        const Decided decided = MakeShort(locked, put, newest.expiry_ms);
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
  return Modify(key, made, conditions, now, make);
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
  Decided decided = Modify(key, made, conditions, now, make);
  if (decided.outcome.status == ReplyStatus::kOk) decided.outcome.number = number;
  return decided;
}

Writes::Decided Writes::Touch(std::string_view key, uint64_t expiry_ms,
                              const WriteConditions& conditions, ServerTime now) {
  const auto make = [&](std::optional<std::string_view> old, Content* content) {
    if (!old) return ReplyStatus::kNotFound;
    content->attributes.expiry_ms = expiry_ms;
    content->value = {*old, {}};
    content->same_value = true;
    return ReplyStatus::kOk;
  };
  return Modify(key, {}, conditions, now, make);
}

Writes::Flushed Writes::FlushSome(uint64_t position, ServerTime now) {
  return FlushSome(position, kFlushHomesPerStep, nullptr, now);
}

Writes::Flushed Writes::FlushSome(uint64_t position, uint64_t homes,
                                  const std::bitset<kPartitions>* partitions, ServerTime now) {
  Flushed flushed{.next = position};
  std::vector<std::string> keys;
  for (; homes > 0 && flushed.removed < kFlushItemsPerStep; --homes) {
    keys.clear();
    const uint64_t next = store_->ListKeys(flushed.next, &keys);
    for (const std::string& key : keys) {
      if (partitions != nullptr && !(*partitions)[PartitionOf(key)]) continue;
      const Decided decided = DeleteOne(key, {}, now);
      flushed.ticket = std::max(flushed.ticket, decided.ticket);
      flushed.removed += decided.outcome.status == ReplyStatus::kOk;
      flushed.refused |= decided.outcome.status == ReplyStatus::kDiskRefuses;
    }
    if (flushed.refused) break;
    flushed.next = next;
    if (next == 0) break;
  }
  return flushed;
}

}  // namespace gannet
