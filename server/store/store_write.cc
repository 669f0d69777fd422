// Store: the changes of a key. The order of the stores is that of docs/consistency.md. Each step
// says what must not be seen before it.

#include <algorithm>

#include "common/base/check.h"
#include "common/base/data_path_checks.h"
#include "common/layout/key_hash_inline.h"
#include "server/store/item_writer.h"
#include "server/store/large_writer.h"
#include "server/store/store_find.h"
#include "server/store/store_update.h"
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

// The old commit word of a sealed item stays until the new one is stored; with any of the new
// content it fails the check. The block may be larger than the new item needs.
//
// A large item's commit word does not cover its value. So the old item is dead before a byte of it
// changes, and the new one is live when it is complete, as if the block had been free in between.
// Readers find a dead item and look again, or ask the server, which waits for the lock.
[[gnu::always_inline]] inline WriteOutcome Store::PutInPlace(const Locked& key, const Change& put,
                                                             Slot slot) {
  if (!Record(put)) [[unlikely]]
    return {.status = ReplyStatus::kDiskRefuses};
  const Slot old = key.item.slot;
  std::byte* const block = Block(old.offset());
  const ItemHeader header = HeaderOf(put);
  const ItemSeal seal(key.hash, PlaceAt(old.offset()));
  CountExpiring(ExpiryMs(block), put.expiry_ms);
  if (IsLargeClass(old.size_class())) StoreDeadFirst(block);
  StoreLive(block, StoreContent(block, slot.size_class(), header, put.key, put.value, seal));
  if (slot != old) index_.Replace(key.lock, key.item.place, slot);
  if (evicts()) eviction_->Used(slot.offset(), 1);
  NoteExpiry(key, header);
  return {.version = header.version, .slot = slot.word()};
}

void Store::NoteExpiry(const Locked& key, const ItemHeader& header) {
  const uint64_t expiry_ms = header.expiry_ms();
  if (expiry_ms != 0) key.item.place.table->floors.Lower(key.item.place.home, expiry_ms);
}

void Store::MakeUpdate(const Locked& key, const ItemUpdate& update) {
  GANNET_CHECK(key.item.there() && ValueBytes(Block(key.item.slot.offset())) == update.value.size(),
               "an item changed while an update of it waited");
  WriteUpdate(key.hash, key.item.slot, update);
}

std::optional<Pending> Store::Make(KeyHash hash, const Change& put) {
  const uint64_t item_bytes = ItemBytes(put.key.size(), put.value.size());
  std::byte* block = heap_->Allocate(item_bytes);
  if (block == nullptr) return std::nullopt;
  StoreDead(block);
  const uint64_t offset = block - region_.data();
  const uint32_t size_class = SizeClassFor(item_bytes);
  const uint64_t live = StoreContent(block, size_class, HeaderOf(put), put.key, put.value,
                                     ItemSeal(hash, PlaceAt(offset)));
  return Pending{offset, size_class, put.version, live, put.expiry_ms};
}

WriteOutcome Store::PutShort(const Locked& key, const Change& put) {
  const uint64_t item_bytes = ItemBytes(put.key.size(), put.value.size());
  GANNET_CHECK_DATA_PATH(item_bytes <= kInPlaceBytesMax, "the item is long");
  if (key.item.slot.size_class() == SizeClassFor(item_bytes) && recovery_ == nullptr &&
      FitsBlock(*heap_, Block(key.item.slot.offset()), item_bytes)) {
    return PutInPlace(key, put, key.item.slot);
  }
  const std::optional<Pending> pending = Make(key.hash, put);
  if (!pending) return {.status = ReplyStatus::kHeapFull};
  return Install(key, *pending, &put);
}

