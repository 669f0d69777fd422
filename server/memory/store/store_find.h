#ifndef GANNET_SERVER_MEMORY_STORE_STORE_FIND_H_
#define GANNET_SERVER_MEMORY_STORE_STORE_FIND_H_

#include <algorithm>

#include "common/base/same_bytes.h"
#include "common/base/server_time.h"
#include "common/base/words.h"
#include "server/memory/store/item_writer.h"
#include "server/memory/store/store.h"

namespace gannet {

// How the store finds a key's item, and holds it; inlined into every operation.

inline uint32_t ValueBytes(const std::byte* block) {
  return static_cast<uint32_t>(LoadWord(block + offsetof(ItemHeader, value_bytes)));
}
inline Expiry ExpiryOf(const std::byte* block) {
  return Expiry::FromMs(LoadWord(block + offsetof(ItemHeader, expiry_and_key)) >> 16);
}
inline const char* KeyAt(const std::byte* block, uint32_t value_bytes) {
  return reinterpret_cast<const char*>(block) + sizeof(ItemHeader) + value_bytes;
}

// Of an item of either kind.
inline const char* KeyOfItem(const std::byte* block, uint32_t key_bytes, uint32_t value_bytes) {
  return reinterpret_cast<const char*>(block) + KeyOffset(key_bytes, value_bytes);
}

// Old dead before new live, so there are never two live commit words. Between the two stores a
// reader finds neither and looks again. Then the slot. The old block may be used again only after
// the bucket's checksum is published.
// In a memory file the old commit word keeps its checksum, so that the next process can take it
// back if it finds no new item (docs/memory-file.md).
[[gnu::always_inline]] inline void Items::ReplaceItem(const Index::Lock& held, KeyHash hash,
                                                      const Index::Place& place, Slot old, Slot by,
                                                      uint64_t live_commit) {
  std::byte* const old_block = Block(old.offset());
  if (recovery_ == nullptr) [[likely]] {
    StoreDead(old_block);
  } else {
    recovery_->BeginReplace(hash, old, by);
    StoreWordRelease(old_block, LoadWord(old_block) & ~kCommitLive);
  }
  StoreLive(Block(by.offset()), live_commit);
  Index::Replace(held, place, by);
  if (recovery_ != nullptr) recovery_->End(hash);
}

// Items change only under the lock that the caller holds, so they may be read as plain memory.
inline bool Store::IsKey(const std::byte* block, std::string_view key) {
  const uint64_t expiry_and_key = LoadWord(block + offsetof(ItemHeader, expiry_and_key));
  const uint32_t key_bytes = expiry_and_key & 0xffff;
  return key_bytes == key.size() &&
         SameBytes(KeyOfItem(block, key_bytes, ValueBytes(block)), key.data(), key.size());
}

// `now` may be older than the request. So an item that is alive by it is looked at again by the
// clock: a client may have seen that the item's time was over, and told others.
inline bool Store::Expired(const std::byte* block, ServerTime now) const {
  const Expiry expiry = ExpiryOf(block);
  if (expiry.never()) return false;
  return now.IsPast(expiry) || Now(now).IsPast(expiry);
}

[[gnu::always_inline]] inline Store::Current Store::FindCurrent(const Index::Lock& held,
                                                                KeyHash hash, std::string_view key,
                                                                ServerTime now) {
  const std::byte* block = nullptr;
  const auto found = index_.Find(held, hash, [&](Slot slot) {
    block = Block(slot.offset());
    return IsKey(block, key);
  });
  if (!found) return {};
  if (Expired(block, now)) [[unlikely]] {
    RemoveItem(held, found->place, found->slot);
    items_expired_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  return {found->place, found->slot, LoadWord(block + offsetof(ItemHeader, version))};
}

class Store::Locked {
 public:
  [[gnu::always_inline]] Locked(Store& store, KeyHash key_hash, std::string_view key_bytes,
                                ServerTime time)
      : hash(key_hash),
        key(key_bytes),
        now(time),
        lock(store.index_, key_hash),
        item(store.FindCurrent(lock, key_hash, key_bytes, time)) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  const KeyHash hash;
  const std::string_view key;
  const ServerTime now;
  const Index::Lock lock;
  const Current item;  // as it was found
};

// Returns the header of the item that a put makes.
inline ItemHeader HeaderOf(const Change& put) {
  ItemHeader header{};
  header.version = put.version;
  header.value_bytes = static_cast<uint32_t>(put.value.size());
  header.flags = put.flags;
  header.SetExpiryAndKeyBytes(AsStored(put.expiry), put.key.size());
  return header;
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_STORE_FIND_H_
