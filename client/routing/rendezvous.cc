#include "client/routing/rendezvous.h"

#include "common/base/hash.h"

namespace gannet {

Rendezvous::Rendezvous(const std::vector<std::string>& names) {
  name_hashes_.reserve(names.size());
  for (const std::string& name : names) {
    name_hashes_.push_back(Xxh3(name.data(), name.size(), 0));
  }
}

uint32_t Rendezvous::HighestWeight(std::string_view key) const {
  const uint64_t key_hash = Xxh3(key.data(), key.size(), 0);
  uint32_t best = 0;
  uint64_t best_weight = Mix64(key_hash ^ name_hashes_[0]);
  for (uint32_t i = 1; i < name_hashes_.size(); ++i) {
    const uint64_t weight = Mix64(key_hash ^ name_hashes_[i]);
    if (weight > best_weight) {
      best = i;
      best_weight = weight;
    }
  }
  return best;
}

}  // namespace gannet
