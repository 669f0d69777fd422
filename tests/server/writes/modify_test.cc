// Writes that make an item's new content from the old one, expiry by a clock that goes on during an
// operation, and the removal of all items.

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/writes/counter.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

constexpr size_t kRegionBytes = 8 << 20;
constexpr uint64_t kNowMs = 1'000'000;

class ModifyTest : public testing::Test {
 protected:
  WriteOutcome Append(std::string_view key, std::string_view piece,
                      const WriteConditions& conditions = {}) {
    return store_.Append(key, piece, Writes::End::kBack, {.flags = 7}, conditions, At(kNowMs));
  }
  WriteOutcome Prepend(std::string_view key, std::string_view piece) {
    return store_.Append(key, piece, Writes::End::kFront, {.flags = 7}, {}, At(kNowMs));
  }
  WriteOutcome Increment(std::string_view key, int64_t delta, int64_t initial = 0,
                         const WriteConditions& conditions = {}) {
    return store_.Increment(key, {delta, initial}, {.flags = 7}, conditions, At(kNowMs));
  }
  WriteOutcome Touch(std::string_view key, uint64_t expiry_ms,
                     const WriteConditions& conditions = {}, uint64_t now_ms = kNowMs) {
    return store_.Touch(key, expiry_ms, conditions, At(now_ms));
  }
  ReadOutcome Look(std::string_view key, uint64_t now_ms = kNowMs) {
    thread_local std::string value(kValueBytesMax, '\0');  // made once
    return store_->Get(key, std::as_writable_bytes(std::span(value)), At(now_ms));
  }
  std::optional<std::string> Get(std::string_view key, uint64_t now_ms = kNowMs) {
    return store_.Get(key, now_ms);
  }

  TestStore store_{kRegionBytes};
};

