#include "common/layout/item.h"

namespace gannet {

uint64_t LiveCommitWord(std::span<const std::byte> rest, uint64_t incarnation, uint64_t offset) {
  return kCommitLive | Xxh3(rest.data(), rest.size(), ItemSeed(incarnation, offset));
}

ItemProof ProveItem(std::span<const std::byte> copy, uint64_t incarnation, uint64_t offset,
                    std::string_view key, ItemView* view) {
  if (copy.size() < sizeof(ItemHeader)) return ItemProof::kTorn;
  ItemHeader& header = view->header;
  std::memcpy(&header, copy.data(), sizeof(header));
  if ((header.commit & kCommitLive) == 0) return ItemProof::kDead;
  const uint64_t body = copy.size() - sizeof(header);
  if (header.key_bytes() > body || header.value_bytes > body - header.key_bytes()) {
    return ItemProof::kTorn;
  }
  const uint64_t bytes = ItemBytes(header.key_bytes(), header.value_bytes);
  const auto rest = copy.subspan(sizeof(header.commit), bytes - sizeof(header.commit));
  if (LiveCommitWord(rest, incarnation, offset) != header.commit) return ItemProof::kTorn;
  const char* data = reinterpret_cast<const char*>(copy.data()) + sizeof(header);
  view->key = {data, header.key_bytes()};
  view->value = {data + header.key_bytes(), header.value_bytes};
  return view->key == key ? ItemProof::kThisKey : ItemProof::kOtherKey;
}

}  // namespace gannet
