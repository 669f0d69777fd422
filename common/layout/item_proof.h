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
  return CommitWordOf(checksum, hash, place);
}

// The field of an item's header that lies at `offset` in it.
template <class Field>
Field ItemField(const std::byte* item, size_t offset) {
  Field field;
  std::memcpy(&field, item + offset, sizeof(field));
  return field;
}

// Field by field, so that a caller who needs only some of them has these in registers.
inline ItemHeader LoadItemHeader(const std::byte* item) {
  ItemHeader header;
  header.commit = ItemField<uint64_t>(item, offsetof(ItemHeader, commit));
  header.version = ItemField<uint64_t>(item, offsetof(ItemHeader, version));
  header.value_bytes = ItemField<uint32_t>(item, offsetof(ItemHeader, value_bytes));
  header.flags = ItemField<uint32_t>(item, offsetof(ItemHeader, flags));
  header.expiry_and_key = ItemField<uint64_t>(item, offsetof(ItemHeader, expiry_and_key));
  return header;
}

// Whether a private copy of what was READ at `place` is `key`'s item, live and whole, and then
// fills `view`. `hash` is the key's. Never believes a length before it is bounded by the copy. The
// header is taken from the copy after the checksum's call, which would not leave it in registers.
[[gnu::always_inline]] inline bool IsItemOf(std::span<const std::byte> copy, const ItemPlace& place,
                                            std::string_view key, KeyHash hash, ItemView* view) {
  const std::byte* item = copy.data();
  if (copy.size() < sizeof(ItemHeader)) return false;
  const auto key_bytes = ItemField<uint16_t>(item, offsetof(ItemHeader, expiry_and_key));
  const auto value_bytes = ItemField<uint32_t>(item, offsetof(ItemHeader, value_bytes));
  if (key_bytes != key.size() || ItemBytes(key.size(), value_bytes) > copy.size()) return false;
  if (LiveCommitWord(item, value_bytes, hash, place) !=
      ItemField<uint64_t>(item, offsetof(ItemHeader, commit))) {
    return false;
  }
  const char* value = reinterpret_cast<const char*>(item) + sizeof(ItemHeader);
  view->header = LoadItemHeader(item);
  view->value = {value, view->header.value_bytes};
  view->key = {value + view->header.value_bytes, key.size()};
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
