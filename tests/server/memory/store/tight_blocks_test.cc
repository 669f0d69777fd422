// A store whose items have blocks of finer steps than their size classes.

#include <gtest/gtest.h>

#include <string>

#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

std::string LongKey(uint64_t i) { return "key" + std::to_string(1'000'000'000'000 + i); }
static_assert(SizeClassFor(SealedItemBytes(16, 600)) == SizeClassFor(SealedItemBytes(16, 700)));

// Returns what a client finds that READs what the slot says.
ItemProof ProofOf(TestStore& store, const std::string& key, Slot slot, std::string* value) {
  const Superblock& superblock = store->superblock();
  const ItemPlace place = {superblock.incarnation, superblock.hash_seed, slot.offset()};
  ItemView item;
  const ItemProof proof = ProveItem(store.region().subspan(slot.offset(), slot.read_bytes()), place,
                                    key, KeyHash::Of(key, superblock.hash_seed), &item);
  if (proof == ItemProof::kThisKey) *value = std::string(item.value);
  return proof;
}

TEST(TightBlocksTest, AnItemTakesLessThanItsClassHas) {
  TestStore store(16 << 20);
  ASSERT_EQ(store.Put(LongKey(1), std::string(1000, 'v')).status, ReplyStatus::kOk);
  EXPECT_EQ(store.Stats().heap_bytes, 1088u);
}

// Both items are of one class, but the longer one does not fit the block of the other.
TEST(TightBlocksTest, ALongerItemOfTheClassGetsAnotherBlock) {
  TestStore store(16 << 20);
  const Slot first(store.Put(LongKey(1), std::string(600, 'a')).slot);
  const Slot neighbour(store.Put(LongKey(2), std::string(600, 'b')).slot);
  EXPECT_EQ(neighbour.offset() - first.offset(), 672u);
  const Slot longer(store.Put(LongKey(1), std::string(700, 'c')).slot);
  EXPECT_EQ(longer.size_class(), first.size_class());
  EXPECT_NE(longer.offset(), first.offset());
  EXPECT_EQ(store.Get(LongKey(1)), std::string(700, 'c'));
  EXPECT_EQ(store.Get(LongKey(2)), std::string(600, 'b'));
  const Slot again(store.Put(LongKey(1), std::string(690, 'd')).slot);
  EXPECT_EQ(again, longer) << "the same block would do";
}

TEST(TightBlocksTest, AFullHeapOverwritesOnlyWithWhatFitsTheBlock) {
  TestStore store(1 << 20);
  uint64_t items = 0;
  while (store.Put(LongKey(items), std::string(1000, 'v')).status == ReplyStatus::kOk) ++items;
  EXPECT_EQ(store.Put(LongKey(5), std::string(1200, 'w')).status, ReplyStatus::kHeapFull);
  EXPECT_EQ(store.Put(LongKey(5), std::string(1040, 'w')).status, ReplyStatus::kOk);
  EXPECT_EQ(store.Put(LongKey(6), std::string(900, 'w')).status, ReplyStatus::kOk);
  for (const uint64_t i : {4, 7}) EXPECT_EQ(store.Get(LongKey(i)), std::string(1000, 'v'));
  EXPECT_EQ(store.Get(LongKey(5)), std::string(1040, 'w'));
  EXPECT_EQ(store.Get(LongKey(6)), std::string(900, 'w'));
}

TEST(TightBlocksTest, ItemsOfAllLengthsAreReadByTheirSlots) {
  TestStore store(16 << 20);
  for (uint64_t i = 0; i < 1000; ++i) {
    const std::string value(1 + i * 37 % 4000, static_cast<char>('a' + i % 26));
    const Slot slot(store.Put(LongKey(i), value).slot);
    std::string read;
    ASSERT_EQ(ProofOf(store, LongKey(i), slot, &read), ItemProof::kThisKey);
    ASSERT_EQ(read, value);
  }
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(store.Put(LongKey(i), std::string(1 + i * 41 % 4000, 'x')).status, ReplyStatus::kOk);
  }
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(store.Get(LongKey(i)), std::string(1 + i * 41 % 4000, 'x'));
    ASSERT_EQ(store.Delete(LongKey(i)).status, ReplyStatus::kOk);
  }
  EXPECT_EQ(store.Stats().heap_bytes, 0u);
}

// Evicts, moves and clears spans of the heap with items of all lengths.
TEST(TightBlocksTest, AStoreThatEvictsServesItemsOfAllLengths) {
  TestStore store(2 << 20, 0, /*index_grows=*/true, TestStore::OnFull::kEvict);
  for (uint64_t i = 0; i < 60'000; ++i) {
    const std::string value((i * 37) % (i % 64 == 0 ? 4000 : 240), 'v');
    ASSERT_EQ(store.Put(LongKey(i), value).status, ReplyStatus::kOk) << i;
    const std::optional<std::string> read = store.Get(LongKey(i));
    ASSERT_EQ(read, value);
    if (i % 100 == 0) store->Tidy(At(1));
  }
  EXPECT_GT(store.Stats().items_evicted, 10'000u);
}

}  // namespace
}  // namespace gannet
