// Store: the changes of a key. The order of the stores is that of docs/consistency.md. Each step
// says what must not be seen before it.

#include <algorithm>

#include "common/base/check.h"
#include "common/layout/key_hash_inline.h"
#include "server/store/item_writer.h"
#include "server/store/large_writer.h"
#include "server/store/store_find.h"
#include "server/store/write_limits.h"

namespace gannet {
namespace {

// Returns whether a sealed item of `item_bytes` would get a block as long as this one, which holds
// an item of the same class.
bool FitsBlock(const Heap& heap, const std::byte* block, uint64_t item_bytes) {
  if (item_bytes < Slabs::kBytesMin) return true;
  return heap.SealedRoomAt(block, SizeClassFor(item_bytes)) == heap.SealedBlockBytes(item_bytes);
}

}  // namespace

// The old commit word stays until the new one is stored; with any of the new content it fails the
// check. The block may be larger than the new item needs.
[[gnu::always_inline]] inline void Store::WriteInPlace(const Locked& key, const Change& put) {
  const Slot slot = key.item.slot;
  std::byte* block = Block(slot.offset());
  const ItemHeader header = HeaderOf(put);
  // The key is already in place if it does not move.
  const bool key_stays = ValueBytes(block) == put.value.size();
  CountExpiring(ExpiryMs(block), put.expiry_ms);
  StoreHeader(block, header);
  StoreValue(block, put.value);
  if (!key_stays) StoreKey(block, put.value.size(), put.key);
  const ItemSeal seal(key.hash, PlaceAt(slot.offset()));
  StoreLive(block, LiveCommitWord(block, header.value_bytes, seal));
  if (evicts()) eviction_->Used(slot.offset(), 1);
  if (put.expiry_ms != 0) key.item.place.table->floors.Lower(key.item.place.home, put.expiry_ms);
}

[[gnu::always_inline]] inline WriteOutcome Store::PutInPlace(const Locked& key, const Change& put) {
  if (!Record(put)) [[unlikely]]
    return {.status = ReplyStatus::kDiskRefuses};
  WriteInPlace(key, put);
  return {.version = put.version, .slot = key.item.slot.word()};
}

void Store::MakeUpdate(const Locked& key, const Change& put) {
  GANNET_CHECK(key.item.there() && ValueBytes(Block(key.item.slot.offset())) == put.value.size(),
               "an item changed while an update of it waited");
  WriteInPlace(key, put);
}

[[gnu::always_inline]] inline std::optional<Pending> Store::MakeInline(KeyHash hash,
                                                                       const Change& put) {
  const uint64_t item_bytes = ItemBytes(put.key.size(), put.value.size());
  std::byte* block = heap_->Allocate(item_bytes);
  if (block == nullptr) return std::nullopt;
  StoreDead(block);
  const uint64_t offset = block - region_.data();
  const ItemHeader header = HeaderOf(put);
  StoreHeader(block, header);
  StoreValue(block, put.value);
  StoreKey(block, put.value.size(), put.key);
  const uint64_t live = LiveCommitWord(block, header.value_bytes, ItemSeal(hash, PlaceAt(offset)));
  return Pending{offset, SizeClassFor(item_bytes), put.version, live, put.expiry_ms};
}

std::optional<Pending> Store::Make(KeyHash hash, const Change& put) {
  return MakeInline(hash, put);
}

WriteOutcome Store::PutShort(const Locked& key, const Change& put) {
  const uint64_t item_bytes = ItemBytes(put.key.size(), put.value.size());
  if (key.item.slot.size_class() == SizeClassFor(item_bytes) && recovery_ == nullptr &&
      FitsBlock(*heap_, Block(key.item.slot.offset()), item_bytes)) {
    return PutInPlace(key, put);
  }
  const std::optional<Pending> pending = MakeInline(key.hash, put);
  if (!pending) return {.status = ReplyStatus::kHeapFull};
  return Install(key, *pending, &put);
}

// Readers see the item half-written more often than one in a new block, and look again.
WriteOutcome Store::Overwrite(const Locked& key, const Change& put) {
  const uint64_t item_bytes = ItemBytes(put.key.size(), put.value.size());
  if (!MayOverwrite(key.item, item_bytes)) return {.status = ReplyStatus::kHeapFull};
  const Slot old = key.item.slot;
  if (IsLargeClass(old.size_class())) return OverwriteLarge(key, put);
  const WriteOutcome outcome = PutInPlace(key, put);
  const uint64_t room = heap_->SealedRoomAt(Block(old.offset()), old.size_class());
  const uint64_t needed = heap_->SealedBlockBytes(item_bytes);
  if (outcome.status == ReplyStatus::kOk && room > needed) compactor_.NoteOversized(room - needed);
  return outcome;
}

// A large item's commit word does not cover its value. So the old item is dead before a byte of it
// changes, and the new one is live when it is complete, as if the block had been free in between.
// Readers find a dead item and look again, or ask the server, which waits for the lock.
WriteOutcome Store::OverwriteLarge(const Locked& key, const Change& put) {
  const Slot old = key.item.slot;
  std::byte* const block = Block(old.offset());
  if (!Record(put)) return {.status = ReplyStatus::kDiskRefuses};
  CountExpiring(ExpiryMs(block), put.expiry_ms);
  const ItemHeader header = HeaderOf(put);
  const uint64_t bytes = ItemBytes(put.key.size(), put.value.size());
  const Slot slot = Slot::Of(key.hash.Tag(), SizeClassFor(bytes), old.offset());
  const ItemSeal seal(key.hash, PlaceAt(slot.offset()));
  StoreDeadFirst(block);
  StoreValueAt(block + ValueOffset(put.key.size(), put.value.size()), put.value);
  if (IsLargeClass(slot.size_class())) {
    StoreLive(block, StoreLargeHead(block, {header, header.version}, put.key, seal));
  } else {
    StoreHeader(block, header);
    StoreKey(block, put.value.size(), put.key);
    StoreLive(block, LiveCommitWord(block, header.value_bytes, seal));
  }
  if (slot != old) index_.Replace(key.lock, key.item.place, slot);
  heap_->Shrink(block, old.size_class(), bytes);
  if (evicts()) eviction_->Used(slot.offset(), 1);
  if (header.expiry_ms() != 0) {
    key.item.place.table->floors.Lower(key.item.place.home, header.expiry_ms());
  }
  return {.version = header.version, .slot = slot.word()};
}

// What outlives the process is never overwritten: a process that is killed meanwhile would leave
// neither item.
bool Store::MayOverwrite(const Current& current, uint64_t item_bytes) const {
  if (recovery_ != nullptr || !current.there()) return false;
  const uint32_t old_class = current.slot.size_class();
  const std::byte* const block = Block(current.slot.offset());
  if (!IsLargeClass(old_class)) return item_bytes <= heap_->SealedRoomAt(block, old_class);
  return Heap::BlockBytes(item_bytes) <= heap_->RoomAt(block);
}

bool Store::FitsOld(std::string_view key, uint32_t value_bytes, uint64_t now_ms) {
  const Locked locked(*this, HashOf(key), key, now_ms);
  return MayOverwrite(locked.item, ItemBytes(key.size(), value_bytes));
}

// Changes the header where it lies. The old commit word stays until the new one is stored; with any
// of the new header it fails the check. A large item gets a new placing too, so that a reader who
// READ the value under the old header looks again. The value itself does not change.
WriteOutcome Store::Touch(const Locked& key, const Change& put) {
  const uint64_t offset = key.item.slot.offset();
  std::byte* const block = Block(offset);
  if (!Record(put)) return {.status = ReplyStatus::kDiskRefuses};
  const ItemHeader header = HeaderOf(put);
  const ItemSeal seal(key.hash, PlaceAt(offset));
  CountExpiring(ExpiryMs(block), put.expiry_ms);
  if (recovery_ != nullptr) recovery_->BeginTouch(key.hash, key.item.slot);
  if (IsLargeClass(key.item.slot.size_class())) {
    StoreLive(block, StoreLargeHead(block, {header, header.version}, key.key, seal));
  } else {
    StoreHeader(block, header);
    StoreLive(block, LiveCommitWord(block, header.value_bytes, seal));
  }
  if (recovery_ != nullptr) recovery_->End(key.hash);
  if (put.expiry_ms != 0) key.item.place.table->floors.Lower(key.item.place.home, put.expiry_ms);
  return {.version = header.version, .slot = key.item.slot.word()};
}

WriteOutcome Store::Remove(const Locked& key, const Change& deletion) {
  if (!Record(deletion)) return {.status = ReplyStatus::kDiskRefuses};
  RemoveRecorded(key, deletion.version);
  return {};
}

void Store::RemoveRecorded(const Locked& key, uint64_t version) {
  if (key.item.there()) RemoveItem(key.lock, key.item.place, key.item.slot);
  NoteRemoved(version);
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
// else uses the block yet.
Pending Store::Prepare(const Reservation& reservation, KeyHash hash, const Change& put) {
  std::byte* block = Block(reservation.offset);
  const size_t value_bytes = reservation.value.size();
  const ItemHeader header = HeaderOf(put);
  const ItemSeal seal(hash, PlaceAt(reservation.offset));
  uint64_t live;
  if (IsLargeClass(reservation.size_class)) {
    // A version names only one item, so it also names the first placing of that item.
    live = StoreLargeHead(block, {header, header.version}, put.key, seal);
  } else {
    StoreHeader(block, header);
    StoreKey(block, value_bytes, put.key);
    live = LiveCommitWord(block, header.value_bytes, seal);
  }
  return {reservation.offset, reservation.size_class, header.version, live, header.expiry_ms()};
}

WriteOutcome Store::Install(const Locked& key, const Pending& pending, const Change* put) {
  const Slot old = key.item.slot;
  std::byte* block = Block(pending.offset);
  const Slot slot = Slot::Of(key.hash.Tag(), pending.size_class, pending.offset);
  if (!old.empty()) {
    if (put != nullptr && !Record(*put)) {
      Drop(pending);
      return {.status = ReplyStatus::kDiskRefuses};
    }
    // Old dead before new live, so there are never two live commit words. Between the two stores a
    // reader finds neither and looks again. Then the slot. The old block may be used again only
    // after the bucket's checksum is published.
    CountExpiring(ExpiryMs(Block(old.offset())), pending.expiry_ms);
    StoreReplaced(key.hash, old, slot);
    StoreLive(block, pending.live_commit);
    index_.Replace(key.lock, key.item.place, slot);
    Replaced(key.hash);
    if (evicts()) evictor_->Installed(key.hash, old, slot);
    FreeBlock(old.offset(), old.size_class());
  } else {
    // The slot leads to a dead item until the commit word is stored. So the key appears at the same
    // moment to those who look it up and to those who remember where it was.
    if (!index_.Insert(key.lock, key.hash, slot)) {
      const ReplyStatus status = InsertAfterRemoval(key.lock, key.hash, slot, key.now_ms);
      if (status != ReplyStatus::kOk) {
        if (put != nullptr) Drop(pending);
        return {.status = status == ReplyStatus::kTryAgain ? status : NoSlot()};
      }
    }
    CountExpiring(0, pending.expiry_ms);
    // Only now is it certain that there is room. Nobody takes the item for live yet.
    if (put != nullptr && !Record(*put)) {
      TakeBack(key.lock, key.hash, slot);
      return {.status = ReplyStatus::kDiskRefuses};
    }
    StoreLive(block, pending.live_commit);
    if (evicts()) evictor_->Installed(key.hash, old, slot);
    if (grower_.WantsHelp()) [[unlikely]]
      grower_.Help();
  }
  if (pending.expiry_ms != 0) {
    IndexTable& table = index_.TableOf(key.hash);
    table.floors.Lower(table.Home(key.hash), pending.expiry_ms);
  }
  return {.version = pending.version, .slot = slot.word()};
}

// The slot was inserted a moment ago, and its item never became live.
void Store::TakeBack(const Index::Lock& held, KeyHash hash, Slot slot) {
  const auto found = index_.Find(held, hash, [slot](Slot it) { return it == slot; });
  RemoveItem(held, found->place, slot);
}

}  // namespace gannet
