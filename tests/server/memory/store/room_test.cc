// What a full store still takes: replacements, and whatever fits once expired items are gone and
// the others are moved together.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/layout/large_proof.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

std::string NumberedName(uint64_t i) {
  std::string name = std::to_string(i);
  return std::string(16 - name.size(), 'k') + name;
}
// Returns the value size of an item with a key of 16 bytes that fills a block of this class.
size_t ValueBytesOf(uint32_t size_class) {
  const size_t bytes = SizeClassBytes(size_class);
  return bytes - (IsLargeClass(size_class) ? LargeValueOffset(16) : sizeof(ItemHeader) + 16);
}
constexpr uint32_t kFirstClass = SizeClassFor(sizeof(ItemHeader) + 17);

// Puts a value as a worker does that is too long for a message: into the heap, or elsewhere and
// then over the old item.
WriteOutcome PutAsWorker(TestStore& store, std::string_view key, std::string_view value) {
  if (const auto reservation = store->Reserve(key, value.size(), At(1))) {
    StoreValueAt(reservation->value.data(), value);
    return store.CommitPut(*reservation, key, {}, {}, At(1));
  }
  if (!store->FitsOld(key, value.size(), At(1))) return {.status = ReplyStatus::kHeapFull};
  return store.GeneralPut(key, value, {}, {}, At(1));
}

uint64_t Fill(TestStore& store, std::string_view value, uint64_t first = 0) {
  uint64_t n = first;
  while (store.Put(NumberedName(n), value).status == ReplyStatus::kOk) ++n;
  return n - first;
}

