// Writes that wait for the disk. The disk is a number: how far what was recorded is safe.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/writes/writes.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/writes/recorded_changes.h"

namespace gannet {
namespace {

using Decided = Writes::Decided;

class WaitingTest : public testing::Test {
 protected:
  void Make(size_t region_bytes, uint64_t index_slots = 0,
            TestStore::OnFull on_full = TestStore::OnFull::kReject) {
    store_.emplace(region_bytes, index_slots, /*index_grows=*/false, on_full);
    (*store_)->UseSink(&sink_);
    writes_ = &store_->writes();
    writes_->WaitFor(&sink_);
  }
  void SetUp() override { Make(1 << 20); }

  Decided Put(std::string_view key, std::string_view value,
              const WriteConditions& conditions = {}) {
    return writes_->Put(key, value, {}, conditions, At(kNowMs));
  }
  Decided Delete(std::string_view key) { return writes_->Delete(key, {}, At(kNowMs)); }
  std::optional<std::string> Seen(std::string_view key) { return store_->Get(key, kNowMs); }
  void PublishAll() { writes_->Publish(sink_.end); }
  static ReplyStatus StatusOf(const Decided& decided) { return decided.outcome.status; }

  static constexpr uint64_t kNowMs = 1'000;
  RecordedChanges sink_;
  std::optional<TestStore> store_;
  Writes* writes_ = nullptr;
};

TEST_F(WaitingTest, NobodySeesAWriteBeforeItsRecordIsSafe) {
  const Decided first = Put("key", "one");
  EXPECT_EQ(StatusOf(first), ReplyStatus::kOk);
  EXPECT_EQ(Seen("key"), std::nullopt);
  EXPECT_EQ(writes_->published(), 0u);
  PublishAll();
  EXPECT_EQ(writes_->published(), first.ticket);
  EXPECT_EQ(Seen("key"), "one");
  const Decided second = Put("key", "two");
  const Decided third = Put("other", "three");
  EXPECT_EQ(Seen("key"), "one");
  writes_->Publish(2);
  EXPECT_EQ(writes_->published(), second.ticket);
  EXPECT_EQ(Seen("key"), "two");
  EXPECT_EQ(Seen("other"), std::nullopt);
  PublishAll();
  EXPECT_EQ(writes_->published(), third.ticket);
  EXPECT_EQ(writes_->published_position(), 3u);
}

// Otherwise a worker that finds nothing to publish any more could miss its own ticket, and sleep.
TEST_F(WaitingTest, WhoFindsAPositionPublishedFindsItsTickets) {
  constexpr int kPuts = 2'000;
  std::vector<Decided> puts;
  for (int i = 0; i < kPuts; ++i) puts.push_back(Put("key" + std::to_string(i % 100), "value"));
  std::thread publisher([&] {
    for (uint64_t safe = 1; safe <= kPuts; ++safe) writes_->Publish(safe);
  });
  // Positions here are 1, 2, 3 ..., and so are tickets.
  int missed = 0;
  for (uint64_t position = 0; position < kPuts;) {
    position = writes_->published_position();
    missed += writes_->published() < position;
  }
  publisher.join();
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(writes_->published(), puts.back().ticket);
}

// Several workers publish, and each has its own answers afterwards.
TEST_F(WaitingTest, WhoeverPublishesHasItsTicketsThen) {
  constexpr int kPuts = 2'000;
  for (int i = 0; i < kPuts; ++i) Put("key" + std::to_string(i % 100), "value" + std::to_string(i));
  std::vector<std::thread> workers;
  std::atomic<int> late{0};
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      for (uint64_t safe = 1; safe <= kPuts; ++safe) {
        writes_->Publish(safe);
        late += writes_->published() < safe;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(late, 0);
  EXPECT_EQ(Seen("key99"), "value1999");
}

TEST_F(WaitingTest, DecidesAgainstTheKeysWaitingWrite) {
  const Decided put = Put("key", "5");
  EXPECT_EQ(StatusOf(Put("key", "x", {.only_if_absent = true})), ReplyStatus::kExists);
  EXPECT_EQ(StatusOf(Put("key", "x", {.only_if_version = 0})), ReplyStatus::kVersionMismatch);
  EXPECT_EQ(StatusOf(Put("key", "6", {.only_if_version = put.outcome.version})), ReplyStatus::kOk);
  const Decided sum = writes_->Increment("key", {.delta = 4, .initial = 0}, {}, {}, At(kNowMs));
  EXPECT_EQ(sum.outcome.number, 10);
  EXPECT_EQ(StatusOf(writes_->Append("key", "0", Writes::End::kBack, {}, {}, At(kNowMs))),
            ReplyStatus::kOk);
  EXPECT_EQ(StatusOf(Delete("key")), ReplyStatus::kOk);
  EXPECT_EQ(StatusOf(Delete("key")), ReplyStatus::kNotFound);
  EXPECT_EQ(StatusOf(writes_->Touch("key", Expiry(), {}, At(kNowMs))), ReplyStatus::kNotFound);
  EXPECT_EQ(StatusOf(Put("key", "7", {.only_if_absent = true})), ReplyStatus::kOk);
  EXPECT_EQ(Seen("key"), std::nullopt);
  PublishAll();
  EXPECT_EQ(Seen("key"), "7");
  EXPECT_EQ(sink_.changes.size(), 6u) << "a refused write was recorded";
}

TEST_F(WaitingTest, ARefusalWaitsForTheWriteThatItTellsOf) {
  EXPECT_EQ(Delete("nobody").ticket, 0u);
  const Decided put = Put("key", "value");
  const Decided refused = Put("key", "x", {.only_if_absent = true});
  EXPECT_GT(refused.ticket, put.ticket);
  EXPECT_LT(writes_->published(), refused.ticket);
  PublishAll();
  EXPECT_GE(writes_->published(), refused.ticket);
  EXPECT_EQ(Put("key", "x", {.only_if_absent = true}).ticket, 0u);
}

TEST_F(WaitingTest, AWaitingItemExpires) {
  EXPECT_EQ(StatusOf(writes_->Put("key", "a", {.expiry = ExpiresAt(kNowMs + 10)}, {}, At(kNowMs))),
            ReplyStatus::kOk);
  EXPECT_EQ(StatusOf(writes_->Put("key", "b", {}, {.only_if_absent = true}, At(kNowMs + 9))),
            ReplyStatus::kExists);
  EXPECT_EQ(StatusOf(writes_->Put("key", "b", {}, {.only_if_absent = true}, At(kNowMs + 10))),
            ReplyStatus::kOk);
  PublishAll();
  EXPECT_EQ(Seen("key"), "b");
}

TEST_F(WaitingTest, ALockIsComparedWhenTheWriteIsDecided) {
  store_->LockWordOf("key") = 77;
  EXPECT_EQ(StatusOf(Put("key", "x", {.under_lock = 76})), ReplyStatus::kLockLost);
  EXPECT_EQ(StatusOf(Put("key", "value", {.only_if_version = 0, .under_lock = 77})),
            ReplyStatus::kOk);
  store_->LockWordOf("key") = 0;
  PublishAll();
  EXPECT_EQ(Seen("key"), "value");
}

TEST_F(WaitingTest, AFlushRemovesWhatIsThereOnceItIsSafe) {
  Put("a", "1");
  Put("b", "2");
  PublishAll();
  Put("c", "3");
  uint64_t removed = 0;
  uint64_t ticket = 0;
  for (uint64_t position = 0;;) {
    const auto flushed = writes_->FlushSome(position, At(kNowMs));
    removed += flushed.removed;
    ticket = std::max(ticket, flushed.ticket);
    position = flushed.next;
    if (position == 0) break;
  }
  EXPECT_EQ(removed, 2u);
  EXPECT_EQ(Seen("a"), "1");
  PublishAll();
  EXPECT_GE(writes_->published(), ticket);
  EXPECT_EQ(Seen("a"), std::nullopt);
  EXPECT_EQ(Seen("b"), std::nullopt);
}

TEST_F(WaitingTest, ChangesALargeValue) {
  Make(8 << 20);
  const std::string value(1 << 20, 'v');
  Put("key", value);
  EXPECT_EQ(StatusOf(writes_->Touch("key", ExpiresAt(kNowMs + 5), {}, At(kNowMs))),
            ReplyStatus::kOk);
  EXPECT_EQ(StatusOf(writes_->Append("key", "+", Writes::End::kFront, {}, {}, At(kNowMs))),
            ReplyStatus::kTooLong);
  PublishAll();
  std::string seen(value.size(), '\0');
  const ReadOutcome read =
      (*store_)->Get("key", std::as_writable_bytes(std::span(seen)), At(kNowMs));
  EXPECT_EQ(read.attributes.expiry.ms(), kNowMs + 5);
  EXPECT_EQ(seen, value);
}

TEST_F(WaitingTest, ARefusedWriteLeavesNothing) {
  Put("key", "value");
  PublishAll();
  const uint64_t bytes = store_->Stats().heap_bytes;
  sink_.refuses = true;
  EXPECT_EQ(StatusOf(Put("key", "other")), ReplyStatus::kDiskRefuses);
  EXPECT_EQ(StatusOf(Delete("key")), ReplyStatus::kDiskRefuses);
  sink_.refuses = false;
  EXPECT_EQ(StatusOf(Put("key", "other", {.only_if_absent = true})), ReplyStatus::kExists);
  PublishAll();
  EXPECT_EQ(Seen("key"), "value");
  EXPECT_EQ(store_->Stats().heap_bytes, bytes);
  {
    Writes others(&**store_);
    others.WaitFor(&sink_);
    EXPECT_EQ(StatusOf(others.Put("key", "waits", {}, {}, At(kNowMs))), ReplyStatus::kOk);
    EXPECT_GT(store_->Stats().heap_bytes, bytes);
  }
  EXPECT_EQ(store_->Stats().heap_bytes, bytes);
}

TEST_F(WaitingTest, AfterTheDiskFailedNothingIsAnsweredAnyMore) {
  const Decided put = Put("key", "value");
  writes_->Fail();
  sink_.refuses = true;
  EXPECT_EQ(StatusOf(Put("key", "x", {.only_if_absent = true})), ReplyStatus::kDiskRefuses);
  EXPECT_LT(writes_->published(), put.ticket);
  EXPECT_EQ(Seen("key"), std::nullopt);
}

// Fills an index that does not grow. The writes that find no slot are undone.
TEST_F(WaitingTest, UndoesWritesThatTheIndexHasNoSlotFor) {
  Make(1 << 20, /*index_slots=*/64);
  std::vector<Decided> puts;
  for (int i = 0; i < 200; ++i) puts.push_back(Put("key" + std::to_string(i), "value"));
  const Decided behind = Delete("key199");
  EXPECT_EQ(StatusOf(behind), ReplyStatus::kOk) << "it is decided behind one that is undone";
  writes_->Publish(puts.size() + 1);
  EXPECT_GE(writes_->published(), behind.ticket);
  int undone = 0;
  for (size_t i = 0; i < puts.size(); ++i) {
    const auto it = writes_->TakeUndone(puts[i].ticket);
    EXPECT_EQ(Seen("key" + std::to_string(i)) == std::nullopt, it.has_value() || i == 199);
    if (!it) continue;
    ++undone;
    EXPECT_EQ(it->status, ReplyStatus::kIndexFull);
    EXPECT_GT(it->ticket, writes_->published()) << "the undoing is not safe yet";
    EXPECT_FALSE(writes_->TakeUndone(puts[i].ticket).has_value());
  }
  EXPECT_GT(undone, 50);
  EXPECT_EQ(writes_->TakeUndone(behind.ticket).has_value(), undone > 0);
  EXPECT_EQ(sink_.changes.back(), "delete key199");
  PublishAll();
  EXPECT_EQ(writes_->published(), puts.size() + 1 + undone);
}

// Their OK is in the stream already. Who has the deletion must know that it is not true any more.
TEST_F(WaitingTest, RecordsWhichRequestsAnUndoUndoes) {
  Make(1 << 20, /*index_slots=*/64);
  const uint8_t put = static_cast<uint8_t>(Opcode::kPut);
  const ChangeOrigin first = {.session_token = 7, .sequence = 1, .opcode = put};
  const ChangeOrigin second = {.session_token = 8, .sequence = 5, .opcode = put};
  int filled = 0;
  while (Seen("key" + std::to_string(filled - 1)) || filled == 0) {
    Put("key" + std::to_string(filled++), "value");
    PublishAll();
  }
  const Decided undone = Put("another", "1", {.origin = &first});
  const Decided refused = Put("another", "2", {.only_if_absent = true, .origin = &second});
  EXPECT_EQ(StatusOf(refused), ReplyStatus::kExists);
  Put("another", "3");
  sink_.changes.clear();
  PublishAll();
  EXPECT_THAT(sink_.changes, testing::ElementsAre("answer 7.1 12 undone", "answer 8.5 12 undone",
                                                  "delete another"));
  EXPECT_TRUE(writes_->TakeUndone(undone.ticket).has_value());
}

// Otherwise the stream would grow with each try.
TEST_F(WaitingTest, AnUndoThatIsRefusedRecordsNothing) {
  const ChangeOrigin origin = {
      .session_token = 7, .sequence = 1, .opcode = static_cast<uint8_t>(Opcode::kPut)};
  writes_->Put("key", "1", {.expiry = ExpiresAt(kNowMs + 10)}, {}, At(kNowMs));
  PublishAll();
  const Decided undone = Put("key", "2", {.only_if_present = true, .origin = &origin});
  ASSERT_EQ(StatusOf(undone), ReplyStatus::kOk);
  const SetClock later(kNowMs + 10);
  (*store_)->UseClock(&later);
  sink_.changes.clear();
  sink_.refuses = true;
  PublishAll();
  PublishAll();
  EXPECT_THAT(sink_.changes, testing::IsEmpty());
  EXPECT_LT(writes_->published(), undone.ticket);
  sink_.refuses = false;
  PublishAll();
  EXPECT_THAT(sink_.changes, testing::ElementsAre("answer 7.1 10 undone", "delete key"));
  EXPECT_GE(writes_->published(), undone.ticket);
}

// Otherwise it would be told that the key is absent, and find the write there after a crash.
TEST_F(WaitingTest, ARefusalThatTellsOfAnUndoWaitsForItsDeletion) {
  Make(1 << 20, /*index_slots=*/64);
  for (int i = 0; i < 200; ++i) Put("key" + std::to_string(i), "value");
  writes_->Publish(200);
  ASSERT_EQ(sink_.changes.back(), "delete key199");
  const Decided refused = Delete("key199");
  EXPECT_EQ(StatusOf(refused), ReplyStatus::kNotFound);
  EXPECT_GT(refused.ticket, writes_->published());
  PublishAll();
  EXPECT_GE(writes_->published(), refused.ticket);
  EXPECT_EQ(Delete("key199").ticket, 0u) << "nothing waits any more";
}

// Another worker may undo the write of which a refusal tells before the refusal is recorded.
TEST_F(WaitingTest, RecordsNoAnswerThatWasUndoneAlready) {
  const SessionAnswer answer = {.sequence = 5, .words = {}, .opcode = 2, .status = 2, .zero = {}};
  const SessionRecord record = SessionRecord::Answers(8, std::span(&answer, 1));
  Put("key", "value");
  const Decided refused = Put("key", "x", {.only_if_absent = true});
  sink_.changes.clear();
  writes_->RecordAnswer(refused.ticket, record);
  EXPECT_THAT(sink_.changes, testing::ElementsAre("answer 8.5 2"));

  Make(1 << 20, /*index_slots=*/64);
  std::vector<Decided> refusals;
  for (int i = 0; i < 200; ++i) {
    Put("key" + std::to_string(i), "value");
    refusals.push_back(Put("key" + std::to_string(i), "x", {.only_if_absent = true}));
  }
  PublishAll();
  sink_.changes.clear();
  ASSERT_FALSE(Seen("key199").has_value());
  writes_->RecordAnswer(refusals[199].ticket, record);
  EXPECT_THAT(sink_.changes, testing::IsEmpty());
  EXPECT_TRUE(writes_->TakeUndone(refusals[199].ticket).has_value());
}

class ExpiryOfWaitingTest : public WaitingTest, private ServerTimeSource {
 protected:
  static constexpr uint64_t kExpiryMs = kNowMs + 100;

  void SetUp() override {
    WaitingTest::SetUp();
    (*store_)->UseClock(this);
  }
  // Returns its version. It is published.
  uint64_t PutExpiring(std::string_view key, std::string_view value) {
    const Decided put =
        writes_->Put(key, value, {.expiry = ExpiresAt(kExpiryMs)}, {}, At(clock_ms_));
    PublishAll();
    return put.outcome.version;
  }
  // Publishes all that waits, after the item has expired.
  void PublishLate() {
    clock_ms_ = kExpiryMs;
    PublishAll();
    EXPECT_EQ(Seen("key"), std::nullopt);
  }
  void ExpectAgain(const Decided& decided) {
    ASSERT_EQ(StatusOf(decided), ReplyStatus::kOk);
    const auto undone = writes_->TakeUndone(decided.ticket);
    ASSERT_TRUE(undone.has_value());
    EXPECT_EQ(undone->status, ReplyStatus::kTryAgain);
    PublishAll();
    EXPECT_LE(undone->ticket, writes_->published());
  }

  ServerTime Time() const override { return At(clock_ms_); }

  uint64_t clock_ms_ = kNowMs;
};

// Somebody may have found the key absent meanwhile.
TEST_F(ExpiryOfWaitingTest, WhatCountsOnAnItemThatExpiredIsDecidedAgain) {
  const std::vector<std::function<Decided(uint64_t version)>> writes = {
      [&](uint64_t version) { return Put("key", "new", {.only_if_version = version}); },
      [&](uint64_t) { return Put("key", "new", {.only_if_present = true}); },
      [&](uint64_t) { return Put("key", std::string(5'000, 'n'), {.only_if_present = true}); },
      [&](uint64_t) { return writes_->Touch("key", Expiry(), {}, At(clock_ms_)); },
      [&](uint64_t) {
        return writes_->Append("key", "1", Writes::End::kBack, {}, {}, At(clock_ms_));
      },
      [&](uint64_t) { return writes_->Increment("key", {.delta = 1}, {}, {}, At(clock_ms_)); }};
  for (size_t i = 0; i < writes.size(); ++i) {
    SCOPED_TRACE(i);
    clock_ms_ = kNowMs;
    const Decided in_time = writes[i](PutExpiring("key", "5"));
    ASSERT_EQ(StatusOf(in_time), ReplyStatus::kOk);
    clock_ms_ = kExpiryMs - 1;
    PublishAll();
    EXPECT_FALSE(writes_->TakeUndone(in_time.ticket).has_value());
    EXPECT_NE(Seen("key"), std::nullopt);

    clock_ms_ = kNowMs;
    const Decided late = writes[i](PutExpiring("key", "5"));
    PublishLate();
    EXPECT_EQ(sink_.changes.back(), "delete key");
    ExpectAgain(late);
    EXPECT_EQ(Seen("key"), std::nullopt);
  }
}

// A write is decided by one that waits, and that one's item expires before either is published.
TEST_F(ExpiryOfWaitingTest, WhatWasDecidedBehindIsDecidedAgain) {
  const Decided first =
      writes_->Put("key", "5", {.expiry = ExpiresAt(kExpiryMs)}, {}, At(clock_ms_));
  const Decided sum = writes_->Increment("key", {.delta = 1}, {}, {}, At(clock_ms_));
  const Decided next = Put("key", "7", {.only_if_version = sum.outcome.version});
  const Decided refused = Put("key", "8", {.only_if_absent = true});
  EXPECT_EQ(StatusOf(refused), ReplyStatus::kExists);
  PublishLate();
  EXPECT_FALSE(writes_->TakeUndone(first.ticket).has_value());
  EXPECT_TRUE(writes_->TakeUndone(refused.ticket).has_value());
  ExpectAgain(sum);
  ExpectAgain(next);
}

TEST_F(ExpiryOfWaitingTest, WhatCountsOnNoItemStays) {
  PutExpiring("key", "5");
  const Decided put = Put("key", "new");
  clock_ms_ = kExpiryMs;
  const Decided added = Put("other", "new", {.only_if_absent = true});
  PublishAll();
  EXPECT_EQ(Seen("key"), "new");
  EXPECT_EQ(Seen("other"), "new");
  EXPECT_FALSE(writes_->TakeUndone(put.ticket).has_value());
  EXPECT_FALSE(writes_->TakeUndone(added.ticket).has_value());
  EXPECT_EQ(sink_.changes.back(), "put other");
}

// It is as if the key had been deleted just before it expired.
TEST_F(ExpiryOfWaitingTest, ADeletionStays) {
  PutExpiring("key", "5");
  const Decided deleted = Delete("key");
  PublishLate();
  EXPECT_EQ(StatusOf(deleted), ReplyStatus::kOk);
  EXPECT_FALSE(writes_->TakeUndone(deleted.ticket).has_value());
}

}  // namespace
}  // namespace gannet
