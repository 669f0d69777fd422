#include "common/layout/item_proof.h"

namespace gannet {

ItemProof ProveOtherItem(std::span<const std::byte> copy, const ItemPlace& place, ItemView* view) {
  if (copy.size() < sizeof(ItemHeader)) return ItemProof::kTorn;
  ItemHeader& header = view->header;
  std::memcpy(&header, copy.data(), sizeof(header));
  if ((header.commit & kCommitLive) == 0) return ItemProof::kDead;
  if (ItemBytes(header.key_bytes(), header.value_bytes) > copy.size()) return ItemProof::kTorn;
  const char* value = reinterpret_cast<const char*>(copy.data()) + sizeof(header);
  view->value = {value, header.value_bytes};
  view->key = {value + header.value_bytes, header.key_bytes()};
  // The key is believed only with the rest: one that is torn has another hash.
  const KeyHash hash = KeyHash::Of(view->key, place.hash_seed);
  const bool whole = LiveCommitWord(copy.data(), header.value_bytes, hash, place) == header.commit;
  return whole ? ItemProof::kOtherKey : ItemProof::kTorn;
}

}  // namespace gannet
