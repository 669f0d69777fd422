#ifndef GANNET_SERVER_STORE_STORE_UPDATE_H_
#define GANNET_SERVER_STORE_STORE_UPDATE_H_

#include "common/base/same_bytes.h"
#include "common/base/words.h"
#include "common/base/xxh3_inline.h"
#include "server/store/item_writer.h"
#include "server/store/store.h"
#include "server/store/store_find.h"

namespace gannet {

// Of the item's content only version, flags and value change. The old commit word stays until the
// new one: with any of the new content it fails.
template <class Flags>
[[gnu::always_inline]] inline bool Store::UpdateInPlace(std::string_view key,
                                                        std::string_view value, Flags&& flags,
                                                        Update* update) {
  if (ItemBytes(key.size(), value.size()) > kInPlaceBytesMax) [[unlikely]]
    return false;
  const KeyHash hash(Xxh3Inline(key.data(), key.size(), superblock_.hash_seed));  // KeyHash::Of
  const uint64_t home = hash.Home(index_.geometry().homes);
  const Index::BucketLock lock(index_, home);
  const Slot slot = index_.FirstAtHome(home, hash.Tag());
  if (slot.empty()) return false;
  std::byte* const block = Block(slot.offset());
  const uint32_t value_bytes = static_cast<uint32_t>(value.size());
  // The whole word is the length of the key when there is no expiry. An empty key has none.
  if (LoadWord(block + offsetof(ItemHeader, expiry_and_key)) != key.size() ||
      ValueBytes(block) != value_bytes ||
      !SameBytes(KeyAt(block, value_bytes), key.data(), key.size())) [[unlikely]] {
    return false;
  }
  const uint64_t version = NextVersion();
  StoreWord(block + offsetof(ItemHeader, version), version);
  StoreWord(block + offsetof(ItemHeader, value_bytes), value_bytes | uint64_t{flags()} << 32);
  StoreValue(block, value);
  StoreLive(block, LiveCommitWord(block, value_bytes, hash, PlaceOf(slot.offset())));
  *update = {version, slot.word()};
  return true;
}

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_STORE_UPDATE_H_
