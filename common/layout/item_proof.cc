#include "common/layout/item_proof.h"

namespace gannet {

ItemProof ProveOtherItem(std::span<const std::byte> copy, const ItemPlace& place, ItemView* view) {
  if (copy.size() < sizeof(ItemHeader)) return ItemProof::kTorn;
  const ItemHeader header = LoadItemHeader(copy.data());
  if ((header.commit & kCommitLive) == 0) return ItemProof::kDead;
  if (SealedItemBytes(header.key_bytes(), header.value_bytes) > copy.size())
    return ItemProof::kTorn;
  *view = ViewOfItem(copy.data());
  // The seal uses the hash of the copy's own key bytes. If they are torn, their hash is another
  // one, and the commit word does not match.
  const ItemSeal seal(KeyHash::Of(view->key, place.hash_seed), place);
  const bool whole = LiveCommitWord(copy.data(), header.value_bytes, seal) == header.commit;
  return whole ? ItemProof::kOtherKey : ItemProof::kTorn;
}

}  // namespace gannet
