#include "server/memory/store/store.h"

#include <gtest/gtest.h>
#include <jemalloc/jemalloc.h>

#include <string>

#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

constexpr size_t kRegionBytes = 8 << 20;

TEST(StoreTest, WhatIsPutIsFound) {
  TestStore store(kRegionBytes);
  EXPECT_EQ(store.Get("key"), std::nullopt);
  const WriteOutcome put = store.Put("key", "value");
  EXPECT_EQ(put.status, ReplyStatus::kOk);
  EXPECT_NE(put.version, 0u);
  EXPECT_EQ(store.Get("key"), "value");
  EXPECT_EQ(store.Get("kez"), std::nullopt);
  EXPECT_EQ(store.Delete("key").status, ReplyStatus::kOk);
  EXPECT_EQ(store.Get("key"), std::nullopt);
  EXPECT_EQ(store.Delete("key").status, ReplyStatus::kNotFound);
}

TEST(StoreTest, KeysAndValuesOfAllLengthsAndBytes) {
  TestStore store(64 << 20, 10'000);
  for (size_t key_bytes : {1, 7, 8, 9, 16, 31, 249, 250}) {
    for (size_t value_bytes : {0, 1, 3, 8, 64, 700, 970, 1000, 4000, 70'001, 1 << 20}) {
      std::string key(key_bytes, '\0');
      key[0] = static_cast<char>(value_bytes);
      std::string value(value_bytes, '\xff');
      for (size_t i = 0; i < value_bytes; ++i) value[i] = static_cast<char>(i * 7);
      for (int round = 0; round < 2; ++round) {  // absent, then there
        ASSERT_EQ(store.Put(key, value).status, ReplyStatus::kOk);
        ASSERT_EQ(store.Get(key), value);
        ASSERT_EQ(store.PutReserved(key, value).status, ReplyStatus::kOk);
        ASSERT_EQ(store.Get(key), value);
      }
      ASSERT_EQ(store.Delete(key).status, ReplyStatus::kOk);
    }
  }
  EXPECT_EQ(store.Stats().heap_bytes, 0u);
}

TEST(StoreTest, LengthsOutsideTheLayoutAreRefused) {
  TestStore store(kRegionBytes);
  EXPECT_EQ(store.Put("", "v").status, ReplyStatus::kInvalidArgument);
  EXPECT_EQ(store.Put(std::string(251, 'k'), "v").status, ReplyStatus::kInvalidArgument);
  EXPECT_EQ(store.Put("k", std::string((64 << 20) + 1, 'v')).status, ReplyStatus::kInvalidArgument);
  EXPECT_EQ(store.Stats().items, 0u);
}

TEST(StoreTest, SmallValuesOfOneClassAreUpdatedInPlace) {
  TestStore store(kRegionBytes);
  const WriteOutcome first = store.Put("key", std::string(60, 'a'));
  const WriteOutcome second = store.Put("key", std::string(61, 'b'));
  EXPECT_EQ(first.slot, second.slot);
  EXPECT_GT(second.version, first.version);
  const WriteOutcome other_class = store.Put("key", std::string(200, 'c'));
  EXPECT_NE(other_class.slot, first.slot);
  EXPECT_EQ(store.Get("key"), std::string(200, 'c'));
}

TEST(StoreTest, AnUpdateInPlaceIsAPut) {
  TestStore store(kRegionBytes);
  for (const size_t key_bytes : {1, 7, 8, 16, 17, 33, 250}) {
    for (const size_t value_bytes : {0, 1, 8, 15, 64, 100, 105, 700}) {
      SCOPED_TRACE(testing::Message() << key_bytes << " " << value_bytes);
      const std::string key(key_bytes, 'k');
      ASSERT_EQ(
          store.GeneralPut(key, std::string(value_bytes, 'a'), {.flags = 1}, {}, At(1)).status,
          ReplyStatus::kOk);
      const WriteOutcome before =
          store.GeneralPut(key, std::string(value_bytes, 'b'), {}, {}, At(1));
      Store::Update update;
      const std::string value(value_bytes, 'c');
      ASSERT_TRUE(store.UpdateInPlace(key, value, 7, &update));
      EXPECT_EQ(update.slot, before.slot);
      EXPECT_GT(update.version, before.version);
      EXPECT_EQ(store.Get(key), value);
      const ReadOutcome read = store->Get(key, {}, At(1));
      EXPECT_EQ(read.version, update.version);
      EXPECT_EQ(read.attributes.flags, 7u);
      EXPECT_EQ(read.attributes.expiry.ms(), 0u);
    }
  }
}

TEST(StoreTest, WhatIsNotJustAnUpdateIsNotDoneAsOne) {
  TestStore store(kRegionBytes);
  const std::string long_value(kInPlaceBytesMax, 'v');
  ASSERT_EQ(store.Put("key", "value").status, ReplyStatus::kOk);
  ASSERT_EQ(store.Put("long", long_value).status, ReplyStatus::kOk);
  ASSERT_EQ(store.GeneralPut("expires", "value", {.expiry = ExpiresAt(1000)}, {}, At(1)).status,
            ReplyStatus::kOk);
  ASSERT_EQ(store.Put("gone", "value").status, ReplyStatus::kOk);
  ASSERT_EQ(store.Delete("gone").status, ReplyStatus::kOk);
  const auto updated = [&](std::string_view key, std::string_view value) {
    Store::Update update;
    return store.UpdateInPlace(key, value, 0, &update);
  };
  EXPECT_FALSE(updated("absent", "value"));
  EXPECT_FALSE(updated("gone", "value"));
  EXPECT_FALSE(updated("", ""));
  EXPECT_FALSE(updated("ke", "yvalue")) << "the bytes are the same";
  EXPECT_FALSE(updated("key", "valu"));
  EXPECT_FALSE(updated("key", "values"));
  EXPECT_FALSE(updated("expires", "other"));
  EXPECT_FALSE(updated("long", long_value));
  EXPECT_TRUE(updated("key", "other"));
  EXPECT_EQ(store.Get("expires"), "value");
  EXPECT_EQ(store.Stats().items, 3u);
}

TEST(StoreTest, LargeValuesMoveWithEveryUpdate) {
  TestStore store(kRegionBytes);
  const WriteOutcome first = store.Put("key", std::string(5000, 'a'));
  const WriteOutcome second = store.Put("key", std::string(5000, 'b'));
  EXPECT_NE(first.slot, second.slot);
  EXPECT_EQ(store.Stats().heap_bytes, Slot(second.slot).read_bytes());
}

TEST(StoreTest, VersionsAreNeverReused) {
  TestStore store(kRegionBytes);
  const uint64_t first = store.Put("key", "a").version;
  store.Delete("key");
  const uint64_t second = store.Put("key", "a").version;
  EXPECT_GT(second, first);
  EXPECT_GT(store.Put("other", "a").version, second);
}

TEST(StoreTest, OnlyIfAbsent) {
  TestStore store(kRegionBytes);
  const WriteConditions absent{.only_if_absent = true};
  const WriteOutcome put = store.GeneralPut("key", "a", {}, absent, At(1));
  EXPECT_EQ(put.status, ReplyStatus::kOk);
  const WriteOutcome again = store.GeneralPut("key", "b", {}, absent, At(1));
  EXPECT_EQ(again.status, ReplyStatus::kExists);
  EXPECT_EQ(again.version, put.version);
  EXPECT_EQ(again.slot, put.slot);
  EXPECT_EQ(store.PutReserved("key", "b", absent).status, ReplyStatus::kExists);
  EXPECT_EQ(store.Get("key"), "a");
}

TEST(StoreTest, OnlyIfVersion) {
  TestStore store(kRegionBytes);
  EXPECT_EQ(store.GeneralPut("key", "a", {}, {.only_if_version = 7}, At(1)).status,
            ReplyStatus::kVersionMismatch);
  const WriteOutcome put = store.GeneralPut("key", "a", {}, {.only_if_version = 0}, At(1));
  ASSERT_EQ(put.status, ReplyStatus::kOk);
  const WriteOutcome stale = store.GeneralPut("key", "b", {}, {.only_if_version = 0}, At(1));
  EXPECT_EQ(stale.status, ReplyStatus::kVersionMismatch);
  EXPECT_EQ(stale.version, put.version);
  EXPECT_EQ(store.Delete("key", {.only_if_version = put.version + 1}, At(1)).status,
            ReplyStatus::kVersionMismatch);
  EXPECT_EQ(store.Get("key"), "a");
  EXPECT_EQ(store.GeneralPut("key", "b", {}, {.only_if_version = put.version}, At(1)).status,
            ReplyStatus::kOk);
  EXPECT_EQ(store.Delete("none", {.only_if_version = 0}, At(1)).status, ReplyStatus::kNotFound);
}

TEST(StoreTest, UnderLockTheExactWordMustBeThere) {
  TestStore store(kRegionBytes);
  store.LockWordOf("key") = 77;
  EXPECT_EQ(
      store.GeneralPut("key", "a", {}, {.only_if_version = 0, .under_lock = 77}, At(1)).status,
      ReplyStatus::kOk);
  store.LockWordOf("key") = 78;
  const WriteOutcome late = store.GeneralPut("key", "b", {}, {.under_lock = 77}, At(1));
  EXPECT_EQ(late.status, ReplyStatus::kLockLost);
  EXPECT_EQ(late.lock_word, 78u);
  EXPECT_EQ(store.Delete("key", {.under_lock = 77}, At(1)).status, ReplyStatus::kLockLost);
  EXPECT_EQ(store.Get("key"), "a");
}

TEST(StoreTest, ExpiredItemsAreDeadToEveryone) {
  TestStore store(kRegionBytes);
  store.GeneralPut("key", "a", {.flags = 5, .expiry = ExpiresAt(1000)}, {}, At(1));
  EXPECT_EQ(store.Get("key", 999), "a");
  EXPECT_EQ(store.Get("key", 1000), std::nullopt);
  EXPECT_EQ(store.Stats().items, 0u);

  store.GeneralPut("key", "a", {.expiry = ExpiresAt(1000)}, {}, At(1));
  EXPECT_EQ(store.GeneralPut("key", "b", {}, {.only_if_absent = true}, At(1000)).status,
            ReplyStatus::kOk);
  store.GeneralPut("key", "a", {.expiry = ExpiresAt(1000)}, {}, At(1));
  EXPECT_EQ(store.Delete("key", 1000).status, ReplyStatus::kNotFound);
  EXPECT_EQ(store.Stats().heap_bytes, 0u);
}

TEST(StoreTest, SweepRemovesWhatExpired) {
  TestStore store(kRegionBytes, 1000);
  for (int i = 0; i < 900; ++i) {
    store.GeneralPut("key" + std::to_string(i), "a", {.expiry = ExpiresAt(i % 3 == 0 ? 1000u : 0u)},
                     {}, At(1));
  }
  const uint64_t buckets = store->superblock().index.main_buckets();
  EXPECT_EQ(store->Sweep(At(999), buckets).removed, 0u);
  size_t removed = 0;
  for (bool more = true; more;) {
    const Swept swept = store->Sweep(At(1000), 1);
    removed += swept.removed;
    more = swept.more;
  }
  EXPECT_EQ(removed, 300u);
  EXPECT_EQ(store->Sweep(At(1000), 2 * buckets).removed, 0u);
  EXPECT_EQ(store.Stats().items_expired, 300u);
  EXPECT_EQ(store.Stats().items, 600u);
}

TEST(StoreTest, AttributesComeBack) {
  TestStore store(kRegionBytes);
  store.GeneralPut("key", "value", {.flags = 0xdeadbeef, .expiry = ExpiresAt(5000)}, {}, At(1));
  std::byte value[16];
  const ReadOutcome read = store->Get("key", value, At(1));
  EXPECT_EQ(read.status, ReplyStatus::kOk);
  EXPECT_EQ(read.attributes.flags, 0xdeadbeefu);
  EXPECT_EQ(read.attributes.expiry.ms(), 5000u);
  EXPECT_EQ(read.value_bytes, 5u);
}

TEST(StoreTest, ABufferTooSmallSaysWhatIsNeeded) {
  TestStore store(kRegionBytes);
  store.Put("key", "value");
  std::byte value[4];
  const ReadOutcome read = store->Get("key", value, At(1));
  EXPECT_EQ(read.status, ReplyStatus::kBufferTooSmall);
  EXPECT_EQ(read.value_bytes, 5u);
}

TEST(StoreTest, UpdatesInPlaceAndReadsAllocateNothing) {
  TestStore store(kRegionBytes);
  std::byte value[64];
  store.Put("key", "value");
  uint64_t before = 0, after = 0;
  size_t size = sizeof(before);
  ASSERT_EQ(mallctl("thread.allocated", &before, &size, nullptr, 0), 0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(store.GeneralPut("key", "other", {}, {.only_if_version = 1 + i}, At(1)).status,
              ReplyStatus::kOk);
    ASSERT_EQ(store->Get("key", value, At(1)).status, ReplyStatus::kOk);
    ASSERT_EQ(store->Get("none", value, At(1)).status, ReplyStatus::kNotFound);
  }
  ASSERT_EQ(mallctl("thread.allocated", &after, &size, nullptr, 0), 0);
  EXPECT_EQ(after, before);
}

TEST(StoreTest, AReservationOutsideTheLayoutIsRefused) {
  TestStore store(kRegionBytes);
  EXPECT_FALSE(store->Reserve("", 10, At(1)));
  EXPECT_FALSE(store->Reserve(std::string(251, 'k'), 10, At(1)));
  EXPECT_FALSE(store->Reserve("key", (64 << 20) + 1, At(1)));
  EXPECT_FALSE(store->Reserve("key", UINT32_MAX, At(1)));
}

TEST(StoreTest, AnAbandonedReservationLeavesNothing) {
  TestStore store(kRegionBytes);
  auto reservation = store->Reserve("key", 1000, At(1));
  ASSERT_TRUE(reservation);
  EXPECT_EQ(store.Get("key"), std::nullopt);
  store->Abandon(*reservation);
  EXPECT_EQ(store.Stats().heap_bytes, 0u);
}

TEST(StoreTest, AFullHeapHarmsNothing) {
  TestStore store(4 << 20, 1000);
  const std::string value(100'000, 'v');
  int n = 0;
  while (store.Put("key" + std::to_string(n), value).status == ReplyStatus::kOk) ++n;
  ASSERT_GT(n, 20);
  EXPECT_EQ(store.Put("another", value).status, ReplyStatus::kHeapFull);
  EXPECT_EQ(store->Reserve("key0", value.size(), At(1)), std::nullopt);
  for (int i = 0; i < n; ++i) ASSERT_EQ(store.Get("key" + std::to_string(i)), value);
  EXPECT_EQ(store.Stats().items, static_cast<uint64_t>(n));
  store.Delete("key0");
  EXPECT_EQ(store.Put("other", value).status, ReplyStatus::kOk);
}

TEST(StoreTest, AFullIndexHarmsNothing) {
  TestStore store(4 << 20, 1000);
  const uint64_t total = store.Stats().slots_total;
  uint64_t n = 0;
  while (store.Put("key" + std::to_string(n), "v").status == ReplyStatus::kOk) ++n;
  EXPECT_GE(n, total * 85 / 100);
  EXPECT_LE(n, total);
  const uint64_t heap_bytes = store.Stats().heap_bytes;
  EXPECT_EQ(store.Put("key" + std::to_string(n), "v").status, ReplyStatus::kIndexFull);
  EXPECT_EQ(store.PutReserved("key" + std::to_string(n), "v").status, ReplyStatus::kIndexFull);
  EXPECT_EQ(store.Stats().heap_bytes, heap_bytes);
  for (uint64_t i = 0; i < n; ++i) {
    ASSERT_EQ(store.Put("key" + std::to_string(i), "w").status, ReplyStatus::kOk);
    ASSERT_EQ(store.Get("key" + std::to_string(i)), "w");
  }
}

TEST(StoreTest, TooSmallARegionSaysWhatItTakes) {
  TestRegion region(1 << 20);
  std::vector<uint64_t> lock_words(1);
  const auto store = Store::Create({.region = region.span(),
                                    .lock_words = lock_words,
                                    .index_slots = 1'000'000,
                                    .incarnation = 1});
  EXPECT_EQ(store.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(store.status().message().find("1000006 slots"), std::string::npos) << store.status();
}

// For machines with pages of 64 KiB, where jemalloc needs its memory aligned to these.
TEST(StoreTest, TheHeapIsAlignedToThePagesOfTheSystem) {
  for (const uint64_t page_bytes : {4u << 10, 16u << 10, 64u << 10}) {
    for (const size_t region_bytes : {1u << 20, (1u << 20) + 4096u, 100u << 20}) {
      TestRegion region(region_bytes + page_bytes);
      const uint64_t misaligned = reinterpret_cast<uintptr_t>(region.span().data()) % page_bytes;
      std::vector<uint64_t> lock_words(1);
      const auto store = Store::Create(
          {.region = region.span().subspan((page_bytes - misaligned) % page_bytes, region_bytes),
           .lock_words = lock_words,
           .index_slots = 1000,
           .incarnation = 1,
           .page_bytes = page_bytes});
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_EQ((*store)->superblock().heap_offset % page_bytes, 0u);
      EXPECT_EQ((*store)->superblock().region_bytes % page_bytes, 0u);
      EXPECT_EQ(Writes(store->get()).Put("key", "value", {}, {}, At(1)).outcome.status,
                ReplyStatus::kOk);
    }
  }
}

TEST(StoreTest, TheRegionStartsWithItsSuperblock) {
  TestStore store(64 << 20);
  Superblock copy;
  std::memcpy(&copy, store.region().data(), sizeof(copy));
  EXPECT_TRUE(SuperblockValid(copy));
  EXPECT_EQ(copy.heap_offset, kSuperblockBytes);
  EXPECT_EQ(copy.region_bytes, 64u << 20);
}

}  // namespace
}  // namespace gannet
