#include "client/engine/key_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "softverbs/tests/support/test_seed.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Kind = KeyOrder::Kind;
using enum KeyOrder::Kind;

class KeyOrderTest : public ::testing::Test {
 protected:
  // Returns the operations that may start, and whether each stays.
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

TEST_F(KeyOrderTest, TellsWhichKeysHaveWritesUnderWay) {
  KeyOrder order(16, /*never_empty=*/true);
  EXPECT_FALSE(order.empty());
  EXPECT_FALSE(order.HasWrites());
  EXPECT_TRUE(order.Enter(0, 7, kRead));
  EXPECT_FALSE(order.HasWrites());
  EXPECT_TRUE(order.Enter(1, 7, kWrite));
  EXPECT_TRUE(order.HasWrites());
  EXPECT_TRUE(order.HasWrite(7));
  EXPECT_FALSE(order.HasWrite(8));
  order.Leave(1, [](uint32_t, bool) {});
  EXPECT_FALSE(order.HasWrites());
  EXPECT_FALSE(order.HasWrite(7));
}

TEST_F(KeyOrderTest, WritesDoNotWaitForEachOther) {
  for (const uint32_t op : {5u, 3u, 4u}) EXPECT_TRUE(order_.Enter(op, 7, kWrite));
  EXPECT_THAT(Leave(3), IsEmpty());
  EXPECT_THAT(Leave(5), IsEmpty());
  EXPECT_THAT(Leave(4), IsEmpty());
  EXPECT_TRUE(order_.empty());
}

TEST_F(KeyOrderTest, WhatIsBehindASlowWriteWaitsForIt) {
  EXPECT_TRUE(order_.Enter(0, 7, kWrite));
  EXPECT_TRUE(order_.Enter(1, 7, kSlowWrite)) << "what is ahead is executed first";
  EXPECT_FALSE(order_.Enter(2, 7, kWrite));
  EXPECT_FALSE(order_.Enter(3, 7, kSlowWrite));
  EXPECT_FALSE(order_.Enter(4, 7, kWrite));
  EXPECT_THAT(Leave(0), IsEmpty());
  EXPECT_THAT(Leave(1), ElementsAre(Pair(2, true), Pair(3, true)));
  EXPECT_THAT(Leave(2), IsEmpty());
  EXPECT_THAT(Leave(3), ElementsAre(Pair(4, true)));
  EXPECT_THAT(Leave(4), IsEmpty());
  EXPECT_TRUE(order_.empty());
}

TEST_F(KeyOrderTest, ReadsWaitForAllWritesAheadOfThem) {
  EXPECT_TRUE(order_.Enter(0, 7, kWrite));
  for (const uint32_t read : {1u, 2u}) EXPECT_FALSE(order_.Enter(read, 7, kRead));
  EXPECT_TRUE(order_.Enter(3, 7, kWrite)) << "it does not wait for reads";
  EXPECT_FALSE(order_.Enter(4, 7, kRead));
  EXPECT_THAT(Leave(3), IsEmpty()) << "another write is ahead of the last read";
  EXPECT_THAT(Leave(0), ElementsAre(Pair(1, false), Pair(2, false), Pair(4, false)));
  EXPECT_TRUE(order_.empty());
}

TEST_F(KeyOrderTest, WhoeverWaitsMayLeave) {
  EXPECT_TRUE(order_.Enter(0, 7, kSlowWrite));
  EXPECT_FALSE(order_.Enter(1, 7, kWrite));
  EXPECT_FALSE(order_.Enter(2, 7, kRead));
  EXPECT_FALSE(order_.Enter(3, 7, kSlowWrite));
  EXPECT_FALSE(order_.Enter(4, 7, kWrite));
  EXPECT_THAT(Leave(1), IsEmpty());
  EXPECT_THAT(Leave(3), IsEmpty()) << "the first still is under way";
  EXPECT_THAT(Leave(0), ElementsAre(Pair(2, false), Pair(4, true)));
  EXPECT_THAT(Leave(4), IsEmpty());
  EXPECT_TRUE(order_.empty());
}

TEST_F(KeyOrderTest, WhatComesAfterKeysWereHashedAnewWaitsForWhatCameBefore) {
  EXPECT_TRUE(order_.Enter(0, 7, kSlowWrite));
  EXPECT_FALSE(order_.Enter(1, 7, kRead));
  EXPECT_TRUE(order_.Enter(2, 8, kSlowWrite));
  order_.Rehash([](uint32_t op) -> uint64_t { return op < 2 ? 8 : 7; });
  EXPECT_FALSE(order_.Enter(3, 8, kWrite));
  EXPECT_FALSE(order_.Enter(4, 7, kRead));
  EXPECT_THAT(Leave(0), UnorderedElementsAre(Pair(1, false), Pair(3, true)));
  EXPECT_THAT(Leave(3), IsEmpty());
  EXPECT_THAT(Leave(2), ElementsAre(Pair(4, false)));
  EXPECT_TRUE(order_.empty());
}

TEST_F(KeyOrderTest, WhatIsBehindAWriteThatIsPutOffWaitsUnlessItWasSent) {
  for (const uint32_t op : {0u, 1u, 2u, 3u}) EXPECT_TRUE(order_.Enter(op, 7, kWrite));
  EXPECT_TRUE(order_.PutOff(1, true, [](uint32_t behind) { return behind == 3; }));
  EXPECT_FALSE(order_.Enter(4, 7, kWrite));
  EXPECT_FALSE(order_.WaitBehindPutOff(0));
  EXPECT_FALSE(order_.WaitBehindPutOff(1));
  EXPECT_FALSE(order_.PutOff(2, true, [](uint32_t) { return false; })) << "1 is put off already";
  EXPECT_THAT(Leave(0), IsEmpty());
  EXPECT_THAT(Leave(1), ElementsAre(Pair(2, true), Pair(3, true), Pair(4, true)));
  for (const uint32_t op : {2u, 3u, 4u}) EXPECT_THAT(Leave(op), IsEmpty());
  EXPECT_TRUE(order_.empty());
}

// The first answer decides, as what is behind was sent before it.
TEST_F(KeyOrderTest, OnlyBehindOneThatTheServerPutsOffInOrderNothingWasExecuted) {
  const auto sent = [](uint32_t) { return false; };
  for (const uint32_t op : {0u, 1u, 2u, 3u}) EXPECT_TRUE(order_.Enter(op, op / 2, kWrite));
  EXPECT_TRUE(order_.PutOff(0, false, sent));
  EXPECT_FALSE(order_.WaitBehindPutOff(1));
  EXPECT_TRUE(order_.PutOff(0, true, sent)) << "again, in order";
  EXPECT_FALSE(order_.WaitBehindPutOff(1));
  EXPECT_TRUE(order_.PutOff(2, true, sent));
  EXPECT_TRUE(order_.PutOff(2, false, sent)) << "again";
  EXPECT_TRUE(order_.WaitBehindPutOff(3));
  EXPECT_THAT(Leave(0), IsEmpty());
  EXPECT_THAT(Leave(2), ElementsAre(Pair(3, true)));
}

TEST_F(KeyOrderTest, TheFirstHasNoWriteAhead) {
  for (const uint32_t op : {0u, 1u}) EXPECT_TRUE(order_.Enter(op, 7, kWrite));
  EXPECT_TRUE(order_.IsFirst(0));
  EXPECT_FALSE(order_.IsFirst(1));
  EXPECT_THAT(Leave(0), IsEmpty());
  EXPECT_TRUE(order_.IsFirst(1));
}

TEST_F(KeyOrderTest, KeysThatGetOneHashWaitForEachOther) {
  EXPECT_TRUE(order_.Enter(0, 7, kSlowWrite));
  EXPECT_FALSE(order_.Enter(1, 7, kSlowWrite));
  EXPECT_TRUE(order_.Enter(2, 8, kSlowWrite));
  EXPECT_FALSE(order_.Enter(3, 8, kRead));
  EXPECT_FALSE(order_.Enter(4, 8, kWrite));
  order_.Rehash([](uint32_t) -> uint64_t { return 9; });
  std::vector<uint32_t> started;
  for (const uint32_t op : {0u, 1u, 2u, 4u}) {
    for (const auto& [next, stays] : Leave(op)) started.push_back(next);
  }
  EXPECT_THAT(started, UnorderedElementsAre(1u, 3u, 4u));
  EXPECT_TRUE(order_.empty());
}

// Compares with a model that applies the rules to each operation in its queue. Writes are put off,
// and those with even numbers were not sent before. Hashes are chosen so
// that places collide and wrap.
class KeyOrderModelTest : public KeyOrderTest {
 protected:
  struct Entry {
    uint32_t op;
    Kind kind;
    bool waits = true;
  };
  using Queue = std::deque<Entry>;

