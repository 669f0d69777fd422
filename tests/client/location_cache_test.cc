#include "client/location_cache/location_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <random>
#include <unordered_map>
#include <vector>

namespace gannet {
namespace {

KeyHash HashOf(uint64_t key) { return KeyHash(Mix64(key * 2 + 12345)); }
Slot SlotOf(uint64_t key) { return Slot::Of(HashOf(key).Tag(), 5, (key + 1) * 16); }

TEST(LocationCacheTest, FindsWhatItRemembers) {
  LocationCache cache(1 << 14);
  EXPECT_TRUE(cache.Find(HashOf(1)).empty());
  cache.Remember(HashOf(1), SlotOf(1));
  EXPECT_EQ(cache.Find(HashOf(1)), SlotOf(1));
  EXPECT_TRUE(cache.Find(HashOf(2)).empty());
}

TEST(LocationCacheTest, TakesANewLocationOfAKnownKey) {
  LocationCache cache(1 << 14);
  cache.Remember(HashOf(1), SlotOf(1));
  const Slot moved = Slot::Of(HashOf(1).Tag(), 6, 4096);
  cache.Remember(HashOf(1), moved);
  EXPECT_EQ(cache.Find(HashOf(1)), moved);
}

TEST(LocationCacheTest, ForgetsOnlyTheStaleLocation) {
  LocationCache cache(1 << 14);
  const Slot moved = Slot::Of(HashOf(1).Tag(), 6, 4096);
  cache.Remember(HashOf(1), moved);
  cache.Forget(HashOf(1), SlotOf(1));
  EXPECT_EQ(cache.Find(HashOf(1)), moved);
  cache.Forget(HashOf(1), moved);
  EXPECT_TRUE(cache.Find(HashOf(1)).empty());
}

TEST(LocationCacheTest, ForgetsADeletedKeyAndAnEarlierServerRun) {
  LocationCache cache(1 << 14);
  cache.Remember(HashOf(1), SlotOf(1));
  cache.Remember(HashOf(2), SlotOf(2));
  cache.Forget(HashOf(1));
  EXPECT_TRUE(cache.Find(HashOf(1)).empty());
  EXPECT_EQ(cache.Find(HashOf(2)), SlotOf(2));
  cache.Clear();
  EXPECT_TRUE(cache.Find(HashOf(2)).empty());
}

TEST(LocationCacheTest, OffRemembersNothing) {
  LocationCache cache(0);
  cache.Remember(HashOf(1), SlotOf(1));
  EXPECT_TRUE(cache.Find(HashOf(1)).empty());
  cache.Forget(HashOf(1));
  cache.Clear();
  EXPECT_EQ(cache.capacity(), 0u);
}

TEST(LocationCacheTest, IsBoundedBy16BytesAnEntry) {
  constexpr uint64_t kBytes = 1 << 16;
  LocationCache cache(kBytes);
  EXPECT_EQ(cache.capacity() * LocationCache::kEntryBytes, kBytes);
  uint64_t found = 0;
  for (uint64_t key = 0; key < 100'000; ++key) cache.Remember(HashOf(key), SlotOf(key));
  for (uint64_t key = 0; key < 100'000; ++key) found += !cache.Find(HashOf(key)).empty();
  EXPECT_LE(found, cache.capacity());
  EXPECT_GT(found, cache.capacity() / 2);
}

TEST(LocationCacheTest, AScanOfColdKeysDoesNotWashOutHotOnes) {
  LocationCache cache(1 << 14);  // 1,024 entries
  for (int round = 0; round < 20; ++round) {
    for (uint64_t key = 0; key < 400; ++key) {
      if (cache.Find(HashOf(key)).empty()) cache.Remember(HashOf(key), SlotOf(key));
    }
  }
  for (uint64_t key = 1'000; key < 11'000; ++key) {
    if (cache.Find(HashOf(key)).empty()) cache.Remember(HashOf(key), SlotOf(key));
  }
  uint64_t kept = 0;
  for (uint64_t key = 0; key < 400; ++key) kept += !cache.Find(HashOf(key)).empty();
  EXPECT_GE(kept, 390u);
}

class Lru {
 public:
  explicit Lru(size_t capacity) : capacity_(capacity) {}
  bool Use(uint64_t key) {
    auto it = where_.find(key);
    if (it != where_.end()) {
      order_.splice(order_.begin(), order_, it->second);
      return true;
    }
    if (order_.size() == capacity_) {
      where_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(key);
    where_[key] = order_.begin();
    return false;
  }

 private:
  size_t capacity_;
  std::list<uint64_t> order_;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> where_;
};

// Zipf 0.99 over 1 M keys, 1 % of them cached: between LRU and a perfect LFU, much nearer the
// latter.
TEST(LocationCacheTest, BeatsLruOnZipf) {
  constexpr uint64_t kKeys = 1'000'000, kEntries = kKeys / 100;
  constexpr uint64_t kWarmUp = 2'000'000, kMeasured = 2'000'000;
  std::vector<double> cumulated(kKeys);
  double sum = 0;
  for (uint64_t i = 0; i < kKeys; ++i) {
    sum += std::pow(static_cast<double>(i + 1), -0.99);
    cumulated[i] = sum;
  }
  std::mt19937_64 random(7);
  LocationCache cache(kEntries * LocationCache::kEntryBytes);
  Lru lru(kEntries);
  uint64_t hits = 0, lru_hits = 0, perfect_hits = 0;
  for (uint64_t i = 0; i < kWarmUp + kMeasured; ++i) {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53 * sum;
    const auto key = static_cast<uint64_t>(std::lower_bound(cumulated.begin(), cumulated.end(), u) -
                                           cumulated.begin());
    const Slot slot = cache.Find(HashOf(key));
    if (slot.empty()) cache.Remember(HashOf(key), SlotOf(key));
    const bool lru_hit = lru.Use(key);
    if (i < kWarmUp) continue;
    hits += slot == SlotOf(key);
    lru_hits += lru_hit;
    perfect_hits += key < kEntries;
  }
  const auto reads_per_get = [&](uint64_t h) { return 2 - static_cast<double>(h) / kMeasured; };
  printf("READs a GET: %.3f; LRU %.3f; perfect LFU %.3f\n", reads_per_get(hits),
         reads_per_get(lru_hits), reads_per_get(perfect_hits));
  EXPECT_LT(reads_per_get(hits), reads_per_get(perfect_hits) + 0.04);
  EXPECT_LT(reads_per_get(hits), reads_per_get(lru_hits) - 0.05);
}

}  // namespace
}  // namespace gannet
