#include "server/memory/store/popular_items.h"

#include <algorithm>
#include <utility>

#include "common/base/hash.h"

namespace gannet {

bool PopularItems::WasTold(uint64_t offset) {
  const uint64_t place = Mix64(offset) % kFilterBits;
  std::atomic<uint64_t>& word = filter_[place / 64];
  const uint64_t bit = uint64_t{1} << place % 64;
  const uint64_t bits = word.load(std::memory_order_relaxed);
  if ((bits & bit) != 0) return true;
  word.store(bits | bit, std::memory_order_relaxed);
  const size_t set = filter_set_.load(std::memory_order_relaxed) + 1;
  filter_set_.store(set % (kFilterBits / 2), std::memory_order_relaxed);
  if (set == kFilterBits / 2) {
    for (std::atomic<uint64_t>& it : filter_) it.store(0, std::memory_order_relaxed);
  }
  return false;
}

void PopularItems::Note(uint64_t offset, uint64_t version, uint64_t uses) {
  MutexLock lock(mutex_);
  if (uses_.size() >= kKeptPerChosen * chosen_max_ && !uses_.contains(offset)) ForgetSome();
  Uses& item = uses_[offset];
  if (item.version != version) item = {.version = version};
  item.all += uses;
  item.recent += uses;
}

// Half of them, so that it is seldom done.
void PopularItems::ForgetSome() {
  std::vector<uint64_t> recent;
  recent.reserve(uses_.size());
  for (const auto& [offset, item] : uses_) recent.push_back(item.recent);
  const auto middle = recent.begin() + static_cast<std::ptrdiff_t>(recent.size() / 2);
  std::ranges::nth_element(recent, middle);
  absl::erase_if(uses_, [most = *middle](const auto& it) { return it.second.recent <= most; });
}

std::vector<uint64_t> PopularItems::Choose() const {
  std::vector<std::pair<uint64_t, uint64_t>> popular;  // recent uses, offset
  {
    MutexLock lock(mutex_);
    for (const auto& [offset, item] : uses_) {
      if (item.all >= kUsesMin) popular.emplace_back(item.recent, offset);
    }
  }
  std::ranges::sort(popular, std::greater<>());
  if (popular.size() > chosen_max_) popular.resize(chosen_max_);
  std::vector<uint64_t> offsets;
  offsets.reserve(popular.size());
  for (const auto& [recent, offset] : popular) offsets.push_back(offset);
  return offsets;
}

bool PopularItems::AreOf(uint64_t offset, uint64_t version) const {
  MutexLock lock(mutex_);
  const auto it = uses_.find(offset);
  return it != uses_.end() && it->second.version == version;
}

void PopularItems::Cool() {
  MutexLock lock(mutex_);
  for (auto& [offset, item] : uses_) item.recent /= 2;
}

}  // namespace gannet