TEST(RoomTest, AFullStoreReplacesEverySealedItemByOneOfTheSameSizeOrSmaller) {
  for (uint32_t size_class = kFirstClass; size_class <= kSealedClassMax; ++size_class) {
    SCOPED_TRACE(testing::Message() << "class " << size_class);
    TestStore store(8 << 20, 100'000);
    const size_t value_bytes = ValueBytesOf(size_class);
    const uint64_t n = Fill(store, std::string(value_bytes, 'a'));
    // Small leftovers are filled too, so that no class finds room.
    for (uint32_t c = size_class; c-- > kFirstClass;) {
      Fill(store, std::string(ValueBytesOf(c), 'b'), 1'000'000ull * c);
    }
    const uint64_t some = std::min<uint64_t>(n, 20);
    for (uint64_t i = 0; i < some; ++i) {
      const std::string same(value_bytes, 'c'), shorter(value_bytes / 2, 'd'),
          again(value_bytes, 'e');
      for (const std::string& value : {same, shorter, again}) {
        ASSERT_EQ(store.Put(NumberedName(i), value).status, ReplyStatus::kOk) << value.size();
        ASSERT_EQ(store.Get(NumberedName(i)), value);
        ASSERT_EQ(PutAsWorker(store, NumberedName(i), value).status, ReplyStatus::kOk)
            << value.size();
        ASSERT_EQ(store.Get(NumberedName(i)), value);
        if (&value == &shorter) break;
      }
      ASSERT_EQ(store.Put(NumberedName(i), "").status, ReplyStatus::kOk);
      ASSERT_EQ(store.Get(NumberedName(i)), "");
    }
    for (uint64_t i = some; i < n; i += 1 + n / 100) {
      ASSERT_EQ(store.Get(NumberedName(i)), std::string(value_bytes, 'a')) << i;
    }
  }
}

// Reservations take all the room. The items of others, and of the same keys, can still be replaced.
TEST(RoomTest, AFullStoreReplacesWithReservationsOpen) {
  TestStore store(1 << 20, 1000);
  const std::string value(4'000, 'a'), other(4'000, 'b');
  std::vector<Store::Reservation> open;
  ASSERT_EQ(store.Put(NumberedName(0), value).status, ReplyStatus::kOk);
  ASSERT_EQ(store.Put(NumberedName(1), value).status, ReplyStatus::kOk);
  while (const auto reservation = store->Reserve(NumberedName(0), value.size(), At(1))) {
    open.push_back(*reservation);
  }
  ASSERT_GT(open.size(), 5u);
  EXPECT_EQ(PutAsWorker(store, NumberedName(0), other).status, ReplyStatus::kOk);
  EXPECT_EQ(PutAsWorker(store, NumberedName(1), other).status, ReplyStatus::kOk);
  EXPECT_EQ(PutAsWorker(store, NumberedName(2), other).status, ReplyStatus::kHeapFull);
  EXPECT_EQ(store.Get(NumberedName(0)), other);
  EXPECT_EQ(store.Get(NumberedName(1)), other);
  for (const Store::Reservation& reservation : open) {
    StoreValueAt(reservation.value.data(), value);
    ASSERT_EQ(store.CommitPut(reservation, NumberedName(0), {}, {}, At(1)).status,
              ReplyStatus::kOk);
    ASSERT_EQ(store.Get(NumberedName(0)), value);
  }
  EXPECT_EQ(store.Stats().heap_bytes, 2 * SizeClassBytes(kSealedClassMax));
}

TEST(RoomTest, ConditionsHoldForWhatIsWrittenOverTheOldItem) {
  TestStore store(8 << 20, 10'000);
  const std::string value(4'000, 'a'), other(4'000, 'b');
  const uint64_t n = Fill(store, value);
  const uint64_t version = store->Get(NumberedName(0), {}, At(1)).version;
  EXPECT_EQ(
      store.GeneralPut(NumberedName(0), other, {}, {.only_if_version = version + 1}, At(1)).status,
      ReplyStatus::kVersionMismatch);
  EXPECT_EQ(store.GeneralPut(NumberedName(0), other, {}, {.only_if_absent = true}, At(1)).status,
            ReplyStatus::kExists);
  EXPECT_EQ(store.GeneralPut(NumberedName(0), other, {}, {.under_lock = 77}, At(1)).status,
            ReplyStatus::kLockLost);
  EXPECT_EQ(store.Get(NumberedName(0)), value);
  const WriteOutcome put =
      store.GeneralPut(NumberedName(0), other, {.flags = 7}, {.only_if_version = version}, At(1));
  EXPECT_EQ(put.status, ReplyStatus::kOk);
  EXPECT_GT(put.version, version);
  EXPECT_EQ(store->Get(NumberedName(0), {}, At(1)).attributes.flags, 7u);
  EXPECT_EQ(store.Stats().refused_heap_full, 1u) << "only the write that ended the filling";
  EXPECT_EQ(store.Stats().items, n);
}

// Fills small leftovers too, so that no class has room.
void FillLeftovers(TestStore& store, size_t value_bytes) {
  for (uint32_t c = SizeClassFor(value_bytes); c-- > kFirstClass;) {
    Fill(store, std::string(ValueBytesOf(c), 'b'), 1'000'000ull * c);
  }
}

TEST(RoomTest, AFullStoreReplacesEveryLargeItemByOneThatIsNotLonger) {
  for (const size_t bytes : {size_t{5'000}, size_t{20'000}, size_t{300'000}}) {
    SCOPED_TRACE(testing::Message() << bytes << " bytes");
    TestStore store(16 << 20, 100'000);
    const uint64_t n = Fill(store, std::string(bytes, 'a'));
    FillLeftovers(store, bytes);
    const uint64_t items = store.Stats().items;
    ASSERT_EQ(store.Put(NumberedName(0), std::string(bytes + 513, 'x')).status,
              ReplyStatus::kHeapFull);
    const std::string same(bytes, 'c'), again(bytes, 'd'), half(bytes / 2, 'e'), none;
    for (const std::string& value : {same, again, half, none}) {
      for (uint64_t i = 0; i < n; ++i) {
        ASSERT_EQ(PutAsWorker(store, NumberedName(i), value).status, ReplyStatus::kOk) << i;
      }
      for (uint64_t i = 0; i < n; ++i) ASSERT_EQ(store.Get(NumberedName(i)), value) << i;
    }
    EXPECT_EQ(store.Stats().items, items);
    for (uint64_t position = store.FlushSome(0).next; position != 0;) {
      position = store.FlushSome(position).next;
    }
    EXPECT_EQ(store.Stats().heap_bytes, 0u);
    EXPECT_EQ(Fill(store, std::string(bytes, 'f')), n);
  }
}

// Or a reader would take one content for the other.
TEST(RoomTest, AnItemWrittenOverALargeOneHasACommitWordThatWasNeverThere) {
  TestStore store(4 << 20, 10'000);
  Fill(store, std::string(20'000, 'a'));
  FillLeftovers(store, 20'000);
  std::set<uint64_t> words;
  std::set<uint64_t> places;
  for (const size_t bytes : {20'000, 20'000, 19'000, 19'000, 5'000, 100, 100}) {
    const Slot slot(store->Get(NumberedName(0), {}, At(1)).slot);
    places.insert(slot.offset());
    words.insert(LoadItemHeader(store.region().data() + slot.offset()).commit);
    ASSERT_EQ(
        store.GeneralPut(NumberedName(0), std::string(bytes, 'b'), {.flags = 7}, {}, At(1)).status,
        ReplyStatus::kOk);
    ASSERT_EQ(store->Get(NumberedName(0), {}, At(1)).attributes.flags, 7u);
    // What became free.
    FillLeftovers(store, 20'000);
  }
  EXPECT_EQ(places.size(), 1u) << "there was another block";
  EXPECT_EQ(words.size(), 7u);
}

// The rest of the blocks of longer items becomes free at once, and what was written into a block of
// its own for want of a slab is moved into one.
TEST(RoomTest, WhatLargeItemsLeaveIsFreeForOthers) {
  TestStore store(16 << 20, 100'000);
  const uint64_t n = Fill(store, std::string(20'000, 'a'));
  for (uint64_t i = 0; i < n; ++i) {
    ASSERT_EQ(store.Put(NumberedName(i), std::string(64, 'b')).status, ReplyStatus::kOk);
  }
  while (store->Tidy(At(1))) {
  }
  EXPECT_GT(Fill(store, std::string(20'000, 'c'), 1'000'000), n * 95 / 100);
  for (uint64_t i = 0; i < n; ++i) ASSERT_EQ(store.Get(NumberedName(i)), std::string(64, 'b'));
}

// Otherwise an item that moved away and came back would have the same commit word, though its block
// held other content meanwhile.
TEST(RoomTest, AMovedLargeItemHasACommitWordThatWasNeverThere) {
  TestStore store(16 << 20, 10'000);
  const std::string value(100'000, 'v');
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(store.Put(NumberedName(i), value).status, ReplyStatus::kOk);
  const auto placing = [&](int i) {
    const Slot slot(store->Get(NumberedName(i), {}, At(1)).slot);
    return LoadLargeItemHeader(store.region().data() + slot.offset()).placing;
  };
  std::vector<uint64_t> before, versions;
  for (int i = 0; i < 40; ++i) {
    before.push_back(placing(i));
    versions.push_back(store->Get(NumberedName(i), {}, At(1)).version);
  }
  for (int i = 0; i < 40; i += 2) store.Delete(NumberedName(i));
  while (store->Compact(10'000) > 0) {
  }
  ASSERT_GT(store.Stats().items_moved, 0u);
  size_t changed = 0;
  for (int i = 1; i < 40; i += 2) {
    EXPECT_EQ(store->Get(NumberedName(i), {}, At(1)).version, versions[i]);
    EXPECT_EQ(store.Get(NumberedName(i)), value);
    changed += placing(i) != before[i];
  }
  EXPECT_EQ(changed, store.Stats().items_moved);
}

// An item written over a longer one is moved to a block of its own size when there is one.
TEST(RoomTest, WhatIsLargerThanNeededIsFreeAgainAfterCompaction) {
  TestStore store(16 << 20, 20'000);
  const uint64_t n = Fill(store, std::string(4'000, 'a'));
  while (store.Put(NumberedName(n + store.Stats().items), std::string(64, 'a')).status ==
         ReplyStatus::kOk) {
  }
  for (uint64_t i = 0; i < n; ++i)
    ASSERT_EQ(store.Put(NumberedName(i), "short").status, ReplyStatus::kOk);
  // So much must be free before a round of compaction begins. One page is all that it needs.
  for (uint64_t i = 0; i < n / 16; ++i) store.Delete(NumberedName(i));
  while (store->Tidy(At(1))) {
  }
  EXPECT_GT(Fill(store, std::string(4'000, 'b'), 1'000'000), n * 9 / 10);
}

// Regression: 8 MiB, 6,272 items that live for 2 s, all expired, then 6,000 writes.
TEST(RoomTest, WritesTakeTheRoomOfExpiredItems) {
  for (const size_t value_bytes : {1000, 1'100, 64}) {
    SCOPED_TRACE(value_bytes);
    TestStore store(8 << 20, 80'000);
    const std::string value(value_bytes, 'v');
    uint64_t n = 0;
    while (store.GeneralPut(NumberedName(n), value, {.expiry = ExpiresAt(3000)}, {}, At(1000))
               .status == ReplyStatus::kOk)
      ++n;
    ASSERT_GT(n, 5'000u);
    uint64_t refused = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const ItemAttributes attributes{.expiry = ExpiresAt(5000)};
      refused +=
          store.GeneralPut(NumberedName(1'000'000 + i), value, attributes, {}, At(3000)).status !=
          ReplyStatus::kOk;
    }
    EXPECT_EQ(refused, 0u);
    EXPECT_GT(store.Stats().items_expired, n * 9 / 10);
    EXPECT_NE(store.GeneralPut(NumberedName(1), value, {}, {}, At(4999)).status, ReplyStatus::kOk);
  }
}

TEST(RoomTest, WritesTakeTheSlotsOfExpiredItems) {
  TestStore store(8 << 20, 1'000);
  uint64_t n = 0;
  while (store.GeneralPut(NumberedName(n), "v", {.expiry = ExpiresAt(3000)}, {}, At(1000)).status ==
         ReplyStatus::kOk)
    ++n;
  EXPECT_EQ(store.Stats().refused_index_full, 1u);
  EXPECT_EQ(store.Stats().refused_heap_full, 0u);
  uint64_t refused = 0;
  for (uint64_t i = 0; i < n * 9 / 10; ++i) {
    refused += store.GeneralPut(NumberedName(10'000 + i), "v", {}, {}, At(3000)).status !=
               ReplyStatus::kOk;
  }
  EXPECT_EQ(refused, 0u);
}

// A server's life in virtual time, with constant writes, and tidying as often as Server::Poll does.
TEST(RoomTest, ACacheWithATimeToLiveNeedsLittleMoreThanItsLiveBytes) {
  constexpr uint64_t kTtlMs = 10'000, kWritesPerMs = 4;
  TestStore store(64 << 20, 100'000);
  uint64_t tidy_ms = 0, key = 0, steps = 0;
  double worst = 0;
  for (uint64_t now_ms = 1; now_ms < 4 * kTtlMs; ++now_ms) {
    for (uint64_t i = 0; i < kWritesPerMs; ++i) {
      ASSERT_EQ(store
                    .GeneralPut(NumberedName(key++), std::string(200, 'v'),
                                {.expiry = ExpiresAt(now_ms + kTtlMs)}, {}, At(now_ms))
                    .status,
                ReplyStatus::kOk);
    }
    if (now_ms >= tidy_ms) {
      tidy_ms = now_ms + (store->Tidy(At(now_ms)) ? 10 : 1000);
      ++steps;
    }
    if (now_ms <= 2 * kTtlMs) continue;
    const double live = kTtlMs * kWritesPerMs * SizeClassBytes(SizeClassFor(32 + 16 + 200));
    worst = std::max(worst, store.Stats().heap_bytes / live);
  }
  std::printf("at most %.3f times the live bytes, in %lu steps\n", worst, steps);
  EXPECT_LE(worst, 1.2);
  EXPECT_LE(steps, 10 * 4 * kTtlMs / 1000);
}

// Nothing expires, so the sweep looks at no item: a sweep of a full index is a few loads.
TEST(RoomTest, AHomeIsLookedAtOnlyWhenSomethingInItExpired) {
  TestStore store(8 << 20, 10'000);
  for (int i = 0; i < 9'000; ++i) {
    store.GeneralPut(NumberedName(i), "v", {.expiry = ExpiresAt(i == 4321 ? 2000u : 5000u)}, {},
                     At(1000));
  }
  EXPECT_EQ(store->Sweep(At(1999), 0).more, false);
  EXPECT_EQ(store->Sweep(At(2000), 0).more, true);
  const Swept swept = store->Sweep(At(2000), 1);
  EXPECT_EQ(swept.removed, 1u);
  EXPECT_FALSE(swept.more);
}

TEST(RoomTest, AMovedItemKeepsAllButItsPlace) {
  TestStore store(8 << 20, 10'000);
  for (int i = 0; i < 2'000; ++i) {
    store.GeneralPut(NumberedName(i), std::string(i, 'v'),
                     {.flags = 1000u + i, .expiry = ExpiresAt(9'999'999)}, {}, At(1));
  }
  for (int i = 0; i < 2'000; i += 2) store.Delete(NumberedName(i));
  std::vector<ReadOutcome> before;
  for (int i = 1; i < 2'000; i += 2) before.push_back(store->Get(NumberedName(i), {}, At(1)));
  for (int round = 0; round < 3; ++round) store->Compact(10'000);
  EXPECT_GT(store.Stats().items_moved, 100u);
  uint64_t moved = 0;
  for (int i = 1; i < 2'000; i += 2) {
    const ReadOutcome after = store->Get(NumberedName(i), {}, At(1));
    const ReadOutcome& was = before[i / 2];
    ASSERT_EQ(after.version, was.version);
    ASSERT_EQ(after.attributes.flags, was.attributes.flags);
    ASSERT_EQ(after.attributes.expiry.ms(), was.attributes.expiry.ms());
    ASSERT_LE(Slot(after.slot).offset(), Slot(was.slot).offset());
    ASSERT_EQ(store.Get(NumberedName(i)), std::string(i, 'v'));
    moved += after.slot != was.slot;
    const WriteConditions same{.only_if_version = was.version};
    ASSERT_EQ(store.GeneralPut(NumberedName(i), std::string(i, 'w'), {}, same, At(1)).status,
              ReplyStatus::kOk);
    ASSERT_EQ(store.Get(NumberedName(i)), std::string(i, 'w'));
  }
  EXPECT_GT(moved, 100u);
  EXPECT_EQ(store.Stats().heap_bytes, [&] {
    uint64_t bytes = 0;
    for (int i = 1; i < 2'000; i += 2) bytes += store->heap().SealedBlockBytes(ItemBytes(16, i));
    return bytes;
  }());
}

TEST(RoomTest, AHeapThatNobodyChangesComesToRest) {
  TestStore store(8 << 20, 10'000);
  std::mt19937_64 random(1);
  for (int i = 0; i < 3'000; ++i) store.Put(NumberedName(i), std::string(random() % 3'000, 'v'));
  for (int i = 0; i < 3'000; i += 3) store.Delete(NumberedName(i));
  while (store->Compact(10'000) > 0) {
  }
  const uint64_t moved = store.Stats().items_moved;
  store->Compact(10'000);
  EXPECT_EQ(store.Stats().items_moved, moved);
  for (int i = 0; i < 10 && store->Tidy(At(1)); ++i) {
  }
  EXPECT_FALSE(store->Tidy(At(1)));
}

// Regression: a heap of small items, 99 % of them deleted at random.
class SurvivorsTest : public testing::TestWithParam<size_t> {
 protected:
  static constexpr size_t kRegion = 96 << 20;
  static constexpr uint64_t kSlots = 700'000;

  void FillAndThin(TestStore& store) {
    const uint64_t n = Fill(store, std::string(64, 's'));
    std::mt19937_64 random(7);
    for (uint64_t i = 0; i < n; ++i) {
      if (random() % 100 != 0) store.Delete(NumberedName(i));
    }
  }
  // Puts items until `refusals` were refused. Returns how many were taken.
  uint64_t FillWith(TestStore& store, size_t value_bytes, int refusals) {
    const std::string value(value_bytes, 'l');
    uint64_t taken = 0;
    for (uint64_t i = 0; refusals > 0; ++i) {
      const bool ok = store.Put(NumberedName(1'000'000'000 + i), value).status == ReplyStatus::kOk;
      taken += ok;
      refusals -= !ok;
    }
    return taken;
  }
};

TEST_P(SurvivorsTest, DoNotPinTheHeap) {
  TestStore empty(kRegion, kSlots), idle(kRegion, kSlots), busy(kRegion, kSlots);
  const uint64_t all = FillWith(empty, GetParam(), 1);
  FillAndThin(idle);
  int steps = 1;
  for (; idle->Tidy(At(1)); ++steps) {
  }
  const uint64_t after_idle = FillWith(idle, GetParam(), 1);
  // Without idle time, the refused writes do the work.
  FillAndThin(busy);
  const uint64_t after_refusals = FillWith(busy, GetParam(), 1000);
  std::printf(
      "%zu bytes: %lu in an empty heap; %lu (%.1f %%) after %d idle steps and %lu moves; "
      "%lu (%.1f %%) while 1,000 writes were refused\n",
      GetParam(), all, after_idle, 100.0 * after_idle / all, steps, idle.Stats().items_moved,
      after_refusals, 100.0 * after_refusals / all);
  EXPECT_GE(after_idle * 100, all * 90);
  // Some long values came into the midst of it.
  EXPECT_GE(after_refusals * 100, all * 85);
  EXPECT_LE(steps, 200);
}

INSTANTIATE_TEST_SUITE_P(Values, SurvivorsTest, testing::Values(3'000, 1 << 20),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace gannet
