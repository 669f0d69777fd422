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

// How an item is sealed, and how a copy of it proves itself. docs/consistency.md says why that is
// enough. These functions are inlined, as every GET and PUT calls them once.

// An item's place, for its proof.
struct ItemPlace {
  uint64_t incarnation;  // of the server's run
  uint64_t hash_seed;    // for KeyHash
  uint64_t offset;       // from the region's base
};

// The part of a live commit word that is not the checksum: the key's hash, the place, and the
// server run.
class ItemSeal {
 public:
  ItemSeal() = default;
  ItemSeal(KeyHash hash, uint64_t incarnation, uint64_t offset)
      : word_(hash.value() ^ incarnation ^ offset) {}
  ItemSeal(KeyHash hash, const ItemPlace& place)
      : ItemSeal(hash, place.incarnation, place.offset) {}

  // Returns the live commit word for an unseeded checksum of header and value.
  uint64_t CommitWordOf(uint64_t checksum) const { return kCommitLive | (checksum ^ word_); }

 private:
  uint64_t word_ = 0;
};

// Returns the live commit word of the item at `item`: its header (without the commit word) and
// value must be there. The checksum has no seed because that costs less (hash.h). Checksum is
// Xxh3Unseeded, or Xxh3UnseededInline where every instruction counts.
template <auto Checksum = Xxh3Unseeded>
[[gnu::always_inline]] inline uint64_t LiveCommitWord(const std::byte* item, uint32_t value_bytes,
                                                      ItemSeal seal) {
  constexpr size_t kCommitBytes = sizeof(ItemHeader::commit);
  return seal.CommitWordOf(
      Checksum(item + kCommitBytes, sizeof(ItemHeader) - kCommitBytes + size_t{value_bytes}));
}

// Returns the live commit word of the same item at another offset. Offsets are too small to change
// the live bit.
constexpr uint64_t Resealed(uint64_t live_commit, uint64_t old_offset, uint64_t new_offset) {
  return live_commit ^ old_offset ^ new_offset;
}

// Returns the field at `offset` of an item's header.
template <class Field>
Field ItemField(const std::byte* item, size_t offset) {
  Field field;
  std::memcpy(&field, item + offset, sizeof(field));
  return field;
}

// Loads field by field, so that a caller who needs only some fields has these in registers.
inline ItemHeader LoadItemHeader(const std::byte* item) {
  ItemHeader header;
  header.commit = ItemField<uint64_t>(item, offsetof(ItemHeader, commit));
  header.version = ItemField<uint64_t>(item, offsetof(ItemHeader, version));
  header.value_bytes = ItemField<uint32_t>(item, offsetof(ItemHeader, value_bytes));
  header.flags = ItemField<uint32_t>(item, offsetof(ItemHeader, flags));
  header.expiry_and_key = ItemField<uint64_t>(item, offsetof(ItemHeader, expiry_and_key));
  return header;
}

// Returns a view of an item's copy. REQUIRES: the item's lengths are within the copy.
inline ItemView ViewOfItem(const std::byte* item) {
  ItemView view;
  view.header = LoadItemHeader(item);
  const char* value = reinterpret_cast<const char*>(item) + sizeof(ItemHeader);
  view.value = {value, view.header.value_bytes};
  view.key = {value + view.header.value_bytes, view.header.key_bytes()};
  return view;
}

// Returns whether a private copy of what was READ is `key`'s item, live and whole. `seal` is that
// of the key and the place. Trusts a length only after checking it against the copy's size.
template <auto Checksum = Xxh3Unseeded>
[[gnu::always_inline]] inline bool IsItemOf(std::span<const std::byte> copy, ItemSeal seal,
                                            std::string_view key) {
  const std::byte* item = copy.data();
  if (copy.size() < sizeof(ItemHeader)) return false;
  const auto key_bytes = ItemField<uint16_t>(item, offsetof(ItemHeader, expiry_and_key));
  const auto value_bytes = ItemField<uint32_t>(item, offsetof(ItemHeader, value_bytes));
  if (key_bytes != key.size() || SealedItemBytes(key_bytes, value_bytes) > copy.size())
    return false;
  if (LiveCommitWord<Checksum>(item, value_bytes, seal) !=
      ItemField<uint64_t>(item, offsetof(ItemHeader, commit))) {
    return false;
  }
  if (!SameBytes(item + sizeof(ItemHeader) + value_bytes, key.data(), key_bytes)) return false;
  return true;
}

// Returns why IsItemOf rejected the copy; never kThisKey. Fills in `view` for kOtherKey.
ItemProof ProveOtherItem(std::span<const std::byte> copy, const ItemPlace& place, ItemView* view);

// Does both: IsItemOf, and ProveOtherItem if that fails. `hash` is the key's hash.
inline ItemProof ProveItem(std::span<const std::byte> copy, const ItemPlace& place,
                           std::string_view key, KeyHash hash, ItemView* view) {
  if (!IsItemOf(copy, ItemSeal(hash, place), key)) [[unlikely]]
    return ProveOtherItem(copy, place, view);
  *view = ViewOfItem(copy.data());
  return ItemProof::kThisKey;
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_ITEM_PROOF_H_