TEST_F(ModifyTest, PiecesAreAddedAtBothEndsOfValuesOfAllLengths) {
  for (const size_t bytes : {0, 1, 7, 8, 60, 900, 970, 980, 1000, 5000, 100'000}) {
    for (const size_t piece : {0, 1, 8, 9, 100, 3782}) {
      SCOPED_TRACE(testing::Message() << bytes << " " << piece);
      const std::string old(bytes, 'o');
      const std::string added(piece, 'a');
      ASSERT_EQ(store_
                    .GeneralPut("key", old, {.flags = 3, .expiry = ExpiresAt(kNowMs + 50)}, {},
                                At(kNowMs))
                    .status,
                ReplyStatus::kOk);
      const uint64_t version = Look("key").version;
      ASSERT_EQ(Append("key", added).status, ReplyStatus::kOk);
      ASSERT_EQ(Get("key"), old + added);
      const WriteOutcome prepended = Prepend("key", added);
      ASSERT_EQ(prepended.status, ReplyStatus::kOk);
      ASSERT_EQ(Get("key"), added + old + added);
      const ReadOutcome read = Look("key");
      EXPECT_EQ(read.version, prepended.version);
      EXPECT_EQ(read.slot, prepended.slot);
      EXPECT_GT(read.version, version);
      EXPECT_EQ(read.attributes.flags, 3u);
      EXPECT_EQ(read.attributes.expiry.ms(), kNowMs + 50);
    }
  }
  ASSERT_EQ(store_.Delete("key", kNowMs).status, ReplyStatus::kOk);
  EXPECT_EQ(store_.Stats().heap_bytes, 0u);
}

TEST_F(ModifyTest, AnAbsentKeyGetsTheAttributesOfTheRequestUnlessItMustBePresent) {
  EXPECT_EQ(Append("key", "v", {.only_if_present = true}).status, ReplyStatus::kNotFound);
  EXPECT_EQ(Increment("n", 1, 0, {.only_if_present = true}).status, ReplyStatus::kNotFound);
  EXPECT_EQ(store_.GeneralPut("key", "v", {}, {.only_if_present = true}, At(kNowMs)).status,
            ReplyStatus::kNotFound);
  EXPECT_EQ(store_.Stats().items, 0u);
  EXPECT_EQ(Append("key", "v").status, ReplyStatus::kOk);
  EXPECT_EQ(Get("key"), "v");
  EXPECT_EQ(Look("key").attributes.flags, 7u);
  EXPECT_EQ(store_.GeneralPut("key", "w", {}, {.only_if_present = true}, At(kNowMs)).status,
            ReplyStatus::kOk);
}

TEST_F(ModifyTest, AValueThatWouldBeTooLongStaysAsItIs) {
  const std::string value(kAppendedBytesMax - 1, 'v');
  const uint64_t version = store_.Put("key", value).version;
  const WriteOutcome refused = Append("key", "xy");
  EXPECT_EQ(refused.status, ReplyStatus::kTooLong);
  EXPECT_EQ(refused.version, version);
  EXPECT_EQ(Get("key"), value);
  EXPECT_EQ(Append("key", "x").status, ReplyStatus::kOk);
  EXPECT_EQ(Get("key"), value + "x");
}

TEST_F(ModifyTest, CountersCount) {
  const WriteOutcome first = Increment("n", 5, 10);
  EXPECT_EQ(first.status, ReplyStatus::kOk);
  EXPECT_EQ(first.number, 15);
  EXPECT_EQ(Get("n"), "15");
  EXPECT_EQ(Look("n").attributes.flags, 7u);
  const WriteOutcome second = Increment("n", -20);
  EXPECT_EQ(second.number, -5);
  EXPECT_GT(second.version, first.version);
  EXPECT_EQ(Get("n"), "-5");
  int64_t number = -5;
  for (int64_t delta = 1; delta < (int64_t{1} << 60); delta *= 3) {
    number += delta;
    ASSERT_EQ(Increment("n", delta).number, number);
    ASSERT_EQ(Get("n"), std::to_string(number));
  }
}

TEST_F(ModifyTest, WhatIsNoCounterOrDoesNotFitIsRefused) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const std::string_view text :
       {"", "x", "1x", " 1", "1 ", "+1", "-", "1.0", "9223372036854775808", "-9223372036854775809",
        "11111111111111111111111", "007", "-0", "-"}) {
    const uint64_t version = store_.Put("n", text).version;
    const WriteOutcome refused = Increment("n", 1);
    EXPECT_EQ(refused.status, ReplyStatus::kNotANumber) << text;
    EXPECT_EQ(refused.version, version);
    EXPECT_EQ(Get("n"), text);
  }
  store_.Put("n", std::to_string(kMax - 1));
  EXPECT_EQ(Increment("n", 1).status, ReplyStatus::kOk);
  EXPECT_EQ(Increment("n", 1).status, ReplyStatus::kOutOfRange);
  EXPECT_EQ(Get("n"), std::to_string(kMax));
  EXPECT_EQ(Increment("new", -2, -kMax).status, ReplyStatus::kOutOfRange);
  EXPECT_EQ(Get("new"), std::nullopt);
}

TEST_F(ModifyTest, ATouchChangesTheExpiryAndTheVersionAndNothingElse) {
  for (const size_t bytes : {0, 64, 1000, 5000, 1 << 20}) {
    const std::string value(bytes, 'v');
    ASSERT_EQ(store_
                  .GeneralPut("key", value, {.flags = 9, .expiry = ExpiresAt(kNowMs + 10)}, {},
                              At(kNowMs))
                  .status,
              ReplyStatus::kOk);
    const ReadOutcome before = Look("key");
    const WriteOutcome touched = Touch("key", kNowMs + 100);
    EXPECT_EQ(touched.status, ReplyStatus::kOk);
    EXPECT_EQ(touched.slot, before.slot);
    EXPECT_GT(touched.version, before.version);
    EXPECT_EQ(Get("key", kNowMs + 99), value);
    const ReadOutcome after = Look("key", kNowMs + 99);
    EXPECT_EQ(after.version, touched.version);
    EXPECT_EQ(after.attributes.flags, 9u);
    EXPECT_EQ(after.attributes.expiry.ms(), kNowMs + 100);
    EXPECT_EQ(Get("key", kNowMs + 100), std::nullopt);
    EXPECT_EQ(Touch("key", 0, {}, kNowMs + 100).status, ReplyStatus::kNotFound);
  }
  ASSERT_EQ(
      store_.GeneralPut("key", "v", {.expiry = ExpiresAt(kNowMs + 10)}, {}, At(kNowMs)).status,
      ReplyStatus::kOk);
  EXPECT_EQ(store_.Stats().items_expiring, 1u);
  EXPECT_EQ(Touch("key", 0).status, ReplyStatus::kOk);
  EXPECT_EQ(store_.Stats().items_expiring, 0u);
  EXPECT_EQ(Get("key", kNowMs + 1'000'000), "v");
}

