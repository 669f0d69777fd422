#ifndef GANNET_SERVER_STORE_ITEM_WRITER_H_
#define GANNET_SERVER_STORE_ITEM_WRITER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/base/words.h"
#include "common/layout/item.h"

namespace gannet {

// How items get into blocks of the region, word by word, while clients may be reading them. A live
// commit word is only ever stored last, and content is only ever changed under a dead one, or under
// one whose checksum then fails.
//
// Content is checksummed where it lies: whoever writes an item is the only one who writes there,
// and may read it as plain memory.

// Items up to this many bytes may be updated in place: storing and checksumming them takes so
// little time that a reader seldom meets a half-written item.
inline constexpr size_t kInPlaceBytesMax = 1024;

// Declares whatever is in a block dead. Nothing that this thread (or one that handed the block
// over) stored before is seen after it; content stored afterwards needs no such care, as no
// mixture of two contents passes the checksum.
inline void StoreDead(std::byte* block) { StoreWordRelease(block, 0); }
// The content of a dead item becomes live: nothing of it is seen later than the commit word.
inline void StoreLive(std::byte* block, uint64_t live_commit) {
  StoreWordRelease(block, live_commit);
}

// The content of an item is header (but for the commit word), value and key, in any order but that
// of the last two.
inline void StoreHeader(std::byte* block, const ItemHeader& header) {
  StoreWord(block + offsetof(ItemHeader, version), header.version);
  StoreWord(block + offsetof(ItemHeader, value_bytes),
            header.value_bytes | uint64_t{header.flags} << 32);
  StoreWord(block + offsetof(ItemHeader, expiry_and_key), header.expiry_and_key);
}
// Keeps what lies behind the value: the key, where an item is updated in place and its value is as
// long as the one before.
[[gnu::always_inline]] inline void StoreValue(std::byte* block, std::string_view value) {
  std::byte* at = block + sizeof(ItemHeader);
  const size_t whole = value.size() & ~size_t{7};
  StoreWords(at, value.data(), whole);
  if (whole == value.size()) return;
  uint64_t word = LoadWord(at + whole);
  std::memcpy(&word, value.data() + whole, value.size() - whole);
  StoreWord(at + whole, word);
}
// Behind a value of `value_bytes`; call it when the value is there, whose last word it shares.
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

#endif  // GANNET_SERVER_STORE_ITEM_WRITER_H_
