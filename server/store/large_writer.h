#ifndef GANNET_SERVER_STORE_LARGE_WRITER_H_
#define GANNET_SERVER_STORE_LARGE_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/layout/large_proof.h"
#include "server/store/item_writer.h"

namespace gannet {

// Functions that write large items (common/layout/item.h). Their commit word does not cover the
// value, so the order of stores counts for the value too: no reader may see a word of it before the
// block is dead, and the item must not be live before the value is complete.

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

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_LARGE_WRITER_H_