// The sweep finds an item by its new expiry.
TEST_F(ModifyTest, ATouchedItemIsSweptWhenItsNewTimeIsOver) {
  ASSERT_EQ(store_.GeneralPut("key", "v", {}, {}, At(kNowMs)).status, ReplyStatus::kOk);
  ASSERT_EQ(Touch("key", kNowMs + 100).status, ReplyStatus::kOk);
  EXPECT_EQ(store_.Stats().items_expiring, 1u);
  EXPECT_EQ(store_->Sweep(At(kNowMs + 99), 1'000'000).removed, 0u);
  EXPECT_EQ(store_->Sweep(At(kNowMs + 100), 1'000'000).removed, 1u);
}

TEST_F(ModifyTest, ConditionsAreThoseOfAPut) {
  const uint64_t version = store_.Put("key", "1").version;
  store_.LockWordOf("key") = 55;
  const auto refused = [&](const WriteConditions& conditions, ReplyStatus status) {
    EXPECT_EQ(Append("key", "x", conditions).status, status);
    EXPECT_EQ(Increment("key", 1, 0, conditions).status, status);
    EXPECT_EQ(Touch("key", kNowMs + 1, conditions).status, status);
    EXPECT_EQ(Get("key"), "1");
    EXPECT_EQ(Look("key").version, version);
  };
  refused({.only_if_version = version + 1}, ReplyStatus::kVersionMismatch);
  refused({.only_if_version = 0}, ReplyStatus::kVersionMismatch);
  refused({.only_if_version = version, .under_lock = 54}, ReplyStatus::kLockLost);
  const WriteOutcome done = Increment("key", 1, 0, {.only_if_version = version, .under_lock = 55});
  EXPECT_EQ(done.status, ReplyStatus::kOk);
  EXPECT_EQ(Append("key", "3", {.only_if_version = done.version}).status, ReplyStatus::kOk);
  EXPECT_EQ(Get("key"), "23");
  EXPECT_EQ(Increment("absent", 1, 0, {.only_if_version = 0}).status, ReplyStatus::kOk);
}

TEST_F(ModifyTest, AnExpiredItemIsAbsentForAll) {
  const auto expired = [&](std::string_view key) {
    ASSERT_EQ(
        store_.GeneralPut(key, "12", {.flags = 1, .expiry = ExpiresAt(kNowMs)}, {}, At(kNowMs - 1))
            .status,
        ReplyStatus::kOk);
  };
  expired("a");
  EXPECT_EQ(Append("a", "3").status, ReplyStatus::kOk);
  EXPECT_EQ(Get("a"), "3");
  EXPECT_EQ(Look("a").attributes.expiry.ms(), 0u);
  expired("b");
  EXPECT_EQ(Increment("b", 1, 100).number, 101);
  expired("c");
  EXPECT_EQ(Touch("c", kNowMs + 5).status, ReplyStatus::kNotFound);
  expired("d");
  EXPECT_EQ(store_.GeneralPut("d", "v", {}, {.only_if_present = true}, At(kNowMs)).status,
            ReplyStatus::kNotFound);
}

