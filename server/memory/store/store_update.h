#ifndef GANNET_SERVER_MEMORY_STORE_STORE_UPDATE_H_
#define GANNET_SERVER_MEMORY_STORE_STORE_UPDATE_H_

#include "common/base/data_path_checks.h"
#include "common/base/same_bytes.h"
#include "common/base/words.h"
#include "common/base/xxh3_inline.h"
#include "common/layout/key_hash_inline.h"
#include "common/layout/stub.h"
#include "server/memory/store/item_writer.h"
#include "server/memory/store/store.h"
#include "server/memory/store/store_find.h"

namespace gannet {

[[gnu::always_inline]] inline void Store::GuessBucket(std::string_view key, Guess* guess) const {
  const KeyHash hash = InlineKeyHash(key, superblock_.hash_seed);
  guess->hash = hash.value();
  guess->place = index_.PrefetchBucket(hash);
}

[[gnu::always_inline]] inline void Store::GuessItem(Guess* guess) const {
  guess->place = Index::GuessSlot(guess->place, KeyHash(guess->hash).Tag());
  const std::byte* block = Block(Slot(LoadWord(guess->place)).offset());
  __builtin_prefetch(block);
  __builtin_prefetch(block + 64);
}

// An item with this key is the key's item, whichever slot led here. Without an expiry, the whole
// word is the key's length. An empty key never matches. An empty slot leads to the superblock,
// where the word is the length of the region, which no key has.
template <class Lock>
[[gnu::always_inline]] inline bool Store::FindToUpdate(const Lock& lock, const Guess& guess,
                                                       std::string_view key, uint32_t value_bytes,
                                                       Slot* slot) const {
  static_assert(offsetof(Superblock, region_bytes) == offsetof(ItemHeader, expiry_and_key));
  *slot = index_.LoadGuessed(lock, guess.place);
  const std::byte* const block = Block(slot->offset());
  if (LoadWord(block + offsetof(ItemHeader, expiry_and_key)) != key.size() ||
      ValueBytes(block) != value_bytes ||
      !SameBytes(KeyAt(block, value_bytes), key.data(), key.size())) [[unlikely]] {
    return false;
  }
  // A stub's value is as long as this.
  if (value_bytes == sizeof(StubValue) && IsStub(*slot)) [[unlikely]]
    return false;
  return true;
}

// Changes only version, flags and value of the item's content. The old commit word stays until the
// new one is stored; with any of the new content it fails the check.
template <class Flags>
[[gnu::always_inline]] inline bool Store::UpdateInPlace(const Guess& guess, std::string_view key,
                                                        std::string_view value, Flags&& flags,
                                                        Update* update) {
  GANNET_CHECK_DATA_PATH(!records(), "the change would not be recorded");
  if (SealedItemBytes(key.size(), value.size()) > kInPlaceBytesMax) [[unlikely]]
    return false;
  const Index::KeyLock lock(index_, KeyHash(guess.hash));
  const uint32_t value_bytes = static_cast<uint32_t>(value.size());
  Slot slot;
  if (!FindToUpdate(lock, guess, key, value_bytes, &slot)) return false;
  std::byte* const block = Block(slot.offset());
  const uint64_t version = NextVersion();
  StoreUpdated(block, version, flags(), value);
  const ItemSeal seal(KeyHash(guess.hash), PlaceAt(slot.offset()));
  StoreLive(block, LiveCommitWord<Xxh3UnseededInline>(block, value_bytes, seal));
  *update = {version, slot.word()};
  return true;
}

// Items of a memory file are never overwritten.
template <class Decide>
[[gnu::always_inline]] inline bool Store::DecideUpdate(const Guess& guess, std::string_view key,
                                                       size_t value_bytes, Index::KeyTry::May may,
                                                       Decide&& decide) {
  if (SealedItemBytes(key.size(), value_bytes) > kInPlaceBytesMax || recovery_ != nullptr)
      [[unlikely]] {
    return false;
  }
  const Index::KeyTry lock(index_, KeyHash(guess.hash), may);
  Slot slot;
  return lock.held() && FindToUpdate(lock, guess, key, static_cast<uint32_t>(value_bytes), &slot) &&
         decide(slot);
}

// As in UpdateInPlace. The checksum is known, so the content is not looked at again.
[[gnu::always_inline]] inline void Store::WriteUpdate(KeyHash hash, Slot slot,
                                                      const ItemUpdate& update) {
  std::byte* const block = Block(slot.offset());
  StoreUpdated(block, update.version, update.flags, update.value);
  StoreLive(block, ItemSeal(hash, PlaceAt(slot.offset())).CommitWordOf(update.item_checksum));
  if (evicts()) eviction_->Used(slot.offset(), 1);
}

[[gnu::always_inline]] inline bool Store::ApplyUpdate(const Guess& guess, const ItemUpdate& update,
                                                      const Change* change) {
  GANNET_CHECK_DATA_PATH(change != nullptr || !Hears(), "somebody would not hear of the change");
  if (SealedItemBytes(update.key.size(), update.value.size()) > kInPlaceBytesMax ||
      recovery_ != nullptr) [[unlikely]] {
    return false;
  }
  const Index::KeyLock lock(index_, KeyHash(guess.hash));
  Slot slot;
  if (!FindToUpdate(lock, guess, update.key, static_cast<uint32_t>(update.value.size()), &slot))
      [[unlikely]] {
    return false;
  }
  // The compiler knows which callers give none.
  if (change != nullptr && !Record(*change)) return false;
  WriteUpdate(KeyHash(guess.hash), slot, update);
  return true;
}

template <class Decode, class Made>
[[gnu::always_inline]] inline bool Store::MakeUpdate(const Guess& guess, Decode&& decode,
                                                     Made&& made) {
  const Index::KeyLock lock(index_, KeyHash(guess.hash));
  const ItemUpdate update = decode();
  Slot slot;
  if (!FindToUpdate(lock, guess, update.key, static_cast<uint32_t>(update.value.size()), &slot))
      [[unlikely]] {
    return false;
  }
  WriteUpdate(KeyHash(guess.hash), slot, update);
  made();
  return true;
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_STORE_UPDATE_H_
