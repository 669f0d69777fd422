#include "client/session/registered_pool.h"

#include <utility>

#include "common/base/data_path_checks.h"

namespace gannet {

LentBuffer RegisteredPool::Take(uint32_t bytes) {
  GANNET_CHECK_DATA_PATH(bytes <= kValueBytesMax, "no value is so long");
  for (uint8_t t = 0; t < kTiers.size(); ++t) {
    if (bytes > kTiers[t].bytes || (!tiers_[t].made && !MakeTier(t))) continue;
    Tier& tier = tiers_[t];
    if (tier.free.empty()) return {};
    std::byte* data = tier.free.back();
    tier.free.pop_back();
    return {data, kTiers[t].bytes, &tier.memory->keys(), t};
  }
  return {};
}

void RegisteredPool::Return(LentBuffer buffer) {
  if (buffer.data != nullptr) tiers_[buffer.tier].free.push_back(buffer.data);
}

uint32_t RegisteredPool::lent() const {
  uint32_t lent = 0;
  for (size_t t = 0; t < kTiers.size(); ++t) {
    if (tiers_[t].made) lent += kTiers[t].count - static_cast<uint32_t>(tiers_[t].free.size());
  }
  return lent;
}

bool RegisteredPool::MakeTier(uint8_t t) {
  const auto [bytes, count] = kTiers[t];
  auto memory = domains_->AllocateBuffers(uint64_t{bytes} * count, access_);
  if (!memory.ok()) {
    error_ = memory.status();
    return false;
  }
  Tier& tier = tiers_[t];
  tier.memory = *std::move(memory);
  tier.free.reserve(count);
  for (uint32_t i = count; i-- > 0;) tier.free.push_back(tier.memory->data() + uint64_t{i} * bytes);
  tier.made = true;
  return true;
}

}  // namespace gannet