// In a full heap a counter of the same class, or of a smaller one, is never refused.
TEST_F(ModifyTest, AFullHeapStillCounts) {
  TestStore store(1 << 20, 1000);
  const std::string key(16, 'n');  // "99999" and "100000" have different classes of 16 bytes
  const auto count = [&](int64_t delta) {
    return store.Increment(key, {delta, 0}, {}, {}, At(kNowMs)).status;
  };
  ASSERT_EQ(count(10'000'000'000'000'000), ReplyStatus::kOk);
  for (int i = 0;
       store.Put(absl::StrCat("filler", i), std::string(40'000, 'f')).status == ReplyStatus::kOk;
       ++i) {
  }
  for (int i = 0; store.Put(absl::StrCat("f", i), std::string(50, 'f')).status == ReplyStatus::kOk;
       ++i) {
  }
  EXPECT_EQ(count(1), ReplyStatus::kOk);
  EXPECT_EQ(count(-10'000'000'000'000'000), ReplyStatus::kOk);
  EXPECT_EQ(store.Get(key), "1");
}

// A client that saw that an item's time was over may tell others. Their requests must not find it,
// though the worker read the time before they came.
TEST_F(ModifyTest, TheClockDecidesNotATimeReadBefore) {
  ASSERT_EQ(
      store_.GeneralPut("key", "1", {.expiry = ExpiresAt(kNowMs + 10)}, {}, At(kNowMs)).status,
      ReplyStatus::kOk);
  SetClock clock(kNowMs + 9);
  store_->UseClock(&clock);
  EXPECT_EQ(Get("key"), "1");
  clock.ms = kNowMs + 10;
  EXPECT_EQ(Touch("key", 0).status, ReplyStatus::kNotFound);
  EXPECT_EQ(Get("key"), std::nullopt);
  EXPECT_EQ(store_.Stats().items_expired, 1u);
}

TEST_F(ModifyTest, AFlushRemovesEverythingInBoundedSteps) {
  TestStore store(64 << 20, 200'000);
  constexpr int kItems = 100'000;
  for (int i = 0; i < kItems; ++i) {
    ASSERT_EQ(store.Put(absl::StrCat("key", i), "v").status, ReplyStatus::kOk);
  }
  uint64_t removed = 0;
  uint64_t steps = 0;
  for (uint64_t position = 0;;) {
    const Writes::Flushed flushed = store.FlushSome(position);
    EXPECT_LE(flushed.removed, 256u + 3 * kSlotsPerBucket);
    removed += flushed.removed;
    ++steps;
    if (flushed.next == 0) break;
    ASSERT_GT(flushed.next, position);
    position = flushed.next;
  }
  EXPECT_EQ(removed, kItems);
  EXPECT_EQ(store.Stats().items, 0u);
  EXPECT_EQ(store.Stats().heap_bytes, 0u);
  EXPECT_GE(steps, kItems / (256 + 3 * kSlotsPerBucket));
  EXPECT_EQ(store.FlushSome(UINT64_MAX).next, 0u) << "a position from a hostile peer";
}

// Half a million items that expire at once are removed a few at a time, so that no lock is held for
// long, and a thread that removes them can do other things in between.
TEST_F(ModifyTest, ManyItemsThatExpireAtOnceAreRemovedInBoundedSteps) {
  constexpr int kItems = 500'000;
  TestStore store(256 << 20, 600'000);
  for (int i = 0; i < kItems; ++i) {
    ASSERT_EQ(store
                  .GeneralPut(absl::StrCat("key", i), "v", {.expiry = ExpiresAt(kNowMs + i % 1000)},
                              {}, At(kNowMs))
                  .status,
              ReplyStatus::kOk);
  }
  size_t removed = 0;
  size_t steps = 0;
  for (bool more = true; more; ++steps) {
    const Swept swept = store->Sweep(At(kNowMs + 1000), 256);
    ASSERT_LE(swept.removed, 256u * 3 * kSlotsPerBucket);
    removed += swept.removed;
    more = swept.more;
  }
  EXPECT_EQ(removed, kItems);
  EXPECT_GT(steps, 100u);
}

TEST(CounterTest, WhatIsFormattedIsParsed) {
  char text[kCounterBytesMax];
  for (const int64_t number : {int64_t{0}, int64_t{-1}, int64_t{123}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(ParseCounter(FormatCounter(number, text)), number);
  }
}

}  // namespace
}  // namespace gannet
