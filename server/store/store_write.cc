// Store: the changes of a key. The order of the stores is that of docs/consistency.md; each step
// names what must not be seen before it.

#include <algorithm>

#include "server/store/item_writer.h"
#include "server/store/store.h"

namespace gannet {
namespace {

bool WithinLimits(std::string_view key, size_t value_bytes) {
  return !key.empty() && key.size() <= kKeyBytesMax && value_bytes <= kValueBytesMax;
}

}  // namespace

WriteOutcome Store::Put(std::string_view key, std::string_view value, ItemAttributes attributes,
                        const WriteConditions& conditions, uint64_t now_ms) {
  if (!WithinLimits(key, value.size())) return {.status = ReplyStatus::kInvalidArgument};
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  Index::Lock lock(index_, hash);
  const Current current = FindCurrent(hash, key, now_ms);
  const WriteOutcome refused = Check(hash, current, conditions);
  if (refused.status != ReplyStatus::kOk) return refused;
  return ItemBytes(key.size(), value.size()) <= kSmallItemBytesMax
             ? PutSmall(hash, key, value, attributes, current)
             : PutLarge(hash, key, value, attributes, current);
}

WriteOutcome Store::Delete(std::string_view key, const WriteConditions& conditions,
                           uint64_t now_ms) {
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  Index::Lock lock(index_, hash);
  const Current current = FindCurrent(hash, key, now_ms);
  const WriteOutcome refused = Check(hash, current, conditions);
  if (refused.status != ReplyStatus::kOk) return refused;
  if (!current.there()) return {.status = ReplyStatus::kNotFound};
  RemoveItem(current.place, current.slot);
  return {};
}

std::optional<Store::Reservation> Store::Reserve(std::string_view key, uint32_t value_bytes) {
  if (!WithinLimits(key, value_bytes)) return std::nullopt;
  const uint32_t size_class = SizeClassFor(ItemBytes(key.size(), value_bytes));
  std::byte* block = heap_->Allocate(size_class);
  if (block == nullptr) return std::nullopt;
  StoreDead(block);
  StoreKey(block, key);
  return Reservation{static_cast<uint64_t>(block - region_.data()),
                     {block + sizeof(ItemHeader) + key.size(), value_bytes},
                     size_class};
}

void Store::Abandon(const Reservation& reservation) {
  FreeBlock(reservation.offset, reservation.size_class);
}

WriteOutcome Store::CommitPut(const Reservation& reservation, std::string_view key,
                              ItemAttributes attributes, const WriteConditions& conditions,
                              uint64_t now_ms) {
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  Index::Lock lock(index_, hash);
  const Current current = FindCurrent(hash, key, now_ms);
  const WriteOutcome refused = Check(hash, current, conditions);
  if (refused.status != ReplyStatus::kOk) {
    Abandon(reservation);
    return refused;
  }
  std::byte* block = Block(reservation.offset);
  const size_t value_bytes = reservation.value.size();
  const ItemHeader header = NewHeader(key.size(), value_bytes, attributes);
  StoreHeader(block, header);
  const uint64_t live = LiveCommitOf(block, ItemBytes(key.size(), value_bytes),
                                     superblock_.incarnation, reservation.offset);
  return Install(hash, current, {reservation.offset, reservation.size_class, header.version, live});
}

WriteOutcome Store::Check(KeyHash hash, const Current& current,
                          const WriteConditions& conditions) const {
  if (conditions.under_lock) {
    // Acquire: nothing of the change that follows is seen before this load.
    const uint64_t word =
        __atomic_load_n(&lock_words_[hash.LockIndex(lock_words_.size())], __ATOMIC_ACQUIRE);
    if (word != *conditions.under_lock) {
      return {.status = ReplyStatus::kLockLost, .lock_word = word};
    }
  }
  WriteOutcome outcome{.version = current.version, .slot = current.slot.word()};
  if (conditions.only_if_absent && current.there()) {
    outcome.status = ReplyStatus::kExists;
  } else if (conditions.only_if_version && *conditions.only_if_version != outcome.version) {
    outcome.status = ReplyStatus::kVersionMismatch;
  }
  return outcome;
}

ItemHeader Store::NewHeader(size_t key_bytes, size_t value_bytes, ItemAttributes attributes) {
  if (attributes.expiry_ms != 0) any_expiry_.store(true, std::memory_order_relaxed);
  ItemHeader header{};
  header.version = NextVersion();
  header.value_bytes = static_cast<uint32_t>(value_bytes);
  header.flags = attributes.flags;
  header.SetExpiryAndKeyBytes(std::min(attributes.expiry_ms, kExpiryMsMax), key_bytes);
  return header;
}

WriteOutcome Store::PutSmall(KeyHash hash, std::string_view key, std::string_view value,
                             ItemAttributes attributes, const Current& current) {
  const ItemHeader header = NewHeader(key.size(), value.size(), attributes);
  const SmallItem item(header, key, value);
  const uint32_t size_class = SizeClassFor(ItemBytes(key.size(), value.size()));
  if (current.slot.size_class() == size_class) {
    // In place. The old commit word stays until the new one: with any of the new content it fails.
    const uint64_t offset = current.slot.offset();
    item.StoreContent(Block(offset));
    StoreLive(Block(offset), item.LiveCommit(superblock_.incarnation, offset));
    return {.version = header.version, .slot = current.slot.word()};
  }
  std::byte* block = heap_->Allocate(size_class);
  if (block == nullptr) return {.status = ReplyStatus::kOutOfMemory};
  const uint64_t offset = block - region_.data();
  StoreDead(block);
  item.StoreContent(block);
  const uint64_t live = item.LiveCommit(superblock_.incarnation, offset);
  return Install(hash, current, {offset, size_class, header.version, live});
}

WriteOutcome Store::PutLarge(KeyHash hash, std::string_view key, std::string_view value,
                             ItemAttributes attributes, const Current& current) {
  const size_t item_bytes = ItemBytes(key.size(), value.size());
  const uint32_t size_class = SizeClassFor(item_bytes);
  std::byte* block = heap_->Allocate(size_class);
  if (block == nullptr) return {.status = ReplyStatus::kOutOfMemory};
  const uint64_t offset = block - region_.data();
  const ItemHeader header = NewHeader(key.size(), value.size(), attributes);
  StoreDead(block);
  StoreKey(block, key);
  StoreValue(block, key.size(), value);
  StoreHeader(block, header);
  const uint64_t live = LiveCommitOf(block, item_bytes, superblock_.incarnation, offset);
  return Install(hash, current, {offset, size_class, header.version, live});
}

WriteOutcome Store::Install(KeyHash hash, const Current& current, const Pending& pending) {
  std::byte* block = Block(pending.offset);
  const Slot slot = Slot::Of(hash.Tag(), pending.size_class, pending.offset);
  if (current.there()) {
    // Old dead before new live: never two live commit words. Between the two a reader finds neither
    // and looks again. Then the slot; only when the bucket's checksum is out may the old block be
    // used again.
    StoreDead(Block(current.slot.offset()));
    StoreLive(block, pending.live_commit);
    index_.Replace(current.place, slot);
    FreeBlock(current.slot.offset(), current.slot.size_class());
  } else {
    // The slot leads to a dead item until the commit word, so the key appears at one moment for
    // those who look it up and those who remember where it was.
    if (!index_.Insert(hash, slot)) {
      FreeBlock(pending.offset, pending.size_class);
      return {.status = ReplyStatus::kOutOfMemory};
    }
    StoreLive(block, pending.live_commit);
  }
  return {.version = pending.version, .slot = slot.word()};
}

// Dead first (the key is gone at this moment), then slot and checksum, then the block.
void Store::RemoveItem(const Index::Place& place, Slot slot) {
  StoreDead(Block(slot.offset()));
  index_.Remove(place);
  FreeBlock(slot.offset(), slot.size_class());
}

void Store::FreeBlock(uint64_t offset, uint32_t size_class) {
  heap_->Free(Block(offset), size_class);
}

}  // namespace gannet
