#include "client/engine/large_items.h"

#include <gtest/gtest.h>

#include "common/base/hash.h"

namespace gannet {
namespace {

KeyHash HashOf(uint64_t i) { return KeyHash(Mix64(i + 1)); }
Slot SlotOf(uint64_t i) { return Slot::Of(HashOf(i).Tag(), kSealedClassMax + 1, 8192 * (i + 1)); }
LargeItemHeader HeadOf(uint64_t i) { return {{.commit = i, .version = i}, i}; }

TEST(LargeItemsTest, KnowsNothingAtFirst) {
  const LargeItems items(1 << 18);
  EXPECT_EQ(items.Find(HashOf(1), SlotOf(1)), nullptr);
  EXPECT_EQ(items.Find(KeyHash(0), Slot()), nullptr);
}

TEST(LargeItemsTest, FindsAHeadByHashAndSlot) {
  LargeItems items(1 << 18);
  items.Remember(HashOf(1), SlotOf(1), HeadOf(1));
  ASSERT_NE(items.Find(HashOf(1), SlotOf(1)), nullptr);
  EXPECT_EQ(items.Find(HashOf(1), SlotOf(1))->item.version, 1u);
  EXPECT_EQ(items.Find(HashOf(1), SlotOf(2)), nullptr);
  EXPECT_EQ(items.Find(HashOf(2), SlotOf(1)), nullptr);
  EXPECT_EQ(items.Find(KeyHash(0), Slot()), nullptr) << "free entries are nobody's";
}

TEST(LargeItemsTest, ANewerHeadReplacesTheOlder) {
  LargeItems items(1 << 18);
  items.Remember(HashOf(1), SlotOf(1), HeadOf(1));
  items.Remember(HashOf(1), SlotOf(2), HeadOf(2));
  EXPECT_EQ(items.Find(HashOf(1), SlotOf(1)), nullptr);
  ASSERT_NE(items.Find(HashOf(1), SlotOf(2)), nullptr);
  EXPECT_EQ(items.Find(HashOf(1), SlotOf(2))->item.version, 2u);
}

// With one place for each hash 0.79 of them would be known.
TEST(LargeItemsTest, KnowsNearlyAllOfHalfAsManyAsItHasRoomFor) {
  LargeItems items(1 << 18);
  for (uint64_t i = 0; i < 2048; ++i) items.Remember(HashOf(i), SlotOf(i), HeadOf(i));
  uint64_t known = 0;
  for (uint64_t i = 0; i < 2048; ++i) {
    const LargeItemHeader* head = items.Find(HashOf(i), SlotOf(i));
    if (head == nullptr) continue;
    EXPECT_EQ(head->item.version, i);
    ++known;
  }
  EXPECT_GT(known, 2048u * 95 / 100);
}

TEST(LargeItemsTest, ForgetsAll) {
  LargeItems items(0);  // has room for a few
  items.Remember(HashOf(1), SlotOf(1), HeadOf(1));
  items.Clear();
  EXPECT_EQ(items.Find(HashOf(1), SlotOf(1)), nullptr);
}

}  // namespace
}  // namespace gannet
