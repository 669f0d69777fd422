#ifndef GANNET_SERVER_STORE_STORE_FIND_H_
#define GANNET_SERVER_STORE_STORE_FIND_H_

#include <cstring>

#include "common/base/words.h"
#include "server/store/store.h"

namespace gannet {

// How the store finds a key's item, for the sources of Store: inlined into every operation.

// Keys are short: a call of memcmp costs more than comparing them word by word.
inline bool SameKey(const std::byte* stored, std::string_view key) {
  const auto word = [](const void* p) {
    uint64_t value;
    std::memcpy(&value, p, sizeof(value));
    return value;
  };
  if (key.size() < 8) return std::memcmp(stored, key.data(), key.size()) == 0;
  const size_t last = key.size() - 8;  // overlaps the last of the loop
  for (size_t i = 0; i < last; i += 8) {
    if (word(stored + i) != word(key.data() + i)) return false;
  }
  return word(stored + last) == word(key.data() + last);
}

// Items only change under the lock that the caller holds, so they may be read as plain memory.
inline bool Store::IsKey(const std::byte* block, std::string_view key) {
  const uint64_t expiry_and_key = LoadWord(block + offsetof(ItemHeader, expiry_and_key));
  return (expiry_and_key & 0xffff) == key.size() && SameKey(block + sizeof(ItemHeader), key);
}

inline bool Store::Expired(const std::byte* block, uint64_t now_ms) {
  const uint64_t expiry_ms = LoadWord(block + offsetof(ItemHeader, expiry_and_key)) >> 16;
  return expiry_ms != 0 && expiry_ms <= now_ms;
}

[[gnu::always_inline]] inline Store::Current Store::FindCurrent(KeyHash hash, std::string_view key,
                                                                uint64_t now_ms) {
  const std::byte* block = nullptr;
  const auto found = index_.Find(hash, [&](Slot slot) {
    block = Block(slot.offset());
    return IsKey(block, key);
  });
  if (!found) return {};
  if (Expired(block, now_ms)) [[unlikely]] {
    RemoveItem(found->place, found->slot);
    return {};
  }
  return {found->place, found->slot, LoadWord(block + offsetof(ItemHeader, version))};
}

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_STORE_FIND_H_
