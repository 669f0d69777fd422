// Store: the writes that make an item's new content from the old one, and the removal of all items.

#include <array>
#include <string>

#include "common/base/align.h"
#include "server/store/hash_of_home.h"
#include "server/store/large_writer.h"
#include "server/store/new_value.h"
#include "server/store/store_find.h"
#include "server/store/write_limits.h"

namespace gannet {
namespace {

// A long value is copied under the lock and written without it. If another write of the key comes
// in between, all is done again.
constexpr int kTriesMax = 8;

}  // namespace

template <class Make>
WriteOutcome Store::Modify(std::string_view key, ItemAttributes made,
                           const WriteConditions& conditions, uint64_t now_ms, Make make) {
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  for (int tries = 0; tries < kTriesMax; ++tries) {
    std::string value;
    ItemAttributes attributes = made;
    WriteConditions unchanged = conditions;
    {
      Index::Lock lock(index_, hash);
      const Current current = FindCurrent(hash, key, now_ms);
      WriteOutcome outcome = Check(hash, current, conditions);
      if (outcome.status != ReplyStatus::kOk) return outcome;
      std::optional<std::string_view> old;
      if (current.there()) {
        const std::byte* block = Block(current.slot.offset());
        const ItemHeader header = LoadHeader(current.slot);
        attributes = {header.flags, header.expiry_ms()};
        old = {reinterpret_cast<const char*>(block) +
                   ValueOffset(header.key_bytes(), header.value_bytes),
               header.value_bytes};
      }
      Pieces pieces;
      outcome.status = make(old, &pieces);
      if (outcome.status != ReplyStatus::kOk) return outcome;
      if (SealedItemBytes(key.size(), pieces.size()) <= kInPlaceBytesMax) {
        std::array<char, kInPlaceBytesMax> buffer;
        outcome = PutChanged(hash, key, pieces.CopyTo(buffer.data()), attributes, conditions.origin,
                             current, now_ms);
        if (outcome.status != ReplyStatus::kHeapFull) return outcome;
      }
      value.resize(pieces.size());
      pieces.CopyTo(value.data());
      unchanged.only_if_version = current.version;
    }
    // The value is long, or there is no room. Room can only be made without a lock.
    const WriteOutcome outcome = PutLong(key, value, attributes, unchanged, now_ms);
    if (outcome.status != ReplyStatus::kVersionMismatch) return outcome;
  }
  return {.status = ReplyStatus::kTryAgain};
}

WriteOutcome Store::Append(std::string_view key, std::string_view piece, End end,
                           ItemAttributes made, const WriteConditions& conditions,
                           uint64_t now_ms) {
  const auto make = [&](std::optional<std::string_view> old, Pieces* pieces) {
    return MakeAppended(old, piece, end == End::kFront, pieces);
  };
  return Modify(key, made, conditions, now_ms, make);
}

WriteOutcome Store::Increment(std::string_view key, const CounterOperands& operands,
                              ItemAttributes made, const WriteConditions& conditions,
                              uint64_t now_ms) {
  std::array<char, kCounterBytesMax> text;
  NumberedConditions numbered(conditions);
  const auto make = [&](std::optional<std::string_view> old, Pieces* pieces) {
    int64_t number = 0;
    const ReplyStatus status = MakeIncremented(old, operands, &text, &number, pieces);
    numbered.SetNumber(number);
    return status;
  };
  WriteOutcome outcome = Modify(key, made, numbered.get(), now_ms, make);
  if (outcome.status == ReplyStatus::kOk) outcome.lock_word = numbered.number();
  return outcome;
}

// Changes the header where it lies. The old commit word stays until the new one is stored; with any
// of the new header it fails the check. A large item gets a new placing too, so that a reader who
// READ the value under the old header looks again. The value itself does not change.
WriteOutcome Store::Touch(std::string_view key, uint64_t expiry_ms,
                          const WriteConditions& conditions, uint64_t now_ms) {
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  Index::Lock lock(index_, hash);
  const Current current = FindCurrent(hash, key, now_ms);
  const WriteOutcome checked = Check(hash, current, conditions);
  if (checked.status != ReplyStatus::kOk) return checked;
  if (!current.there()) return {.status = ReplyStatus::kNotFound};
  const uint64_t offset = current.slot.offset();
  std::byte* const block = Block(offset);
  ItemHeader header = LoadHeader(current.slot);
  header.version = NextVersion();
  header.SetExpiryAndKeyBytes(std::min(expiry_ms, kExpiryMsMax), key.size());
  if (records() && !recorder_.Put(block, header, conditions.origin)) {
    return {.status = ReplyStatus::kDiskRefuses};
  }
  const ItemSeal seal(hash, PlaceAt(offset));
  if (recovery_ != nullptr) recovery_->BeginTouch(hash, current.slot);
  if (IsLargeClass(current.slot.size_class())) {
    StoreLive(block, StoreLargeHead(block, {header, header.version}, key, seal));
  } else {
    StoreHeader(block, header);
    StoreLive(block, LiveCommitWord(block, header.value_bytes, seal));
  }
  if (recovery_ != nullptr) recovery_->End(hash);
  if (expiry_ms != 0) current.place.table->floors.Lower(current.place.home, expiry_ms);
  return {.version = header.version, .slot = current.slot.word()};
}

// While the index grows, keys of this home may still be in the old table. To lock a key moves its
// old home into the new table, and a new home's keys are in at most two old ones.
bool Store::RemoveAll(IndexTable& table, uint64_t home, Flushed* flushed) {
  const uint64_t homes = table.geometry().homes;
  { const Index::Lock migrates(index_, KeyHash(FirstHashOf(home, homes))); }
  { const Index::Lock migrates(index_, KeyHash(FirstHashOf(home + 1, homes) - 1)); }
  const Index::Lock lock(index_, table, home);
  if (!index_.IsCurrent(table)) return false;
  for (;; ++flushed->removed) {
    // A removal may move another key of this home out of the stash, so this makes the list again.
    FoundOfHome found;
    if (table.List(home, found) == 0) return true;
    if (!RecordDelete(found[0].slot, nullptr)) {
      flushed->refused = true;
      return true;
    }
    RemoveItem(found[0].place, found[0].slot);
  }
}

// Positions are hashes, so they stay right if the number of homes changes between two steps.
Store::Flushed Store::FlushSome(uint64_t position) {
  Flushed flushed;
  for (uint64_t looked_at = 0;
       looked_at < kFlushHomesPerStep && flushed.removed < kFlushItemsPerStep;) {
    const std::shared_ptr<IndexTable> table = index_.Hold();
    const uint64_t homes = table->geometry().homes;
    const uint64_t home = MapToRange(position, homes);
    if (!RemoveAll(*table, home, &flushed)) continue;  // the index has begun to grow
    if (flushed.refused) break;
    ++looked_at;
    position = FirstHashOf(home + 1, homes);
    if (home + 1 == homes) break;
  }
  flushed.next = position;
  return flushed;
}

}  // namespace gannet
