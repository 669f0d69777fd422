#include "client/tables/location_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <unordered_map>
#include <utility>

#include "tests/client/tables/zipf_gets.h"

namespace gannet {
namespace {

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
  cache.RememberWritten(HashOf(1), SlotOf(1));
  EXPECT_TRUE(cache.Find(HashOf(1)).empty());
  cache.Prefetch(HashOf(1));
  cache.Forget(HashOf(1));
  cache.Clear();
}

TEST(LocationCacheTest, IsBoundedBy16BytesAnEntry) {
  constexpr uint64_t kEntries = 4096;
  LocationCache cache(kEntries * LocationCache::kEntryBytes);
  uint64_t found = 0;
  for (uint64_t key = 0; key < 100'000; ++key) cache.Remember(HashOf(key), SlotOf(key));
  for (uint64_t key = 0; key < 100'000; ++key) found += !cache.Find(HashOf(key)).empty();
  EXPECT_LE(found, kEntries);
  EXPECT_GT(found, kEntries / 2);
}

// Asks for the keys below `hot` again and again, as the engine does.
void AskForAll(LocationCache& cache, uint64_t hot, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (uint64_t key = 0; key < hot; ++key) {
      if (cache.Find(HashOf(key)).empty()) cache.Remember(HashOf(key), SlotOf(key));
    }
  }
}
uint64_t Kept(LocationCache& cache, uint64_t hot) {
  uint64_t kept = 0;
  for (uint64_t key = 0; key < hot; ++key) kept += cache.Find(HashOf(key)) == SlotOf(key);
  return kept;
}

TEST(LocationCacheTest, AScanOfColdKeysDoesNotWashOutHotOnes) {
  LocationCache cache(1 << 14);  // 1,024 entries
  AskForAll(cache, 400, 20);
  for (uint64_t key = 1'000; key < 11'000; ++key) {
    if (cache.Find(HashOf(key)).empty()) cache.Remember(HashOf(key), SlotOf(key));
  }
  EXPECT_GE(Kept(cache, 400), 390u);
}

TEST(LocationCacheTest, FindsAKeyJustWrittenWhateverElseIsPopular) {
  LocationCache cache(1 << 14);
  AskForAll(cache, 5'000, 20);
  for (uint64_t key = 10'000; key < 20'000; ++key) {
    cache.RememberWritten(HashOf(key), SlotOf(key));
    ASSERT_EQ(cache.Find(HashOf(key)), SlotOf(key)) << key;
  }
}

TEST(LocationCacheTest, WritesOfColdKeysCostASetOneEntry) {
  LocationCache cache(1 << 14);
  AskForAll(cache, 400, 20);
  for (uint64_t key = 1'000; key < 101'000; ++key) {
    cache.RememberWritten(HashOf(key), SlotOf(key));
  }
  EXPECT_GE(Kept(cache, 400), 370u);  // some of the 128 sets hold eight hot keys, or more
}

TEST(LocationCacheTest, KeysOfOneFingerprintAreToldApartByTheirTags) {
  LocationCache cache(128);  // one set
  const KeyHash a(0x1234500000000001), b(0x1234500000000002), c(0x1234500000100001);
  cache.Remember(a, Slot::Of(a.Tag(), 5, 16));
  cache.Remember(b, Slot::Of(b.Tag(), 5, 32));
  cache.Remember(c, Slot::Of(c.Tag(), 5, 48));  // the tag of a
  EXPECT_EQ(cache.Find(a).offset(), 16u);
  EXPECT_EQ(cache.Find(b).offset(), 32u);
  EXPECT_EQ(cache.Find(c).offset(), 48u);
  EXPECT_TRUE(cache.Find(KeyHash(0x1234500000000003)).empty());
}

TEST(LocationCacheTest, TagAndFingerprintZeroAreNotTakenForAFreeEntry) {
  LocationCache cache(128);
  const KeyHash zero(0x1234500000000000);
  EXPECT_TRUE(cache.Find(zero).empty());
  cache.Remember(zero, Slot::Of(0, 5, 16));
  EXPECT_EQ(cache.Find(zero).offset(), 16u);
  cache.Forget(zero);
  EXPECT_TRUE(cache.Find(zero).empty());
}

TEST(HugePageArrayTest, IsZeroedAlignedAndItsOwn) {
  for (size_t size : {1, 4096, (2 << 20) - 1, 2 << 20, (6 << 20) + 5}) {
    HugePageArray<char> array(size), other(size);
    const auto address = reinterpret_cast<uintptr_t>(array.get());
    EXPECT_EQ(address % (size >= 2 << 20 ? 2 << 20 : 4096), 0u) << size;
    EXPECT_EQ(std::count(array.get(), array.get() + size, 0), static_cast<ptrdiff_t>(size));
    std::fill_n(array.get(), size, 'x');
    EXPECT_EQ(other.get()[0], 0);
    EXPECT_EQ(other.get()[size - 1], 0);
    const HugePageArray<char> moved(std::move(array));
    EXPECT_EQ(moved.get()[size - 1], 'x');
  }
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

// Zipf 0.99 over 1 M keys, 1 % of them cached. The result lies between LRU and a perfect LFU, much
// nearer to LFU.
TEST(LocationCacheTest, BeatsLruOnZipf) {
  constexpr uint64_t kKeys = 1'000'000, kEntries = kKeys / 100;
  constexpr uint64_t kWarmUp = 2'000'000, kMeasured = 2'000'000;
  const Zipf zipf(kKeys);
  std::mt19937_64 random(7);
  LocationCache cache(kEntries * LocationCache::kEntryBytes);
  Lru lru(kEntries);
  uint64_t hits = 0, lru_hits = 0, perfect_hits = 0;
  for (uint64_t i = 0; i < kWarmUp + kMeasured; ++i) {
    const uint64_t key = zipf.Draw(random);
    const bool hit = Get(cache, key);
    const bool lru_hit = lru.Use(key);
    if (i < kWarmUp) continue;
    hits += hit;
    lru_hits += lru_hit;
    perfect_hits += key < kEntries;
  }
  const double reads = ReadsPerGet(hits, kMeasured), lru_reads = ReadsPerGet(lru_hits, kMeasured);
  const double perfect_reads = ReadsPerGet(perfect_hits, kMeasured);
  printf("READs a GET: %.3f; LRU %.3f; perfect LFU %.3f\n", reads, lru_reads, perfect_reads);
  EXPECT_LT(reads, perfect_reads + 0.04);
  EXPECT_LT(reads, lru_reads - 0.05);
}

// The newest of 1 M keys are the popular ones, every 20th operation writes a new key, and 6.5 % are
// cached.
TEST(LocationCacheTest, KnowsTheLatest) {
  constexpr uint64_t kKeys = 1'000'000, kOperations = 1'000'000;
  const Zipf zipf(kKeys);
  std::mt19937_64 random(8);
  LocationCache cache(1 << 20);
  uint64_t newest = kKeys, hits = 0, gets = 0;
  for (uint64_t i = 0; i < 2 * kOperations; ++i) {
    if (i % 20 == 0) {
      ++newest;
      cache.RememberWritten(HashOf(newest), SlotOf(newest));
      continue;
    }
    const bool hit = Get(cache, newest - zipf.Draw(random));
    if (i < kOperations) continue;
    hits += hit;
    ++gets;
  }
  printf("READs a GET: %.3f\n", ReadsPerGet(hits, gets));
  EXPECT_LT(ReadsPerGet(hits, gets), 1.23);
}

}  // namespace
}  // namespace gannet
