#include "client/routing/rendezvous.h"

#include "common/base/hash.h"

namespace gannet {

Rendezvous::Rendezvous(const std::vector<std::string>& endpoints) {
  endpoint_hashes_.reserve(endpoints.size());
  for (const std::string& endpoint : endpoints) {
    endpoint_hashes_.push_back(Xxh3(endpoint.data(), endpoint.size(), 0));
  }
}

uint32_t Rendezvous::HighestWeight(std::string_view key) const {
  const uint64_t key_hash = Xxh3(key.data(), key.size(), 0);
  uint32_t best = 0;
  uint64_t best_weight = Mix64(key_hash ^ endpoint_hashes_[0]);
  for (uint32_t i = 1; i < endpoint_hashes_.size(); ++i) {
    const uint64_t weight = Mix64(key_hash ^ endpoint_hashes_[i]);
    if (weight > best_weight) {
      best = i;
      best_weight = weight;
    }
  }
  return best;
}

}  // namespace gannet
