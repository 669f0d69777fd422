#include "client/engine/key_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/test_seed.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr bool kWrite = true, kRead = false;

class KeyOrderTest : public ::testing::Test {
 protected:
  // What may start, and whether it stays.
  std::vector<std::pair<uint32_t, bool>> Leave(uint32_t op) {
    std::vector<std::pair<uint32_t, bool>> started;
    order_.Leave(op, [&](uint32_t next, bool stays) { started.emplace_back(next, stays); });
    return started;
  }

  KeyOrder order_{16};
};

TEST_F(KeyOrderTest, WhatMeetsNoWriteStarts) {
  EXPECT_TRUE(order_.Enter(0, 7, kRead));
  EXPECT_TRUE(order_.empty()) << "reads are not kept";
  EXPECT_TRUE(order_.Enter(1, 7, kWrite));
  EXPECT_FALSE(order_.empty());
  EXPECT_TRUE(order_.Enter(2, 8, kWrite)) << "another key";
  EXPECT_TRUE(order_.Enter(3, 9, kRead));
  EXPECT_THAT(Leave(1), IsEmpty());
  EXPECT_THAT(Leave(2), IsEmpty());
  EXPECT_TRUE(order_.empty());
}

TEST_F(KeyOrderTest, WritesOfAKeyStartOneAfterTheOther) {
  EXPECT_TRUE(order_.Enter(5, 7, kWrite));
  EXPECT_FALSE(order_.Enter(3, 7, kWrite));
  EXPECT_FALSE(order_.Enter(4, 7, kWrite));
  EXPECT_THAT(Leave(5), ElementsAre(Pair(3, true)));
  EXPECT_THAT(Leave(3), ElementsAre(Pair(4, true)));
  EXPECT_THAT(Leave(4), IsEmpty());
  EXPECT_TRUE(order_.empty());
}

TEST_F(KeyOrderTest, ReadsStartTogetherAndNotAheadOfTheWriteBeforeThem) {
  EXPECT_TRUE(order_.Enter(0, 7, kWrite));
  for (const uint32_t read : {1u, 2u}) EXPECT_FALSE(order_.Enter(read, 7, kRead));
  EXPECT_FALSE(order_.Enter(3, 7, kWrite));
  EXPECT_FALSE(order_.Enter(4, 7, kRead));
  EXPECT_THAT(Leave(0), ElementsAre(Pair(1, false), Pair(2, false), Pair(3, true)));
  EXPECT_THAT(Leave(3), ElementsAre(Pair(4, false)));
  EXPECT_TRUE(order_.empty());
}

TEST_F(KeyOrderTest, WhoeverWaitsMayLeave) {
  EXPECT_TRUE(order_.Enter(0, 7, kWrite));
  for (uint32_t op = 1; op < 4; ++op) EXPECT_FALSE(order_.Enter(op, 7, op != 2));
  EXPECT_THAT(Leave(1), IsEmpty());
  EXPECT_THAT(Leave(3), IsEmpty());
  EXPECT_THAT(Leave(0), ElementsAre(Pair(2, false)));
  EXPECT_TRUE(order_.empty());
}

TEST_F(KeyOrderTest, WhatComesAfterKeysWereHashedAnewWaitsForWhatCameBefore) {
  EXPECT_TRUE(order_.Enter(0, 7, kWrite));
  EXPECT_FALSE(order_.Enter(1, 7, kRead));
  EXPECT_TRUE(order_.Enter(2, 8, kWrite));
  order_.Rehash([](uint32_t op) -> uint64_t { return op < 2 ? 8 : 7; });
  EXPECT_FALSE(order_.Enter(3, 8, kWrite));
  EXPECT_FALSE(order_.Enter(4, 7, kRead));
  EXPECT_THAT(Leave(0), ElementsAre(Pair(1, false), Pair(3, true)));
  EXPECT_THAT(Leave(3), IsEmpty());
  EXPECT_THAT(Leave(2), ElementsAre(Pair(4, false)));
  EXPECT_TRUE(order_.empty());
}

TEST_F(KeyOrderTest, KeysThatGetOneHashWaitForEachOther) {
  EXPECT_TRUE(order_.Enter(0, 7, kWrite));
  EXPECT_FALSE(order_.Enter(1, 7, kWrite));
  EXPECT_TRUE(order_.Enter(2, 8, kWrite));
  EXPECT_FALSE(order_.Enter(3, 8, kRead));
  order_.Rehash([](uint32_t) -> uint64_t { return 9; });
  std::vector<uint32_t> started;
  for (const uint32_t op : {0u, 1u, 2u}) {
    for (const auto& [next, stays] : Leave(op)) started.push_back(next);
  }
  EXPECT_THAT(started, ::testing::IsSupersetOf({1u, 3u}));
  EXPECT_TRUE(order_.empty());
}

// Against a queue for each key. Hashes are made so that places collide and wrap.
TEST_F(KeyOrderTest, DoesAsQueuesDo) {
  std::mt19937_64 random(TestSeed());
  struct Entry {
    uint32_t op;
    bool write;
  };
  std::map<uint64_t, std::deque<Entry>> model;
  std::map<uint32_t, uint64_t> key_of;  // of those in a chain
  for (int step = 0; step < 200'000; ++step) {
    const uint32_t op = static_cast<uint32_t>(random() % 16);
    if (const auto it = key_of.find(op); it != key_of.end()) {
      std::deque<Entry>& queue = model[it->second];
      std::vector<std::pair<uint32_t, bool>> expected;
      const bool first = queue.front().op == op;
      std::erase_if(queue, [&](const Entry& entry) { return entry.op == op; });
      while (first && !queue.empty() && !queue.front().write) {
        expected.emplace_back(queue.front().op, false);
        queue.pop_front();
      }
      if (first && !queue.empty()) expected.emplace_back(queue.front().op, true);
      key_of.erase(it);
      ASSERT_EQ(Leave(op), expected) << "step " << step;
      for (const auto& [next, stays] : expected) {
        if (!stays) key_of.erase(next);
      }
    } else {
      const uint64_t key = (30 + random() % 4) << 32 | random() % 3;
      const bool write = random() % 2 == 0;
      std::deque<Entry>& queue = model[key];
      const bool starts = queue.empty();
      ASSERT_EQ(order_.Enter(op, key, write), starts) << "step " << step;
      if (starts && !write) continue;
      queue.push_back({op, write});
      key_of[op] = key;
    }
    ASSERT_EQ(order_.empty(), key_of.empty());
  }
}

}  // namespace
}  // namespace gannet
