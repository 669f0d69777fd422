#ifndef GANNET_SERVER_MEMORY_STORE_LARGE_WRITER_H_
#define GANNET_SERVER_MEMORY_STORE_LARGE_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/layout/large_proof.h"
#include "server/memory/store/item_writer.h"

namespace gannet {

// Functions that write large items (common/layout/item.h), and those for items of either kind. A
// large item's commit word does not cover the value, so the order of stores counts for the value
// too: no reader may see a word of it before the block is dead, and the item must not be live
// before the value is complete.

// Marks a block as dead. Nobody sees what this thread stores there afterwards, or has the device
// write there, before this store: the fence orders it before later relaxed stores.
inline void StoreDeadFirst(std::byte* block) {
  StoreDead(block);
  std::atomic_thread_fence(std::memory_order_release);
}

// Stores header and key, and returns the live commit word. REQUIRES: the value's bytes are
// complete, or will be when the commit word is stored.
inline uint64_t StoreLargeHead(std::byte* block, const LargeItemHeader& header,
                               std::string_view key, ItemSeal seal) {
  StoreHeader(block, header.item);
  StoreWord(block + offsetof(LargeItemHeader, placing), header.placing);
  // The padding before the value takes the last word's zeroes.
  StoreWords(block + sizeof(header), key.data(), key.size());
  return LiveCommitWordOf(header, seal);
}

// The next two are for items of either kind. Store header and key around a value that is there, and
// return the live commit word. REQUIRES: as for StoreLargeHead.
inline uint64_t StoreAroundValue(std::byte* block, uint32_t size_class, const ItemHeader& header,
                                 std::string_view key, ItemSeal seal) {
  // A version names only one item, so it also names the first placing of that item.
  if (IsLargeClass(size_class)) return StoreLargeHead(block, {header, header.version}, key, seal);
  StoreHeader(block, header);
  StoreKey(block, header.value_bytes, key);
  return LiveCommitWord(block, header.value_bytes, seal);
}
// Stores the value, too: all that an item has, but its commit word.
inline uint64_t StoreContent(std::byte* block, uint32_t size_class, const ItemHeader& header,
                             std::string_view key, std::string_view value, ItemSeal seal) {
  StoreValueAt(block + ValueOffset(key.size(), value.size()), value);
  return StoreAroundValue(block, size_class, header, key, seal);
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_LARGE_WRITER_H_
