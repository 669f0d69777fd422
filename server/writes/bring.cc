// Writes: changes that another group's primary decided (docs/partitions.md).

#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/item_writer.h"
#include "server/store/write_limits.h"
#include "server/writes/writes.h"

namespace gannet {
namespace {

Writes::Decided NotBrought(ReplyStatus status) { return {.outcome = {.status = status}}; }

// Returns the change without what it says of the other group's sessions and of the item's place.
Change Unasked(const Change& change) {
  return {.kind = change.kind,
          .version = change.version,
          .expiry_ms = change.expiry_ms,
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
  if (now.IsPast(change.expiry_ms)) {
    change.kind = Change::Kind::kDelete;
    change.expiry_ms = 0;
    change.value = {};
  }
  const bool is_put = change.kind == Change::Kind::kPut;
  if (!is_put || SealedItemBytes(change.key.size(), change.value.size()) <= kInPlaceBytesMax) {
    const Locked locked(*store_, store_->HashOf(change.key), change.key, now);
    const ReplyStatus status = MayBring(NewestOf(locked), change, brings);
    if (status != ReplyStatus::kOk) return NotBrought(status);
    const Decided decided = is_put ? MakeShort(locked, change, 0) : MakeDeletion(locked, change);
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
  return MakePending(locked, put, *pending, 0);
}

}  // namespace gannet
