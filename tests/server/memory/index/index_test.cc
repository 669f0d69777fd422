#include "server/memory/index/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "tests/server/memory/index/index_fixture.h"

namespace gannet {
namespace {

TEST(IndexTest, FindsWhatWasInserted) {
  TestIndex index(1000, 1);
  const uint64_t key = index.NewKey();
  EXPECT_FALSE(index.Find(key));
  ASSERT_TRUE(index.Insert(key));
  EXPECT_EQ(index.Find(key)->slot, index.SlotOf(key));
  EXPECT_TRUE(index.Remove(key));
  EXPECT_FALSE(index.Find(key));
  index.CheckAll(0);
}

TEST(IndexTest, TagsMayCollide) {
  TestIndex index(1000, 1);
  const uint64_t key = index.NewKey();
  ASSERT_TRUE(index.Insert(key));
  const Index::Lock lock(*index, index.Hash(key));
  EXPECT_FALSE(index->Find(lock, index.Hash(key), [](Slot) { return false; }));
}

TEST(IndexTest, ReplaceKeepsThePlace) {
  TestIndex index(1000, 1);
  const uint64_t key = index.NewKey();
  ASSERT_TRUE(index.Insert(key));
  const Index::Lock lock(*index, index.Hash(key));
  const auto before = *index.Find(lock, key);
  const Slot other = Slot::Of(index.Hash(key).Tag(), 9, 1 << 20);
  index->Replace(lock, before.place, other);
  const auto after = index->Find(lock, index.Hash(key), [&](Slot slot) { return slot == other; });
  ASSERT_TRUE(after);
  EXPECT_EQ(after->place.bucket, before.place.bucket);
  EXPECT_EQ(after->place.slot, before.place.slot);
}

// The index is so small that the ends of the table, the stash and refusals all take part.
TEST(IndexTest, RandomOperationsKeepEveryKeyInItsPlace) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestIndex index(50 + 40 * seed, seed);
    std::mt19937_64 random(seed);
    std::vector<uint64_t> keys;
    int refused = 0;
    for (int i = 0; i < 20'000; ++i) {
      const bool grow = (i / 2000) % 2 == 0 ? random() % 10 < 8 : random() % 10 < 3;
      if (grow) {
        const uint64_t key = index.NewKey();
        const uint64_t used = index->slots_used();
        if (index.Insert(key)) {
          keys.push_back(key);
        } else {
          ++refused;
          ASSERT_EQ(index->slots_used(), used);
        }
      } else if (!keys.empty()) {
        std::swap(keys[random() % keys.size()], keys.back());
        ASSERT_TRUE(index.Remove(keys.back()));
        ASSERT_FALSE(index.Find(keys.back()));
        keys.pop_back();
      }
      if (i % 1000 == 0) index.CheckAll(keys.size());
    }
    for (uint64_t key : keys) ASSERT_TRUE(index.Find(key));
    index.CheckAll(keys.size());
    EXPECT_GT(refused, 0);
    EXPECT_GT(index->displacements(), 0u);
  }
}

TEST(IndexTest, TheStashEmptiesWhenThereIsRoomAgain) {
  TestIndex index(10'000, 3);
  std::vector<uint64_t> keys;
  uint64_t key;
  while (index.Insert(key = index.NewKey())) keys.push_back(key);
  EXPECT_GT(index->stash_used(), 100u);
  std::shuffle(keys.begin(), keys.end(), std::mt19937_64(4));
  while (keys.size() > index->geometry().slots() / 2) {
    ASSERT_TRUE(index.Remove(keys.back()));
    keys.pop_back();
  }
  EXPECT_EQ(index->stash_used(), 0u);
  index.CheckAll(keys.size());
}

TEST(IndexTest, ListNamesTheKeysOfAHomeWhereverTheyAre) {
  TestIndex index(2000, 5);
  uint64_t n = 0;
  while (index.Insert(index.NewKey())) ++n;
  uint64_t listed = 0;
  const auto table = index->Hold();
  for (uint64_t home = 0; home < index->geometry().homes; ++home) {
    Index::Lock lock(*index, *table, home);
    Index::Found found[4 * kSlotsPerBucket];
    const size_t size = table->List(home, found);
    listed += size;
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(found[i].place.home, home);
      EXPECT_EQ(index.KeyHashAt(found[i].slot).Home(index->geometry().homes), home);
    }
  }
  EXPECT_EQ(listed, n);
}

// Threads work on their own keys, but share the index's ranges, windows and stash.
TEST(IndexTest, WritersOfManyThreadsKeepItRight) {
  constexpr int kThreads = 4;
  constexpr uint64_t kKeys = 12'000;
  TestIndex index(kThreads * kKeys * 100 / 93, 7);
  for (uint64_t i = 0; i < kThreads * kKeys; ++i) index.NewKey();
  auto work = [&](int id) {
    std::mt19937_64 random(id);
    std::vector<uint64_t> in, out;
    for (uint64_t i = 0; i < kKeys; ++i) out.push_back(id * kKeys + i);
    for (uint64_t i = 0; i < 5 * kKeys; ++i) {
      auto& from = !out.empty() && (in.empty() || random() % 10 < 8) ? out : in;
      std::swap(from[random() % from.size()], from.back());
      const uint64_t key = from.back();
      if (&from == &in) {
        ASSERT_TRUE(index.Remove(key));
        out.push_back(key);
      } else if (index.Insert(key)) {
        in.push_back(key);
      } else {
        continue;
      }
      from.pop_back();
    }
    while (!out.empty()) {
      ASSERT_TRUE(index.Insert(out.back()));
      out.pop_back();
    }
  };
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) threads.emplace_back(work, id);
  for (auto& thread : threads) thread.join();
  for (uint64_t key = 0; key < kThreads * kKeys; ++key) ASSERT_TRUE(index.Find(key));
  index.CheckAll(kThreads * kKeys);
  EXPECT_GT(index->stash_used(), 0u);
}

}  // namespace
}  // namespace gannet
