#ifndef GANNET_COMMON_LAYOUT_LARGE_PROOF_H_
#define GANNET_COMMON_LAYOUT_LARGE_PROOF_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "common/layout/item_proof.h"

namespace gannet {

// How a large item's header is sealed, and how a copy of it proves itself. The header says nothing
// of the value's bytes: a reader believes them if the commit word was the same before and after it
// READ them.

// Header and longest key, which is what a reader READs first. Every block of a large item is
// longer.
inline constexpr uint32_t kLargeHeadBytes = AlignUp(sizeof(LargeItemHeader) + kKeyBytesMax, 8);

inline LargeItemHeader LoadLargeItemHeader(const std::byte* item) {
  return {LoadItemHeader(item), ItemField<uint64_t>(item, offsetof(LargeItemHeader, placing))};
}

// Returns the live commit word of a large item with this header.
inline uint64_t LiveCommitWordOf(const LargeItemHeader& header, ItemSeal seal) {
  constexpr size_t kCommitBytes = sizeof(ItemHeader::commit);
  std::byte bytes[sizeof(header)];
  std::memcpy(bytes, &header, sizeof(header));
  return seal.CommitWordOf(Xxh3Unseeded(bytes + kCommitBytes, sizeof(header) - kCommitBytes));
}

// Returns what a copy of a large item's first kLargeHeadBytes is. Fills in `header` for kThisKey.
// `hash` is the key's hash.
inline ItemProof ProveLargeItem(std::span<const std::byte, kLargeHeadBytes> copy,
                                const ItemPlace& place, std::string_view key, KeyHash hash,
                                LargeItemHeader* header) {
  *header = LoadLargeItemHeader(copy.data());
  const uint32_t key_bytes = header->item.key_bytes();
  if ((header->item.commit & kCommitLive) == 0) return ItemProof::kDead;
  if (key_bytes > kKeyBytesMax || header->item.value_bytes > kValueBytesMax ||
      !IsLarge(key_bytes, header->item.value_bytes)) {
    return ItemProof::kTorn;
  }
  const std::string_view copied(reinterpret_cast<const char*>(copy.data()) + sizeof(*header),
                                key_bytes);
  // The seal of another key uses the hash of the copy's own key bytes, as in ProveOtherItem.
  const bool this_key = copied == key;
  const ItemSeal seal(this_key ? hash : KeyHash::Of(copied, place.hash_seed), place);
  if (LiveCommitWordOf(*header, seal) != header->item.commit) return ItemProof::kTorn;
  return this_key ? ItemProof::kThisKey : ItemProof::kOtherKey;
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_LARGE_PROOF_H_
