// Store: makes changes again that were recorded elsewhere.

#include "server/store/item_writer.h"
#include "server/store/store_find.h"
#include "server/store/write_limits.h"

namespace gannet {

ReplyStatus Store::Apply(const Change& change, ServerTime now) {
  const bool expired = now.IsPast(change.expiry_ms);
  if (change.kind == Change::Kind::kPut && !expired) {
    return ApplyPut(change, now, /*over_item=*/true);
  }
  const Locked key(*this, HashOf(change.key), change.key, now);
  if (!key.item.there()) return ReplyStatus::kOk;
  Change deletion = change;
  deletion.kind = Change::Kind::kDelete;
  deletion.value = {};
  return Remove(key, deletion).status;
}

ReplyStatus Store::ApplyIfAbsent(const Change& put, ServerTime now) {
  if (now.IsPast(put.expiry_ms)) return ReplyStatus::kOk;
  return ApplyPut(put, now, /*over_item=*/false);
}

ReplyStatus Store::ApplyPut(const Change& put, ServerTime now, bool over_item) {
  if (!WithinLimits(put.key, put.value.size())) return ReplyStatus::kInvalidArgument;
  const KeyHash hash = HashOf(put.key);
  if (SealedItemBytes(put.key.size(), put.value.size()) <= kInPlaceBytesMax) {
    const Locked key(*this, hash, put.key, now);
    if (!over_item && key.item.there()) return ReplyStatus::kExists;
    const WriteOutcome outcome = PutShort(key, put);
    if (outcome.status != ReplyStatus::kHeapFull) return outcome.status;
  }
  // The value is long, or there is no room. Room can only be made without a lock.
  if (const std::optional<Pending> pending = MakeLong(hash, put, now)) {
    const Locked key(*this, hash, put.key, now);
    if (over_item || !key.item.there()) return Install(key, *pending, &put).status;
    Drop(*pending);
    return ReplyStatus::kExists;
  }
  const Locked key(*this, hash, put.key, now);
  if (!over_item && key.item.there()) return ReplyStatus::kExists;
  return Overwrite(key, put).status;
}

}  // namespace gannet
