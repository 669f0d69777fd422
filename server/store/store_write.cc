// Store: the changes of a key. The order of the stores is that of docs/consistency.md; each step
// names what must not be seen before it.

#include <algorithm>

#include "common/layout/key_hash_inline.h"
#include "server/store/item_writer.h"
#include "server/store/store_find.h"

namespace gannet {
namespace {

bool WithinLimits(std::string_view key, size_t value_bytes) {
  return !key.empty() && key.size() <= kKeyBytesMax && value_bytes <= kValueBytesMax;
}

}  // namespace

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

inline ItemHeader Store::NewHeader(size_t key_bytes, size_t value_bytes,
                                   ItemAttributes attributes) {
  if (attributes.expiry_ms != 0) any_expiry_.store(true, std::memory_order_relaxed);
  ItemHeader header{};
  header.version = NextVersion();
  header.value_bytes = static_cast<uint32_t>(value_bytes);
  header.flags = attributes.flags;
  header.SetExpiryAndKeyBytes(std::min(attributes.expiry_ms, kExpiryMsMax), key_bytes);
  return header;
}

[[gnu::always_inline]] inline WriteOutcome Store::PutShort(KeyHash hash, std::string_view key,
                                                           std::string_view value,
                                                           ItemAttributes attributes,
                                                           const Current& current) {
  const uint32_t size_class = SizeClassFor(ItemBytes(key.size(), value.size()));
  const ItemHeader header = NewHeader(key.size(), value.size(), attributes);
  // In place where it fits. The old commit word stays until the new one: with any of the new
  // content it fails.
  const bool in_place = current.slot.size_class() == size_class;
  std::byte* block = in_place ? Block(current.slot.offset()) : heap_->Allocate(size_class);
  if (block == nullptr) return {.status = ReplyStatus::kHeapFull};
  if (!in_place) StoreDead(block);
  const uint64_t offset = block - region_.data();
  // The key is there already when it does not move.
  const bool key_stays = in_place && ValueBytes(block) == value.size();
  StoreHeader(block, header);
  StoreValue(block, value);
  if (!key_stays) StoreKey(block, value.size(), key);
  const uint64_t live = LiveCommitWord(block, header.value_bytes, ItemSeal(hash, PlaceOf(offset)));
  if (!in_place) return Install(hash, current, {offset, size_class, header.version, live});
  StoreLive(block, live);
  return {.version = header.version, .slot = current.slot.word()};
}

WriteOutcome Store::Put(std::string_view key, std::string_view value, ItemAttributes attributes,
                        const WriteConditions& conditions, uint64_t now_ms) {
  if (!WithinLimits(key, value.size())) return {.status = ReplyStatus::kInvalidArgument};
  if (ItemBytes(key.size(), value.size()) > kInPlaceBytesMax) {
    return PutLong(key, value, attributes, conditions, now_ms);
  }
  const KeyHash hash = InlineKeyHash(key, superblock_.hash_seed);
  Index::Lock lock(index_, hash);
  const Current current = FindCurrent(hash, key, now_ms);
  if (conditions.any()) {
    const WriteOutcome checked = Check(hash, current, conditions);
    if (checked.status != ReplyStatus::kOk) return checked;
  }
  return PutShort(hash, key, value, attributes, current);
}

// As a value that the NIC brings: all that takes time is done before the lock.
WriteOutcome Store::PutLong(std::string_view key, std::string_view value, ItemAttributes attributes,
                            const WriteConditions& conditions, uint64_t now_ms) {
  const std::optional<Reservation> reservation = Reserve(key, static_cast<uint32_t>(value.size()));
  if (!reservation) return {.status = ReplyStatus::kHeapFull};
  StoreValue(Block(reservation->offset), value);
  return CommitPut(*reservation, key, attributes, conditions, now_ms);
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
  return Reservation{static_cast<uint64_t>(block - region_.data()),
                     {block + sizeof(ItemHeader), value_bytes},
                     size_class};
}

void Store::Abandon(const Reservation& reservation) {
  FreeBlock(reservation.offset, reservation.size_class);
}

WriteOutcome Store::CommitPut(const Reservation& reservation, std::string_view key,
                              ItemAttributes attributes, const WriteConditions& conditions,
                              uint64_t now_ms) {
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  // The checksum of a long value takes long, and needs nothing that the lock guards: the block is
  // nobody else's yet, and a version must only be one that no other item has.
  std::byte* block = Block(reservation.offset);
  const size_t value_bytes = reservation.value.size();
  const ItemHeader header = NewHeader(key.size(), value_bytes, attributes);
  StoreHeader(block, header);
  StoreKey(block, value_bytes, key);
  const uint64_t live =
      LiveCommitWord(block, header.value_bytes, ItemSeal(hash, PlaceOf(reservation.offset)));
  Index::Lock lock(index_, hash);
  const Current current = FindCurrent(hash, key, now_ms);
  const WriteOutcome checked = Check(hash, current, conditions);
  if (checked.status != ReplyStatus::kOk) {
    Abandon(reservation);
    return checked;
  }
  return Install(hash, current, {reservation.offset, reservation.size_class, header.version, live});
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
      return {.status = ReplyStatus::kIndexFull};
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
