#ifndef GANNET_SERVER_STORE_ITEM_WRITER_H_
#define GANNET_SERVER_STORE_ITEM_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/base/words.h"
#include "common/base/xxh3_inline.h"
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

// The content of an item is header (but for the commit word), key and value, in any order.
inline void StoreHeader(std::byte* block, const ItemHeader& header) {
  StoreWord(block + offsetof(ItemHeader, version), header.version);
  StoreWord(block + offsetof(ItemHeader, value_bytes),
            header.value_bytes | uint64_t{header.flags} << 32);
  StoreWord(block + offsetof(ItemHeader, expiry_and_key), header.expiry_and_key);
}
inline void StoreKey(std::byte* block, std::string_view key) {
  StoreWords(block + sizeof(ItemHeader), key.data(), key.size());
}
// The value behind a key of `key_bytes`; call it after StoreKey, whose last word it shares.
void StoreValue(std::byte* block, size_t key_bytes, std::string_view value);
// Both; with one pass where they are neighbours, as in a request.
inline void StoreKeyAndValue(std::byte* block, std::string_view key, std::string_view value) {
  if (key.data() + key.size() == value.data()) {
    std::byte* to = block + sizeof(ItemHeader);
    const char* from = key.data();
    size_t left = key.size() + value.size();
    for (; left >= 16; left -= 16, to += 16, from += 16) {
      uint64_t words[2];
      std::memcpy(words, from, sizeof(words));
      StoreWord(to, words[0]);
      StoreWord(to + 8, words[1]);
    }
    if (left > 0) StoreWords(to, from, left);
  } else {
    StoreKey(block, key);
    StoreValue(block, key.size(), value);
  }
}

// The live commit word for what is in the block: LiveCommitWord (item.h), compiled in. REQUIRES:
// nobody writes into it any more.
inline uint64_t LiveCommitOf(const std::byte* block, size_t item_bytes, uint64_t incarnation,
                             uint64_t offset) {
  constexpr size_t kCommitBytes = sizeof(ItemHeader::commit);
  return kCommitLive |
         Xxh3Inline(block + kCommitBytes, item_bytes - kCommitBytes, ItemSeed(incarnation, offset));
}

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_ITEM_WRITER_H_
