#ifndef GANNET_COMMON_LAYOUT_ITEM_PROOF_H_
#define GANNET_COMMON_LAYOUT_ITEM_PROOF_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "common/base/hash.h"
#include "common/base/same_bytes.h"
#include "common/layout/item.h"
#include "common/layout/key_hash.h"

namespace gannet {

// How an item is sealed and how a copy of it is believed: docs/consistency.md says why that is
// enough. Compiled in where it is used, as every GET and PUT does it once.

// Where an item lies, for its proof.
struct ItemPlace {
  uint64_t incarnation;  // of the server's run
  uint64_t hash_seed;    // of KeyHash
  uint64_t offset;       // from the region's base
};

// The live commit word over the checksum of header and value, without a seed.
inline uint64_t CommitWordOf(uint64_t checksum, KeyHash hash, const ItemPlace& place) {
  return kCommitLive | (checksum ^ hash.value() ^ place.incarnation ^ place.offset);
}

// The live commit word of the item whose header (but for the commit word) and value lie at `item`,
// and whose key has this hash. The checksum has no seed: that costs less (hash.h).
[[gnu::always_inline]] inline uint64_t LiveCommitWord(const std::byte* item, uint32_t value_bytes,
                                                      KeyHash hash, const ItemPlace& place) {
  constexpr size_t kCommitBytes = sizeof(ItemHeader::commit);
  const uint64_t checksum =
      Xxh3Unseeded(item + kCommitBytes, sizeof(ItemHeader) - kCommitBytes + size_t{value_bytes});
  return kCommitLive | (checksum ^ hash.value() ^ place.incarnation ^ place.offset);
}

// Field by field, so that a caller who needs only some of them has these in registers.
inline ItemHeader LoadItemHeader(const std::byte* item) {
  const auto load = [item]<class Field>(size_t offset, Field* field) {
    std::memcpy(field, item + offset, sizeof(*field));
  };
  ItemHeader header;
  load(offsetof(ItemHeader, commit), &header.commit);
  load(offsetof(ItemHeader, version), &header.version);
  load(offsetof(ItemHeader, value_bytes), &header.value_bytes);
  load(offsetof(ItemHeader, flags), &header.flags);
  load(offsetof(ItemHeader, expiry_and_key), &header.expiry_and_key);
  return header;
}

// Whether a private copy of what was READ at `place` is `key`'s item, live and whole, and then
// fills `view`. `hash` is the key's. Never believes a length before it is bounded by the copy.
[[gnu::always_inline]] inline bool IsItemOf(std::span<const std::byte> copy, const ItemPlace& place,
                                            std::string_view key, KeyHash hash, ItemView* view) {
  if (copy.size() < sizeof(ItemHeader)) return false;
  const ItemHeader header = LoadItemHeader(copy.data());
  if (header.key_bytes() != key.size() || ItemBytes(key.size(), header.value_bytes) > copy.size() ||
      LiveCommitWord(copy.data(), header.value_bytes, hash, place) != header.commit) {
    return false;
  }
  const char* value = reinterpret_cast<const char*>(copy.data()) + sizeof(header);
  view->header = header;
  view->value = {value, header.value_bytes};
  view->key = {value + header.value_bytes, key.size()};
  return SameBytes(view->key.data(), key.data(), key.size());
}

// What a copy is for which IsItemOf said no: never kThisKey. `view` is filled for kOtherKey.
ItemProof ProveOtherItem(std::span<const std::byte> copy, const ItemPlace& place, ItemView* view);

// Both.
inline ItemProof ProveItem(std::span<const std::byte> copy, const ItemPlace& place,
                           std::string_view key, KeyHash hash, ItemView* view) {
  if (IsItemOf(copy, place, key, hash, view)) [[likely]]
    return ItemProof::kThisKey;
  return ProveOtherItem(copy, place, view);
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_ITEM_PROOF_H_