  static bool MayStart(const Queue& queue, size_t i) {
    for (size_t ahead = 0; ahead < i; ++ahead) {
      if (queue[ahead].kind == kSlowWrite) return false;
      if (queue[ahead].kind == kWrite && queue[i].kind == kRead) return false;
    }
    return true;
  }
  // Returns whether `op` may go on, and what was held back behind it.
  static bool PutOff(Queue& queue, uint32_t op) {
    const auto at = std::ranges::find(queue, op, &Entry::op);
    const auto slow = [](const Entry& entry) { return entry.kind == kSlowWrite; };
    if (std::any_of(queue.begin(), at, slow)) {
      at->waits = true;
      return false;
    }
    at->kind = kSlowWrite;
    for (auto behind = at + 1; behind != queue.end(); ++behind) {
      behind->waits |= behind->op % 2 == 0;
    }
    return true;
  }
  // Starts all operations that may start, and returns them with whether they stay. Reads are not
  // kept.
  static std::vector<std::pair<uint32_t, bool>> StartAll(Queue& queue) {
    std::vector<std::pair<uint32_t, bool>> started;
    for (size_t i = 0; i < queue.size(); ++i) {
      if (!queue[i].waits || !MayStart(queue, i)) continue;
      queue[i].waits = false;
      started.emplace_back(queue[i].op, queue[i].kind != kRead);
    }
    std::erase_if(queue, [](const Entry& e) { return !e.waits && e.kind == kRead; });
    return started;
  }
};

TEST_F(KeyOrderModelTest, DoesAsTheRulesSay) {
  std::mt19937_64 random(test_support::TestSeed());
  std::map<uint64_t, Queue> queues;
  const auto find = [&](uint32_t op) {
    return std::find_if(queues.begin(), queues.end(), [&](const auto& of_key) {
      return std::ranges::count(of_key.second, op, &Entry::op) > 0;
    });
  };
  for (int step = 0; step < 200'000; ++step) {
    const uint32_t op = static_cast<uint32_t>(random() % 16);
    const auto it = find(op);
    const bool goes_on =
        it != queues.end() && !std::ranges::find(it->second, op, &Entry::op)->waits;
    if (goes_on && random() % 2 == 0) {
      const auto hold = [](uint32_t behind) { return behind % 2 == 0; };
      ASSERT_EQ(order_.PutOff(op, true, hold), PutOff(it->second, op)) << "step " << step;
    } else if (it != queues.end()) {
      std::erase_if(it->second, [&](const Entry& entry) { return entry.op == op; });
      ASSERT_EQ(Leave(op), StartAll(it->second)) << "step " << step;
    } else {
      const uint64_t key = (30 + random() % 4) << 32 | random() % 3;
      const Kind kind = static_cast<Kind>(random() % 3);
      queues[key].push_back({op, kind});
      ASSERT_EQ(order_.Enter(op, key, kind), !StartAll(queues[key]).empty()) << "step " << step;
    }
    std::erase_if(queues, [](const auto& of_key) { return of_key.second.empty(); });
    ASSERT_EQ(order_.empty(), queues.empty());
  }
}

}  // namespace
}  // namespace gannet
