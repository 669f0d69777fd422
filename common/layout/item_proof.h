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

// All that a live commit word says beside the checksum: whose item it is, where, in which run.
class ItemSeal {
 public:
  ItemSeal() = default;
  ItemSeal(KeyHash hash, uint64_t incarnation, uint64_t offset)
      : word_(hash.value() ^ incarnation ^ offset) {}
  ItemSeal(KeyHash hash, const ItemPlace& place)
      : ItemSeal(hash, place.incarnation, place.offset) {}

  // The live commit word over the checksum of header and value, without a seed.
  uint64_t CommitWordOf(uint64_t checksum) const { return kCommitLive | (checksum ^ word_); }

 private:
  uint64_t word_ = 0;
};

// The live commit word of the item whose header (but for the commit word) and value lie at `item`.
// The checksum has no seed: that costs less (hash.h). Checksum: Xxh3Unseeded, or Xxh3UnseededInline
// where every instruction counts.
template <auto Checksum = Xxh3Unseeded>
[[gnu::always_inline]] inline uint64_t LiveCommitWord(const std::byte* item, uint32_t value_bytes,
                                                      ItemSeal seal) {
  constexpr size_t kCommitBytes = sizeof(ItemHeader::commit);
  return seal.CommitWordOf(
      Checksum(item + kCommitBytes, sizeof(ItemHeader) - kCommitBytes + size_t{value_bytes}));
}

// The live commit word of the same item at another offset. Offsets do not reach the live bit.
constexpr uint64_t Resealed(uint64_t live_commit, uint64_t old_offset, uint64_t new_offset) {
  return live_commit ^ old_offset ^ new_offset;
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

// What a copy holds whose lengths are bounded by it.
inline ItemView ViewOfItem(const std::byte* item) {
  ItemView view;
  view.header = LoadItemHeader(item);
  const char* value = reinterpret_cast<const char*>(item) + sizeof(ItemHeader);
  view.value = {value, view.header.value_bytes};
  view.key = {value + view.header.value_bytes, view.header.key_bytes()};
  return view;
}

// Whether a private copy of what was READ is `key`'s item, live and whole; `seal`: of the key and
// of the place. Never believes a length before it is bounded by the copy.
template <auto Checksum = Xxh3Unseeded>
[[gnu::always_inline]] inline bool IsItemOf(std::span<const std::byte> copy, ItemSeal seal,
                                            std::string_view key) {
  const std::byte* item = copy.data();
  if (copy.size() < sizeof(ItemHeader)) return false;
  const auto key_bytes = ItemField<uint16_t>(item, offsetof(ItemHeader, expiry_and_key));
  const auto value_bytes = ItemField<uint32_t>(item, offsetof(ItemHeader, value_bytes));
  if (key_bytes != key.size() || ItemBytes(key_bytes, value_bytes) > copy.size()) return false;
  if (LiveCommitWord<Checksum>(item, value_bytes, seal) !=
      ItemField<uint64_t>(item, offsetof(ItemHeader, commit))) {
    return false;
  }
  if (!SameBytes(item + sizeof(ItemHeader) + value_bytes, key.data(), key_bytes)) return false;
  return true;
}

// What a copy is for which IsItemOf said no: never kThisKey. `view` is filled for kOtherKey.
ItemProof ProveOtherItem(std::span<const std::byte> copy, const ItemPlace& place, ItemView* view);

// Both. `hash` is the key's.
inline ItemProof ProveItem(std::span<const std::byte> copy, const ItemPlace& place,
                           std::string_view key, KeyHash hash, ItemView* view) {
  if (!IsItemOf(copy, ItemSeal(hash, place), key)) [[unlikely]]
    return ProveOtherItem(copy, place, view);
  *view = ViewOfItem(copy.data());
  return ItemProof::kThisKey;
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_ITEM_PROOF_H_
