// A store whose index grows.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

constexpr uint64_t kSlots = 2000;

class StoreGrowTest : public testing::Test {
 protected:
  static std::string Key(uint64_t i) { return "key" + std::to_string(i); }
  // Puts as a server does that has time between two writes.
  void PutAndTidy(uint64_t i, ItemAttributes attributes = {}) {
    ASSERT_EQ(store_.Put(Key(i), "value" + std::to_string(i), attributes, {}, At(1)).status,
              ReplyStatus::kOk);
    store_->Tidy(At(1));
  }
  // Puts until growth is under way.
  uint64_t FillUntilItGrows() {
    uint64_t n = 0;
    while (!store_->growing()) PutAndTidy(n++);
    return n;
  }
  void FinishGrowth() {
    while (store_->growing()) store_->Tidy(At(1));
  }

  TestStore store_{16 << 20, kSlots, /*index_grows=*/true};
};

TEST_F(StoreGrowTest, TheIndexDoublesAndKeepsEveryKey) {
  for (uint64_t i = 0; i < 10 * kSlots; ++i) PutAndTidy(i);
  EXPECT_GE(store_.Stats().index_growths, 3u);
  EXPECT_GT(store_.Stats().slots_total, 10 * kSlots);
  EXPECT_EQ(store_.Stats().items, 10 * kSlots);
  for (uint64_t i = 0; i < 10 * kSlots; ++i) {
    ASSERT_EQ(store_.Get(Key(i)), "value" + std::to_string(i));
  }
}

TEST_F(StoreGrowTest, TheSuperblockTellsWhereTheIndexesAre) {
  const IndexGeometry first = store_->superblock().index;
  FillUntilItGrows();
  while (store_->superblock().next_index.homes == 0) store_->Tidy(At(1));
  Superblock superblock;
  std::memcpy(&superblock, store_.region().data(), sizeof(superblock));
  EXPECT_TRUE(SuperblockValid(superblock));
  EXPECT_EQ(superblock.index, first);
  EXPECT_EQ(superblock.next_index.generation, 2u);
  EXPECT_TRUE(superblock.next_index.ValidWithin(superblock.region_bytes));
  const IndexGeometry next = superblock.next_index;
  FinishGrowth();
  std::memcpy(&superblock, store_.region().data(), sizeof(superblock));
  EXPECT_TRUE(SuperblockValid(superblock));
  EXPECT_EQ(superblock.index, next);
  EXPECT_EQ(superblock.next_index, IndexGeometry{});
}

TEST_F(StoreGrowTest, TheOldIndexStaysAsItIsUntilItsReadersAcknowledge) {
  store_->Acknowledge(1);
  const IndexGeometry first = store_->superblock().index;
  uint64_t n = FillUntilItGrows();
  FinishGrowth();
  const auto whole = [&] {
    for (uint64_t b = 0; b < first.homes; ++b) {
      Bucket bucket;
      std::memcpy(&bucket, store_.region().data() + first.BucketOffset(b), sizeof(bucket));
      const Superblock superblock = store_->superblock();
      if (!BucketValid(bucket, BucketSeed(superblock.incarnation, 1, b)) ||
          !BucketMeta(bucket.meta).migrated()) {
        return false;
      }
    }
    return true;
  };
  for (int i = 0; i < 3000; ++i) PutAndTidy(n++);
  EXPECT_TRUE(whole());
  store_->Acknowledge(2);
  store_->Tidy(At(1));
  while (whole()) PutAndTidy(n++);  // ends, as items come to lie there
}

TEST_F(StoreGrowTest, AGuessInAFormerIndexIsNoPlaceForAnUpdate) {
  PutAndTidy(0);
  Store::Guess guess;
  store_->GuessBucket(Key(0), &guess);
  store_->GuessItem(&guess);
  uint64_t n = 1;
  while (!store_->growing()) PutAndTidy(n++);
  FinishGrowth();
  Store::Update update;
  EXPECT_FALSE(store_->UpdateInPlace(
      guess, Key(0), "value0", [] { return 0u; }, &update));
  EXPECT_TRUE(store_.UpdateInPlace(Key(0), "value1", 0, &update));
  EXPECT_EQ(store_.Get(Key(0)), "value1");
}

TEST_F(StoreGrowTest, ItemsExpireAlsoAfterTheyMovedToAnotherIndex) {
  for (uint64_t i = 0; i < 100; ++i) PutAndTidy(1'000'000 + i, {.expiry = ExpiresAt(1000)});
  FillUntilItGrows();
  FinishGrowth();
  EXPECT_EQ(store_->Sweep(At(999), 100'000).removed, 0u);
  EXPECT_EQ(store_->Sweep(At(1000), 100'000).removed, 100u);
}

// The writes themselves prepare the next index, bit by bit, if nobody else has time.
TEST_F(StoreGrowTest, WritesAloneKeepTheIndexFromFilling) {
  uint64_t n = 0;
  for (; n < 3 * kSlots / 2; ++n) ASSERT_EQ(store_.Put(Key(n), "v").status, ReplyStatus::kOk);
  EXPECT_TRUE(store_->growing());
  EXPECT_EQ(store_.Stats().refused_index_full, 0u);
  FinishGrowth();
  for (uint64_t i = 0; i < n; ++i) ASSERT_EQ(store_.Get(Key(i)), "v");
}

// Nobody ever tidies: neither the preparation nor the migration is done by others.
TEST_F(StoreGrowTest, WritesAloneMakeTheIndexGrowAgainAndAgain) {
  for (uint64_t i = 0; i < 20 * kSlots; ++i) {
    ASSERT_EQ(store_.Put(Key(i), "v").status, ReplyStatus::kOk) << i;
  }
  EXPECT_GE(store_.Stats().index_growths, 3u);
  for (uint64_t i = 0; i < 20 * kSlots; ++i) ASSERT_EQ(store_.Get(Key(i)), "v");
}

// No write is told to try again, since those behind it would overtake it. It rather waits.
TEST_F(StoreGrowTest, AWriteThatFindsNoSlotMakesTheIndexGrow) {
  TestStore small(16 << 20, 64, /*index_grows=*/true);
  uint64_t n = 0;
  for (; n < 100; ++n) ASSERT_EQ(small.Put(Key(n), "v").status, ReplyStatus::kOk);
  EXPECT_EQ(small.Stats().refused_index_full, 0u);
}

TEST_F(StoreGrowTest, AnIndexThatDoesNotGrowIsFull) {
  TestStore fixed(16 << 20, kSlots);
  uint64_t n = 0;
  ReplyStatus status = ReplyStatus::kOk;
  while (status == ReplyStatus::kOk) {
    status = fixed.Put(Key(n++), "v").status;
    fixed->Tidy(At(1));
  }
  EXPECT_EQ(status, ReplyStatus::kIndexFull);
  EXPECT_EQ(fixed.Stats().refused_index_full, 1u);
}

}  // namespace
}  // namespace gannet
