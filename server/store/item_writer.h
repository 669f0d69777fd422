#ifndef GANNET_SERVER_STORE_ITEM_WRITER_H_
#define GANNET_SERVER_STORE_ITEM_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/layout/item.h"

namespace gannet {

// How items get into blocks of the region, word by word, while clients may be reading them. A live
// commit word is only ever stored last, and content is only ever changed under a dead one, or under
// one whose checksum then fails.

// Items up to this many bytes are put together outside the region, and may be updated in place: the
// stores then take so little time that a reader seldom meets a half-written item.
inline constexpr size_t kSmallItemBytesMax = 1024;

// A small item in private memory.
class SmallItem {
 public:
  // REQUIRES: ItemBytes(key.size(), value.size()) <= kSmallItemBytesMax; header says those lengths.
  SmallItem(const ItemHeader& header, std::string_view key, std::string_view value);

  uint64_t LiveCommit(uint64_t incarnation, uint64_t offset) const;
  // Stores everything but the commit word.
  void StoreContent(std::byte* block) const;

 private:
  const size_t bytes_;
  std::byte copy_[kSmallItemBytesMax];
};

// Declares whatever is in a block dead. Nothing that this thread (or one that handed the block
// over) stored before is seen after it; content stored afterwards needs no such care, as no
// mixture of two contents passes the checksum.
void StoreDead(std::byte* block);
// The content of a dead item becomes live: nothing of it is seen later than the commit word.
void StoreLive(std::byte* block, uint64_t live_commit);

// An item of any size is written in two steps, its value before, between or after them by whoever
// brings it. REQUIRES: block is dead.
void StoreKey(std::byte* block, std::string_view key);
void StoreHeader(std::byte* block, const ItemHeader& header);
// The value behind a key of `key_bytes`; call it after StoreKey, whose last word it shares.
void StoreValue(std::byte* block, size_t key_bytes, std::string_view value);
// The live commit word for what is in the block. REQUIRES: nobody writes into it any more.
uint64_t LiveCommitOf(const std::byte* block, size_t item_bytes, uint64_t incarnation,
                      uint64_t offset);

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_ITEM_WRITER_H_