// Readers see the item half-written more often than one in a new block, and look again.
WriteOutcome Store::Overwrite(const Locked& key, const Change& put) {
  const uint64_t item_bytes = ItemBytes(put.key.size(), put.value.size());
  if (!MayOverwrite(key.item, item_bytes)) return {.status = ReplyStatus::kHeapFull};
  const Slot old = key.item.slot;
  std::byte* const block = Block(old.offset());
  const bool was_large = IsLargeClass(old.size_class());
  const Slot slot =
      was_large ? Slot::Of(key.hash.Tag(), SizeClassFor(item_bytes), old.offset()) : old;
  const WriteOutcome outcome = PutInPlace(key, put, slot);
  if (outcome.status != ReplyStatus::kOk) return outcome;
  if (was_large) {
    heap_->Shrink(block, old.size_class(), item_bytes);
    return outcome;
  }
  const uint64_t room = heap_->SealedRoomAt(block, old.size_class());
  const uint64_t needed = heap_->SealedBlockBytes(item_bytes);
  if (room > needed) compactor_.NoteOversized(room - needed);
  return outcome;
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

bool Store::FitsOld(std::string_view key, uint32_t value_bytes, ServerTime now) {
  const Locked locked(*this, HashOf(key), key, now);
  return MayOverwrite(locked.item, ItemBytes(key.size(), value_bytes));
}

// Changes the header where it lies. The old commit word stays until the new one is stored; with any
// of the new header it fails the check. A large item gets a new placing too, so that a reader who
// READ the value under the old header looks again. The value itself does not change.
WriteOutcome Store::Touch(const Locked& key, const Change& put) {
  GANNET_CHECK_DATA_PATH(key.item.there(), "there is no item");
  const uint64_t offset = key.item.slot.offset();
  std::byte* const block = Block(offset);
  if (!Record(put)) return {.status = ReplyStatus::kDiskRefuses};
  const ItemHeader header = HeaderOf(put);
  const ItemSeal seal(key.hash, PlaceAt(offset));
  CountExpiring(ExpiryMs(block), put.expiry_ms);
  if (recovery_ != nullptr) recovery_->BeginTouch(key.hash, key.item.slot);
  StoreLive(block, StoreAroundValue(block, key.item.slot.size_class(), header, key.key, seal));
  if (recovery_ != nullptr) recovery_->End(key.hash);
  NoteExpiry(key, header);
  return {.version = header.version, .slot = key.item.slot.word()};
}

WriteOutcome Store::Remove(const Locked& key, const Change& deletion) {
  GANNET_CHECK_DATA_PATH(key.item.there(), "there is no item");
  if (!Record(deletion)) return {.status = ReplyStatus::kDiskRefuses};
  RemoveRecorded(key, deletion.version);
  return {};
}

void Store::RemoveRecorded(const Locked& key, uint64_t version) {
  if (key.item.there()) RemoveItem(key.lock, key.item.place, key.item.slot);
  NoteRemoved(version);
}

std::optional<Store::Reservation> Store::Reserve(std::string_view key, uint32_t value_bytes,
                                                 ServerTime now) {
  if (!WithinLimits(key, value_bytes)) return std::nullopt;
  const uint64_t item_bytes = ItemBytes(key.size(), value_bytes);
  std::byte* block = AllocateOrMakeRoom(item_bytes, now);
  if (block == nullptr) return std::nullopt;
  StoreDeadFirst(block);
  return Reservation{static_cast<uint64_t>(block - region_.data()),
                     {block + ValueOffset(key.size(), value_bytes), value_bytes},
                     SizeClassFor(item_bytes)};
}

std::optional<Store::Reservation> Store::Reserve(std::string_view key, std::string_view value,
                                                 ServerTime now) {
  auto reservation = Reserve(key, static_cast<uint32_t>(value.size()), now);
  if (reservation) StoreValueAt(reservation->value.data(), value);
  return reservation;
}

std::optional<Pending> Store::MakeLong(KeyHash hash, const Change& put, ServerTime now) {
  const auto reservation = Reserve(put.key, put.value, now);
  if (!reservation) return std::nullopt;
  return Prepare(*reservation, hash, put);
}

void Store::Abandon(const Reservation& reservation) {
  FreeBlock(reservation.offset, reservation.size_class);
}

// The checksum of a long value takes long, so it is computed without the lock. That is safe: nobody
// else uses the block yet.
Pending Store::Prepare(const Reservation& reservation, KeyHash hash, const Change& put) {
  const ItemHeader header = HeaderOf(put);
  const ItemSeal seal(hash, PlaceAt(reservation.offset));
  const uint64_t live =
      StoreAroundValue(Block(reservation.offset), reservation.size_class, header, put.key, seal);
  return {reservation.offset, reservation.size_class, header.version, live, header.expiry_ms()};
}

WriteOutcome Store::Install(const Locked& key, const Pending& pending, const Change* put) {
  const Slot old = key.item.slot;
  const Slot slot = Slot::Of(key.hash.Tag(), pending.size_class, pending.offset);
  if (!old.empty()) {
    if (put != nullptr && !Record(*put)) {
      Drop(pending);
      return {.status = ReplyStatus::kDiskRefuses};
    }
    CountExpiring(ExpiryMs(Block(old.offset())), pending.expiry_ms);
    ReplaceItem(key.lock, key.hash, key.item.place, old, slot, pending.live_commit);
    if (evicts()) evictor_->Installed(key.hash, old, slot);
    FreeBlock(old.offset(), old.size_class());
  } else {
    // The slot leads to a dead item until the commit word is stored. So the key appears at the same
    // moment to those who look it up and to those who remember where it was.
    if (!index_.Insert(key.lock, key.hash, slot)) {
      const ReplyStatus status = InsertAfterRemoval(key.lock, key.hash, slot, key.now);
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
    StoreLive(Block(pending.offset), pending.live_commit);
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
