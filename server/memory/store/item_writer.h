#ifndef GANNET_SERVER_MEMORY_STORE_ITEM_WRITER_H_
#define GANNET_SERVER_MEMORY_STORE_ITEM_WRITER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/base/words.h"
#include "common/layout/item.h"
#include "server/log/changes/update_lane.h"

namespace gannet {

// Functions that write items into blocks of the region, word by word, while clients may be reading
// them. A live commit word is always stored last. Content is changed only under a dead commit word,
// or under one whose checksum then fails.
//
// Content is checksummed where it lies. The thread that writes an item is the only one that writes
// there, so it may read the item as plain memory.

// Items up to this many bytes may be updated in place. Storing and checksumming them takes so
// little time that a reader rarely sees a half-written item.
inline constexpr size_t kInPlaceBytesMax = UpdateLane::kItemBytesMax;

// Marks a block's item as dead. Nobody sees this store before the earlier stores of this thread (or
// of one that handed the block over). Content that is stored afterwards needs no such care, because
// no mixture of two contents passes the checksum. Large items need it (large_writer.h).
inline void StoreDead(std::byte* block) { StoreWordRelease(block, 0); }
// Makes a dead item's content live. Nobody sees the commit word before the content.
inline void StoreLive(std::byte* block, uint64_t live_commit) {
  StoreWordRelease(block, live_commit);
}

// Store an item's content: the header (without the commit word), the value and the key. Store the
// key after the value; the header may come at any time.
inline void StoreHeader(std::byte* block, const ItemHeader& header) {
  StoreWord(block + offsetof(ItemHeader, version), header.version);
  StoreWord(block + offsetof(ItemHeader, value_bytes),
            header.value_bytes | uint64_t{header.flags} << 32);
  StoreWord(block + offsetof(ItemHeader, expiry_and_key), header.expiry_and_key);
}
// Stores the value and keeps the bytes behind it. Those are the key, if an item is updated in place
// with a value of the same length.
[[gnu::always_inline]] inline void StoreValueAt(std::byte* at, std::string_view value) {
  const size_t whole = value.size() & ~size_t{7};
  StoreWords(at, value.data(), whole);
  if (whole == value.size()) return;
  uint64_t word = LoadWord(at + whole);
  std::memcpy(&word, value.data() + whole, value.size() - whole);
  StoreWord(at + whole, word);
}
[[gnu::always_inline]] inline void StoreValue(std::byte* block, std::string_view value) {
  StoreValueAt(block + sizeof(ItemHeader), value);
}
// Stores what an update changes of the item that it updates in place.
[[gnu::always_inline]] inline void StoreUpdated(std::byte* block, uint64_t version, uint32_t flags,
                                                std::string_view value) {
  StoreWord(block + offsetof(ItemHeader, version), version);
  StoreWord(block + offsetof(ItemHeader, value_bytes), value.size() | uint64_t{flags} << 32);
  StoreValue(block, value);
}
// Stores the key behind a value of `value_bytes`. Call it after StoreValue, because value and key
// may share a word.
inline void StoreKey(std::byte* block, size_t value_bytes, std::string_view key) {
  std::byte* at = block + sizeof(ItemHeader) + value_bytes;
  if (const size_t in_word = value_bytes % 8; in_word != 0) {
    const size_t n = std::min(key.size(), 8 - in_word);
    uint64_t word = LoadWord(at - in_word);
    std::memcpy(reinterpret_cast<std::byte*>(&word) + in_word, key.data(), n);
    StoreWord(at - in_word, word);
    at += n;
    key.remove_prefix(n);
  }
  StoreWords(at, key.data(), key.size());
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_ITEM_WRITER_H_
