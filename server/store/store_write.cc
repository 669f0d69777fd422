// Store: the changes of a key. The order of the stores is that of docs/consistency.md. Each step
// says what must not be seen before it.

#include <algorithm>

#include "common/layout/key_hash_inline.h"
#include "server/store/item_writer.h"
#include "server/store/large_writer.h"
#include "server/store/store_find.h"
#include "server/store/write_limits.h"

namespace gannet {

WriteOutcome Store::Check(KeyHash hash, const Current& current,
                          const WriteConditions& conditions) const {
  if (conditions.under_lock) {
    // Acquire: nobody sees the change that follows before this load.
    const uint64_t word =
        __atomic_load_n(&lock_words_[hash.LockIndex(lock_words_.size())], __ATOMIC_ACQUIRE);
    if (word != *conditions.under_lock) {
      return {.status = ReplyStatus::kLockLost, .lock_word = word};
    }
  }
  WriteOutcome outcome{.version = current.version, .slot = current.slot.word()};
  if (conditions.only_if_absent && current.there()) {
    outcome.status = ReplyStatus::kExists;
  } else if (conditions.only_if_present && !current.there()) {
    outcome.status = ReplyStatus::kNotFound;
  } else if (conditions.only_if_version && *conditions.only_if_version != outcome.version) {
    outcome.status = ReplyStatus::kVersionMismatch;
  }
  return outcome;
}

inline ItemHeader Store::NewHeader(size_t key_bytes, size_t value_bytes,
                                   ItemAttributes attributes) {
  ItemHeader header{};
  header.version = NextVersion();
  header.value_bytes = static_cast<uint32_t>(value_bytes);
  header.flags = attributes.flags;
  header.SetExpiryAndKeyBytes(std::min(attributes.expiry_ms, kExpiryMsMax), key_bytes);
  return header;
}

// The old commit word stays until the new one is stored; with any of the new content it fails the
// check. The block may be larger than the new item needs.
[[gnu::always_inline]] inline WriteOutcome Store::PutInPlace(KeyHash hash, std::string_view key,
                                                             std::string_view value,
                                                             ItemAttributes attributes,
                                                             const ChangeOrigin* origin,
                                                             const Current& current) {
  std::byte* block = Block(current.slot.offset());
  const ItemHeader header = NewHeader(key.size(), value.size(), attributes);
  if (records() && !recorder_.Put(header, key, value, origin)) [[unlikely]]
    return {.status = ReplyStatus::kDiskRefuses};
  // The key is already in place if it does not move.
  const bool key_stays = ValueBytes(block) == value.size();
  StoreHeader(block, header);
  StoreValue(block, value);
  if (!key_stays) StoreKey(block, value.size(), key);
  const ItemSeal seal(hash, PlaceAt(current.slot.offset()));
  StoreLive(block, LiveCommitWord(block, header.value_bytes, seal));
  if (evicts()) evictor_->state().Used(current.slot.offset(), 1);
  if (attributes.expiry_ms != 0)
    current.place.table->floors.Lower(current.place.home, attributes.expiry_ms);
  return {.version = header.version, .slot = current.slot.word()};
}

[[gnu::always_inline]] inline WriteOutcome Store::PutShort(
    KeyHash hash, std::string_view key, std::string_view value, ItemAttributes attributes,
    const ChangeOrigin* origin, const Current& current, uint64_t now_ms) {
  const uint32_t size_class = SizeClassFor(ItemBytes(key.size(), value.size()));
  if (current.slot.size_class() == size_class && recovery_ == nullptr) {
    return PutInPlace(hash, key, value, attributes, origin, current);
  }
  std::byte* block = heap_->Allocate(ItemBytes(key.size(), value.size()));
  if (block == nullptr) return {.status = ReplyStatus::kHeapFull};
  StoreDead(block);
  const uint64_t offset = block - region_.data();
  const ItemHeader header = NewHeader(key.size(), value.size(), attributes);
  StoreHeader(block, header);
  StoreValue(block, value);
  StoreKey(block, value.size(), key);
  const uint64_t live = LiveCommitWord(block, header.value_bytes, ItemSeal(hash, PlaceAt(offset)));
  return Install(hash, current, {offset, size_class, header.version, live, attributes.expiry_ms},
                 origin, now_ms);
}

WriteOutcome Store::PutChanged(KeyHash hash, std::string_view key, std::string_view value,
                               ItemAttributes attributes, const ChangeOrigin* origin,
                               const Current& current, uint64_t now_ms) {
  return PutShort(hash, key, value, attributes, origin, current, now_ms);
}

WriteOutcome Store::Put(std::string_view key, std::string_view value, ItemAttributes attributes,
                        const WriteConditions& conditions, uint64_t now_ms) {
  if (!WithinLimits(key, value.size())) return {.status = ReplyStatus::kInvalidArgument};
  if (SealedItemBytes(key.size(), value.size()) <= kInPlaceBytesMax) {
    const KeyHash hash = InlineKeyHash(key, superblock_.hash_seed);
    Index::Lock lock(index_, hash);
    const Current current = FindCurrent(hash, key, now_ms);
    if (conditions.any()) {
      const WriteOutcome checked = Check(hash, current, conditions);
      if (checked.status != ReplyStatus::kOk) return checked;
    }
    const WriteOutcome outcome =
        PutShort(hash, key, value, attributes, conditions.origin, current, now_ms);
    if (outcome.status != ReplyStatus::kHeapFull && outcome.status != ReplyStatus::kTryAgain)
        [[likely]] {
      return outcome;
    }
  }
  // The value is long, or there is no room. Room can only be made without a lock.
  WriteOutcome outcome = PutLong(key, value, attributes, conditions, now_ms);
  if (outcome.status != ReplyStatus::kTryAgain) [[likely]]
    return outcome;
  MakeSlots();
  outcome = PutLong(key, value, attributes, conditions, now_ms);
  if (outcome.status == ReplyStatus::kTryAgain) outcome.status = RefuseForSlot();
  return outcome;
}

// Works like a value that the NIC brings: everything that takes time is done before the lock.
WriteOutcome Store::PutLong(std::string_view key, std::string_view value, ItemAttributes attributes,
                            const WriteConditions& conditions, uint64_t now_ms) {
  const std::optional<Reservation> reservation =
      Reserve(key, static_cast<uint32_t>(value.size()), now_ms);
  if (!reservation) return PutOverOld(key, value, attributes, conditions, now_ms);
  StoreValueAt(reservation->value.data(), value);
  return CommitPut(*reservation, key, attributes, conditions, now_ms);
}

// Writes the new item over the old one. Readers see it half-written more often, and look again.
WriteOutcome Store::PutOverOld(std::string_view key, std::string_view value,
                               ItemAttributes attributes, const WriteConditions& conditions,
                               uint64_t now_ms) {
  const uint32_t size_class = SizeClassFor(ItemBytes(key.size(), value.size()));
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  Index::Lock lock(index_, hash);
  const Current current = FindCurrent(hash, key, now_ms);
  const WriteOutcome checked = Check(hash, current, conditions);
  if (checked.status != ReplyStatus::kOk) return checked;
  if (!MayOverwrite(current, ItemBytes(key.size(), value.size()))) {
    refused_heap_full_.fetch_add(1, std::memory_order_relaxed);
    return {.status = ReplyStatus::kHeapFull};
  }
  if (IsLargeClass(current.slot.size_class())) {
    return PutOverLarge(hash, key, value, attributes, conditions.origin, current);
  }
  const WriteOutcome outcome = PutInPlace(hash, key, value, attributes, conditions.origin, current);
  if (outcome.status == ReplyStatus::kOk && current.slot.size_class() != size_class) {
    compactor_.NoteOversized(current.slot.read_bytes() - SizeClassBytes(size_class));
  }
  return outcome;
}

// A large item's commit word does not cover its value. So the old item is dead before a byte of it
// changes, and the new one is live when it is complete, as if the block had been free in between.
// Readers find a dead item and look again, or ask the server, which waits for the lock.
WriteOutcome Store::PutOverLarge(KeyHash hash, std::string_view key, std::string_view value,
                                 ItemAttributes attributes, const ChangeOrigin* origin,
                                 const Current& current) {
  std::byte* const block = Block(current.slot.offset());
  const ItemHeader header = NewHeader(key.size(), value.size(), attributes);
  if (records() && !recorder_.Put(header, key, value, origin)) {
    return {.status = ReplyStatus::kDiskRefuses};
  }
  const uint64_t bytes = ItemBytes(key.size(), value.size());
  const Slot slot = Slot::Of(hash.Tag(), SizeClassFor(bytes), current.slot.offset());
  const ItemSeal seal(hash, PlaceAt(slot.offset()));
  const bool large = IsLargeClass(slot.size_class());
  StoreDeadFirst(block);
  StoreValueAt(block + ValueOffset(key.size(), value.size()), value);
  if (large) {
    StoreLive(block, StoreLargeHead(block, {header, header.version}, key, seal));
  } else {
    StoreHeader(block, header);
    StoreKey(block, value.size(), key);
    StoreLive(block, LiveCommitWord(block, header.value_bytes, seal));
  }
  if (slot != current.slot) index_.Replace(current.place, slot);
  heap_->Shrink(block, current.slot.size_class(), bytes);
  if (evicts()) evictor_->state().Used(slot.offset(), 1);
  if (header.expiry_ms() != 0) {
    current.place.table->floors.Lower(current.place.home, header.expiry_ms());
  }
  return {.version = header.version, .slot = slot.word()};
}

// What outlives the process is never overwritten: a process that is killed meanwhile would leave
// neither item.
bool Store::MayOverwrite(const Current& current, uint64_t item_bytes) const {
  if (recovery_ != nullptr || !current.there()) return false;
  const uint32_t old_class = current.slot.size_class();
  if (!IsLargeClass(old_class)) return SizeClassFor(item_bytes) <= old_class;
  return Heap::BlockBytes(item_bytes) <= heap_->RoomAt(Block(current.slot.offset()));
}

bool Store::FitsOld(std::string_view key, uint32_t value_bytes, uint64_t now_ms) {
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  Index::Lock lock(index_, hash);
  const Current current = FindCurrent(hash, key, now_ms);
  if (MayOverwrite(current, ItemBytes(key.size(), value_bytes))) return true;
  refused_heap_full_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

WriteOutcome Store::Delete(std::string_view key, const WriteConditions& conditions,
                           uint64_t now_ms) {
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  Index::Lock lock(index_, hash);
  const Current current = FindCurrent(hash, key, now_ms);
  const WriteOutcome refused = Check(hash, current, conditions);
  if (refused.status != ReplyStatus::kOk) return refused;
  if (!current.there()) return {.status = ReplyStatus::kNotFound};
  if (!RecordDelete(current.slot, conditions.origin)) {
    return {.status = ReplyStatus::kDiskRefuses};
  }
  RemoveItem(current.place, current.slot);
  items_deleted_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

std::optional<Store::Reservation> Store::Reserve(std::string_view key, uint32_t value_bytes,
                                                 uint64_t now_ms) {
  if (!WithinLimits(key, value_bytes)) return std::nullopt;
  const uint64_t item_bytes = ItemBytes(key.size(), value_bytes);
  std::byte* block = AllocateOrMakeRoom(item_bytes, now_ms);
  if (block == nullptr) return std::nullopt;
  StoreDeadFirst(block);
  return Reservation{static_cast<uint64_t>(block - region_.data()),
                     {block + ValueOffset(key.size(), value_bytes), value_bytes},
                     SizeClassFor(item_bytes)};
}

void Store::Abandon(const Reservation& reservation) {
  FreeBlock(reservation.offset, reservation.size_class);
}

// The checksum of a long value takes long, so it is computed without the lock. That is safe: nobody
// else uses the block yet, and a version must only be unique.
Pending Store::Prepare(const Reservation& reservation, KeyHash hash, std::string_view key,
                       ItemAttributes attributes) {
  std::byte* block = Block(reservation.offset);
  const size_t value_bytes = reservation.value.size();
  const ItemHeader header = NewHeader(key.size(), value_bytes, attributes);
  const ItemSeal seal(hash, PlaceAt(reservation.offset));
  uint64_t live;
  if (IsLargeClass(reservation.size_class)) {
    // A version names only one item, so it also names the first placing of that item.
    live = StoreLargeHead(block, {header, header.version}, key, seal);
  } else {
    StoreHeader(block, header);
    StoreKey(block, value_bytes, key);
    live = LiveCommitWord(block, header.value_bytes, seal);
  }
  return {reservation.offset, reservation.size_class, header.version, live, header.expiry_ms()};
}

WriteOutcome Store::CommitPut(const Reservation& reservation, std::string_view key,
                              ItemAttributes attributes, const WriteConditions& conditions,
                              uint64_t now_ms) {
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  const Pending pending = Prepare(reservation, hash, key, attributes);
  Index::Lock lock(index_, hash);
  const Current current = FindCurrent(hash, key, now_ms);
  const WriteOutcome checked = Check(hash, current, conditions);
  if (checked.status != ReplyStatus::kOk) {
    Abandon(reservation);
    return checked;
  }
  return Install(hash, current, pending, conditions.origin, now_ms);
}

WriteOutcome Store::Install(KeyHash hash, const Current& current, const Pending& pending,
                            const ChangeOrigin* origin, uint64_t now_ms) {
  std::byte* block = Block(pending.offset);
  const Slot slot = Slot::Of(hash.Tag(), pending.size_class, pending.offset);
  if (current.there()) {
    if (records() && !pending.recorded && !recorder_.Put(block, LoadHeader(slot), origin)) {
      FreeBlock(pending.offset, pending.size_class);
      return {.status = ReplyStatus::kDiskRefuses};
    }
    // Old dead before new live, so there are never two live commit words. Between the two stores a
    // reader finds neither and looks again. Then the slot. The old block may be used again only
    // after the bucket's checksum is published.
    StoreReplaced(hash, current.slot, slot);
    StoreLive(block, pending.live_commit);
    index_.Replace(current.place, slot);
    Replaced(hash);
    if (evicts()) evictor_->Installed(hash, current.slot, slot);
    FreeBlock(current.slot.offset(), current.slot.size_class());
  } else {
    // The slot leads to a dead item until the commit word is stored. So the key appears at the same
    // moment to those who look it up and to those who remember where it was.
    if (!index_.Insert(hash, slot) && !InsertAfterRemoval(hash, slot, now_ms)) {
      if (!pending.recorded) FreeBlock(pending.offset, pending.size_class);
      return {.status = NoSlot()};
    }
    // Only now is it certain that there is room. Nobody takes the item for live yet.
    if (records() && !pending.recorded && !recorder_.Put(block, LoadHeader(slot), origin)) {
      TakeBack(hash, slot);
      return {.status = ReplyStatus::kDiskRefuses};
    }
    StoreLive(block, pending.live_commit);
    if (evicts()) evictor_->Installed(hash, current.slot, slot);
    if (index_.slots_used() >= grow_at_.load(std::memory_order_relaxed)) [[unlikely]]
      HelpGrowing();
  }
  if (pending.expiry_ms != 0) {
    IndexTable& table = index_.TableOf(hash);
    table.floors.Lower(table.Home(hash), pending.expiry_ms);
  }
  return {.version = pending.version, .slot = slot.word()};
}

// First marks the item dead, which is the moment when the key is gone. Then publishes slot and
// checksum, and then frees the block.
void Store::RemoveItem(const Index::Place& place, Slot slot) {
  StoreDead(Block(slot.offset()));
  index_.Remove(place);
  FreeBlock(slot.offset(), slot.size_class());
}

void Store::FreeBlock(uint64_t offset, uint32_t size_class) {
  // A smaller block may share the byte with its neighbour.
  if (evicts() && SizeClassBytes(size_class) >= Heat::kGranuleBytes) {
    evictor_->state().heat.Set(offset, Heat::kNone);
  }
  heap_->Free(Block(offset), size_class);
}

}  // namespace gannet
