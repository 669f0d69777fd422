// An index that is replaced by a larger one while keys come and go.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/server/memory/index/index_fixture.h"

namespace gannet {
namespace {

// Inserts new keys until so many slots are in use.
std::vector<uint64_t> Fill(TestIndex& index, uint64_t n) {
  std::vector<uint64_t> keys;
  while (keys.size() < n) {
    const uint64_t key = index.NewKey();
    EXPECT_TRUE(index.Insert(key));
    keys.push_back(key);
  }
  return keys;
}

TEST(IndexGrowthTest, KeepsEveryKeyWhileOthersComeAndGo) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const uint64_t slots = 200 + 300 * seed;
    TestIndex index(slots, seed, slots * 5 / 4 + 300 * (seed % 3));
    std::mt19937_64 random(seed);
    std::vector<uint64_t> keys = Fill(index, slots * 85 / 100);
    index.BeginGrowth();
    bool done = false;
    while (!done) {
      if (random() % 2 == 0) {
        keys.push_back(index.NewKey());
        ASSERT_TRUE(index.Insert(keys.back()));
      } else {
        std::swap(keys[random() % keys.size()], keys.back());
        ASSERT_TRUE(index.Remove(keys.back()));
        keys.pop_back();
      }
      for (int i = 0; i < 3; ++i) {
        const uint64_t key = keys[random() % keys.size()];
        const Index::Lock lock(*index, index.Hash(key));
        ASSERT_TRUE(index.Find(lock, key));
      }
      ASSERT_EQ(index->slots_used(), keys.size());
      done = index->MigrateSome(random() % 4);
    }
    index->EndMigration();
    EXPECT_FALSE(index->growing());
    EXPECT_GT(index->geometry().slots(), slots);
    for (const uint64_t key : keys) ASSERT_TRUE(index.Find(key));
    index.CheckAll(keys.size());
  }
}

TEST(IndexGrowthTest, ALockMigratesTheHomeOfItsKeyAndLeavesItsOldSlots) {
  TestIndex index(1000, 3, 2000);
  const IndexGeometry old = index->geometry();
  const std::vector<uint64_t> keys = Fill(index, 800);
  index.BeginGrowth();
  const uint64_t key = keys[17];
  const uint64_t home = index.Hash(key).Home(old.homes);
  const Bucket before = index.BucketAt(old, home);
  ASSERT_FALSE(BucketMeta(before.meta).migrated());
  ASSERT_TRUE(index.Remove(key));
  const Bucket after = index.BucketAt(old, home);
  EXPECT_TRUE(BucketMeta(after.meta).migrated());
  EXPECT_TRUE(BucketValid(after, BucketSeed(TestIndex::kIncarnation, old.generation, home)));
  EXPECT_TRUE(std::equal(std::begin(before.slots), std::end(before.slots), after.slots));
  EXPECT_FALSE(index.Find(key));
}

// The new table is no larger than the old one, and new keys fill it before all homes are migrated.
TEST(IndexGrowthTest, KeysOfAHomeThatFindsNoRoomStayInTheOldTable) {
  TestIndex index(1000, 4, 1000);
  std::vector<uint64_t> keys = Fill(index, 900);
  index.BeginGrowth();
  uint64_t refused = 0;
  while (refused < 500) {
    const uint64_t key = index.NewKey();
    if (index.Insert(key)) {
      keys.push_back(key);
    } else {
      ++refused;
    }
  }
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(index->MigrateSome(index->geometry().homes));
  IndexTable* old = nullptr;
  for (const uint64_t key : keys) {
    const Index::Lock lock(*index, index.Hash(key));
    const auto found = index.Find(lock, key);
    ASSERT_TRUE(found);
    if (!index->IsCurrent(*found->place.table)) old = found->place.table;
  }
  // Regression: items of migrated homes were listed in the old table too, and freed twice.
  ASSERT_NE(old, nullptr);
  uint64_t migrated = 0;
  for (uint64_t home = 0; home < old->geometry().homes; ++home) {
    const Index::Lock lock(*index, *old, home);
    if (!old->migrated(home)) continue;
    ++migrated;
    std::array<Index::Found, 3 * kSlotsPerBucket> found;
    EXPECT_EQ(old->List(home, found), 0u) << home;
  }
  EXPECT_GT(migrated, 0u);
  while (keys.size() > 500) {
    ASSERT_TRUE(index.Remove(keys.back()));
    keys.pop_back();
  }
  ASSERT_TRUE(index->MigrateSome(index->geometry().homes));
  index->EndMigration();
  for (const uint64_t key : keys) ASSERT_TRUE(index.Find(key));
  index.CheckAll(keys.size());
}

// Threads work on their own keys, but share windows, ranges and homes to be migrated.
TEST(IndexGrowthTest, WritersOfManyThreadsGoOnMeanwhile) {
  constexpr int kThreads = 3;
  constexpr uint64_t kKeys = 4'000;
  TestIndex index(kThreads * kKeys, 7, 2 * kThreads * kKeys);
  for (uint64_t i = 0; i < kThreads * kKeys; ++i) index.NewKey();
  std::atomic<int> working{kThreads};
  auto work = [&](uint64_t id) {
    std::mt19937_64 random(id);
    std::vector<bool> in(kKeys);
    for (uint64_t i = 0; i < 5 * kKeys; ++i) {
      const uint64_t n = random() % kKeys;
      const uint64_t key = id * kKeys + n;
      ASSERT_TRUE(in[n] ? index.Remove(key) : index.Insert(key));
      in[n] = !in[n];
    }
    for (uint64_t n = 0; n < kKeys; ++n) {
      if (in[n]) continue;
      ASSERT_TRUE(index.Insert(id * kKeys + n));
    }
    --working;
  };
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) threads.emplace_back(work, id);
  while (index->slots_used() < kKeys) std::this_thread::yield();
  index.BeginGrowth();
  while (!index->MigrateSome(1)) {
  }
  index->EndMigration();
  for (auto& thread : threads) thread.join();
  for (uint64_t key = 0; key < kThreads * kKeys; ++key) ASSERT_TRUE(index.Find(key));
  index.CheckAll(kThreads * kKeys);
}

}  // namespace
}  // namespace gannet
