#include "client/tables/lock_table.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

TEST(LockTableTest, EveryAcquisitionHasItsOwnWord) {
  LockTable locks;
  locks.Restart(9, 16);
  const KeyHash key(0x123456789abcdef0);
  const LockWord first = locks.NextWord(key), second = locks.NextWord(key);
  EXPECT_NE(first, second);
  EXPECT_EQ(first.connection_id(), 9u);
  EXPECT_EQ(first.key_tag(), key.LockTag());
}

TEST(LockTableTest, NoticesTwoKeysOfOneWord) {
  LockTable locks;
  locks.Restart(9, 16);
  const KeyHash a(16), b(32), other(17);  // a and b: word 0
  const LockWord word = locks.NextWord(a);
  locks.OnAcquired(a, word);
  EXPECT_TRUE(locks.Holds(a, word));
  EXPECT_FALSE(locks.HoldsForAnotherKey(a));
  EXPECT_TRUE(locks.HoldsForAnotherKey(b));
  EXPECT_FALSE(locks.HoldsForAnotherKey(other));
  locks.OnReleased(a, word);
  EXPECT_FALSE(locks.HoldsForAnotherKey(b));
}

TEST(LockTableTest, AReleaseOfAnEarlierAcquisitionChangesNothing) {
  LockTable locks;
  locks.Restart(9, 16);
  const KeyHash key(16);
  const LockWord earlier = locks.NextWord(key), now = locks.NextWord(key);
  locks.OnAcquired(key, now);
  locks.OnReleased(key, earlier);
  EXPECT_TRUE(locks.Holds(key, now));
}

// Two operations wanted the lock at once, and the first one's lease was over before the second one
// took it. Their answers come in the other order.
TEST(LockTableTest, AnEarlierAcquisitionThatBecomesKnownLaterHidesNothing) {
  LockTable locks;
  locks.Restart(9, 16);
  const KeyHash a(16), b(32);  // of one word
  const LockWord earlier = locks.NextWord(a), now = locks.NextWord(b);
  locks.OnAcquired(b, now);
  locks.OnAcquired(a, earlier);
  EXPECT_TRUE(locks.Holds(b, now));
  EXPECT_TRUE(locks.Holds(a, earlier)) << "for all the client knows";
  EXPECT_TRUE(locks.HoldsForAnotherKey(a));
  locks.OnReleased(a, earlier);
  EXPECT_TRUE(locks.Holds(b, now));
  EXPECT_FALSE(locks.HoldsForAnotherKey(b));
  locks.OnReleased(b, now);
  EXPECT_FALSE(locks.HoldsForAnotherKey(a));
}

TEST(LockTableTest, AnAcquisitionThatBeganLaterProvesThatKnownOnesAreLost) {
  LockTable locks;
  locks.Restart(9, 16);
  const KeyHash key(16);
  LockWord last = locks.NextWord(key);
  locks.OnAcquired(key, last);
  // More words than a lock word can count.
  for (int i = 0; i < 3 << 20; ++i) {
    const LockWord next = locks.NextWord(key);
    if (i % 1000 != 0) continue;
    locks.OnAcquired(key, next);
    ASSERT_TRUE(locks.Holds(key, next));
    ASSERT_FALSE(locks.Holds(key, last));
    last = next;
  }
}

TEST(LockTableTest, ANewConnectionHoldsNothing) {
  LockTable locks;
  locks.Restart(9, 16);
  const KeyHash key(16);
  const LockWord word = locks.NextWord(key);
  locks.OnAcquired(key, word);
  locks.Restart(10, 16);
  EXPECT_FALSE(locks.Holds(key, word));
  EXPECT_FALSE(locks.IsOfThisConnection(word));
}

}  // namespace
}  // namespace gannet
