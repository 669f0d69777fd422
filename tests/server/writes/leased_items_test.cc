// Changes of items that are leased to clients: which wait, and which end a lease.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bitset>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/protocol/partition_map.h"
#include "common/protocol/touch.h"
#include "server/memory/store/item_leaser.h"
#include "tests/server/memory/store/at.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/writes/recorded_changes.h"

namespace gannet {
namespace {

constexpr uint32_t kLeaseMs = 20;
constexpr uint64_t kMemory = 1 << 20;

class LeasedItemsTest : public testing::Test, private ServerTimeSource {
 protected:
  void Start(TestStore::OnFull on_full = TestStore::OnFull::kReject, bool index_grows = false) {
    store_.emplace(kMemory, 0, index_grows, on_full, &leases_);
    leases_.Start(1);
    (*store_)->UseClock(this);
  }
  // Puts an item, and leases it.
  void Lease(const std::string& key, const std::string& value = "value",
             ItemAttributes attributes = {}) {
    const WriteOutcome put = store_->Put(key, value, attributes, {}, Now());
    ASSERT_EQ(put.status, ReplyStatus::kOk);
    ASSERT_TRUE(LeaseAt(Slot(put.slot).offset()));
    ASSERT_TRUE(leases_.Renew(Now()));
  }
  bool LeaseAt(uint64_t offset) {
    const auto serves = [](std::string_view) { return true; };
    return ItemLeaser(**store_).Lease(offset, Now(), serves);
  }
  static testing::Matcher<const WriteOutcome&> Waits(uint32_t ms) {
    return testing::AllOf(testing::Field("status", &WriteOutcome::status, ReplyStatus::kTryAgain),
                          testing::Field("wait_ms", &WriteOutcome::wait_ms, ms),
                          testing::Field("version", &WriteOutcome::version, 0u));
  }
  static testing::Matcher<const WriteOutcome&> Is(ReplyStatus status) {
    return testing::Field("status", &WriteOutcome::status, status);
  }
  WriteOutcome Put(const std::string& key, const std::string& value,
                   const WriteConditions& conditions = {}) {
    return store_->Put(key, value, {}, conditions, Now());
  }

  ServerTime Now() const { return At(now_ms_); }
  ServerTime Time() const override { return Now(); }

  uint64_t now_ms_ = 1'000'000;
  std::vector<uint64_t> memory_ = std::vector<uint64_t>(ItemLeaseBytes(64) / 8);
  ItemLeases leases_{{.memory = std::as_writable_bytes(std::span(memory_)), .lease_ms = kLeaseMs}};
  std::optional<TestStore> store_;
};

TEST_F(LeasedItemsTest, EachKindOfWriteWaits) {
  Start();
  const auto writes = std::vector<std::function<WriteOutcome()>>{
      [this] { return Put("key", "other"); },
      [this] { return Put("key", "of another length"); },
      [this] { return Put("key", std::string(10'000, 'l')); },
      [this] { return store_->PutReserved("key", "reserved", {}, Now()); },
      [this] { return store_->Delete("key", Now()); },
      [this] {
        return store_->writes().Append("key", "x", Writes::End::kBack, {}, {}, Now()).outcome;
      },
      [this] {
        return store_->writes().Touch("key", ExpiresAt(now_ms_ + 5000), {}, Now()).outcome;
      },
      [this] {
        return store_->writes().Increment("key", {1, 0}, {}, {}, Now()).outcome;
      },
  };
  for (size_t i = 0; i < writes.size(); ++i) {
    Lease("key", "12345");
    now_ms_ += 3;
    EXPECT_THAT(writes[i](), Waits(kLeaseMs - 3)) << i;
    EXPECT_EQ(store_->Get("key", Now()), "12345") << i;
    EXPECT_EQ(leases_.counts().leased, 0u) << i;
    now_ms_ += kLeaseMs - 4;
    EXPECT_THAT(writes[i](), Waits(1)) << i;
    ++now_ms_;
    EXPECT_THAT(writes[i](), Is(ReplyStatus::kOk)) << i;
    now_ms_ += 20'000;  // whatever barred it
  }
}

TEST_F(LeasedItemsTest, OtherKeysDoNotWait) {
  Start();
  for (int i = 0; i < 100; ++i) Put(std::to_string(i), "value");
  Lease("key");
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(Put(std::to_string(i), "other"), Is(ReplyStatus::kOk));
  }
  EXPECT_EQ(store_->updates_in_place(), 100u) << "by the fast path, whoever shares the lock";
  EXPECT_EQ(leases_.counts().leased, 1u);
}

TEST_F(LeasedItemsTest, AWriteThatIsRefusedEndsNothing) {
  Start();
  Lease("key");
  EXPECT_THAT(Put("key", "other", {.only_if_absent = true}), Is(ReplyStatus::kExists));
  EXPECT_THAT(Put("key", "other", {.only_if_version = 77}), Is(ReplyStatus::kVersionMismatch));
  EXPECT_THAT(Put("key", "other", {.under_lock = 1}), Is(ReplyStatus::kLockLost));
  EXPECT_EQ(leases_.counts().leased, 1u);
}

TEST_F(LeasedItemsTest, AnItemThatExpiresWaitsForNothing) {
  Start();
  Lease("key", "value", {.expiry = ExpiresAt(now_ms_ + 5)});
  now_ms_ += 5;
  EXPECT_THAT(Put("key", "other"), Is(ReplyStatus::kOk)) << "copies end with the item";
  EXPECT_EQ(leases_.counts().leased, 0u);
  EXPECT_THAT(Put("key", "again"), Is(ReplyStatus::kOk));
}

TEST_F(LeasedItemsTest, ALeaseThatEndedWithoutAWriteIsForgottenWhenItIsOver) {
  Start();
  Lease("key");
  leases_.EndAll();
  ItemLeaser(**store_).Forget(Now());
  EXPECT_THAT(Put("key", "other"), Waits(kLeaseMs));
  now_ms_ += kLeaseMs;
  ItemLeaser(**store_).Forget(Now());
  EXPECT_FALSE(leases_.IsMarked((*store_)->HashOf("key")));
  EXPECT_THAT(Put("key", "other"), Is(ReplyStatus::kOk));
}

TEST_F(LeasedItemsTest, AFlushStopsAtALeasedItem) {
  Start();
  Lease("key");
  Lease("other");
  Writes::Flushed flushed = store_->writes().FlushSome(0, Now());
  EXPECT_EQ(flushed.wait_ms, kLeaseMs);
  EXPECT_EQ(leases_.counts().leased, 0u) << "of all";
  EXPECT_TRUE(store_->Get("key", Now()) || store_->Get("other", Now()));
  now_ms_ += kLeaseMs;
  uint64_t position = 0;
  do {
    flushed = store_->writes().FlushSome(position, Now());
    EXPECT_EQ(flushed.wait_ms, 0u);
    position = flushed.next;
  } while (position != 0);
  EXPECT_FALSE(store_->Get("key", Now()) || store_->Get("other", Now()));
}

TEST_F(LeasedItemsTest, AFlushComesToALeasedItemAgain) {
  Start();
  Lease("key");
  uint64_t position = 0;
  uint64_t from;
  Writes::Flushed flushed;
  do {
    from = position;
    flushed = store_->writes().FlushSome(from, /*homes=*/1, nullptr, Now());
    position = flushed.next;
  } while (flushed.wait_ms == 0 && position != 0);
  EXPECT_EQ(flushed.wait_ms, kLeaseMs);
  EXPECT_EQ(flushed.next, from);
}

// No client goes by leases on what other groups have.
TEST_F(LeasedItemsTest, WhoDropsPartitionsForgetsTheirLeases) {
  Start();
  Lease("key");
  Lease("other");
  std::bitset<kPartitions> partitions;
  partitions.set(PartitionOf("key"));
  ASSERT_FALSE(partitions[PartitionOf("other")]);
  uint64_t position = 0;
  do {
    const Writes::Flushed dropped =
        store_->writes().FlushSome(position, /*homes=*/1, &partitions, Now());
    ASSERT_EQ(dropped.wait_ms, 0u);
    position = dropped.next;
  } while (position != 0);
  EXPECT_FALSE(store_->Get("key", Now()));
  EXPECT_TRUE(store_->Get("other", Now()));
  EXPECT_EQ(leases_.counts().leased, 1u);
  EXPECT_THAT(Put("key", "again"), Is(ReplyStatus::kOk));
}

TEST_F(LeasedItemsTest, WhatIsNotServedIsNotLeased) {
  Start();
  const WriteOutcome put = Put("key", "value");
  const uint64_t offset = Slot(put.slot).offset();
  const auto no_key = [](std::string_view key) { return key != "key"; };
  EXPECT_FALSE(ItemLeaser(**store_).Lease(offset, Now(), no_key));
  EXPECT_EQ(leases_.counts().leased, 0u);
}

TEST_F(LeasedItemsTest, AnEvictionPassesALeasedItemBy) {
  Start(TestStore::OnFull::kEvict);
  Lease("key", std::string(100, 'v'));
  for (int i = 0; i < 30'000; ++i) {
    store_->Put("other" + std::to_string(i), std::string(100, 'v'), Now());
  }
  StatsReply stats{};
  (*store_)->FillStats(&stats);
  ASSERT_GT(stats.items_evicted, 1000u);
  EXPECT_TRUE(store_->Get("key", Now())) << "nobody used it, but its lease is not over";
}

TEST_F(LeasedItemsTest, AnItemThatMovesKeepsItsLease) {
  Start();
  std::vector<std::string> keys;
  for (int i = 0; i < 2000; ++i) keys.push_back("filler" + std::to_string(i));
  for (const std::string& key : keys) Put(key, std::string(200, 'f'));
  Lease("key", std::string(200, 'v'));
  const std::vector<uint64_t> before = leases_.LeasedWords();
  for (const std::string& key : keys) store_->Delete(key, Now());
  while ((*store_)->Compact(1 << 12) > 0) {
  }
  const std::vector<uint64_t> after = leases_.LeasedWords();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_NE(after, before) << "it did not move";
  EXPECT_THAT(Put("key", std::string(200, 'o')), Waits(kLeaseMs));
}

TEST_F(LeasedItemsTest, AMarkStaysWhenTheIndexGrows) {
  Start(TestStore::OnFull::kReject, /*index_grows=*/true);
  Lease("key");
  StatsReply stats{};
  for (int i = 0; i < 4000; ++i) {
    Put("other" + std::to_string(i), "value");
    (*store_)->Tidy(Now());
  }
  (*store_)->FillStats(&stats);
  ASSERT_GT(stats.index_growths, 0u);
  EXPECT_THAT(Put("key", "other"), Waits(kLeaseMs));
}

TEST_F(LeasedItemsTest, OnlyWhatLiesThereIsLeased) {
  Start();
  const uint64_t offset = Slot(Put("key", "value").slot).offset();
  EXPECT_FALSE(LeaseAt(offset + 16));
  EXPECT_FALSE(LeaseAt(kMemory - 16));
  store_->LockWordOf("key") = 1;
  EXPECT_FALSE(LeaseAt(offset)) << "its lock is held";
  store_->LockWordOf("key") = 0;
  EXPECT_TRUE(LeaseAt(offset));
  EXPECT_FALSE(LeaseAt(offset)) << "it is leased";
}

TEST_F(LeasedItemsTest, AtMostASixteenthOfTheMemoryIsLeased) {
  Start();
  uint64_t leased = 0;
  for (int i = 0; i < 64; ++i) {
    const WriteOutcome put = Put(std::to_string(i), std::string(3000, 'v'));
    ASSERT_EQ(put.status, ReplyStatus::kOk);
    leased += LeaseAt(Slot(put.slot).offset());
  }
  EXPECT_GT(leased, 5u);
  EXPECT_LE(leases_.counts().leased_bytes, kMemory / 16);
  EXPECT_LT(leased, 64u);
}

TEST_F(LeasedItemsTest, NoValueIsLeasedThatNoClientCopies) {
  store_.emplace(4 << 20, 0, false, TestStore::OnFull::kReject, &leases_);
  leases_.Start(1);
  const auto put = [this](const std::string& key, size_t bytes) {
    return Slot(Put(key, std::string(bytes, 'v')).slot).offset();
  };
  const uint64_t longest = put("longest", kLeasedValueBytesMax);
  const uint64_t longer = put("longer", kLeasedValueBytesMax + 1);
  for (const uint64_t offset : {longest, longer}) {
    const Touch touch = Touch::Of(offset, 250);
    const std::string_view bytes(reinterpret_cast<const char*>(&touch), sizeof(touch));
    for (int i = 0; i < 4; ++i) (*store_)->NoteTouches(bytes, /*each=*/1);
  }
  EXPECT_THAT(leases_.popular().Choose(), testing::ElementsAre(longest));
  EXPECT_TRUE(LeaseAt(longest));
  EXPECT_FALSE(LeaseAt(longer));
}

TEST_F(LeasedItemsTest, TouchesTellWhatIsPopular) {
  Start();
  const uint64_t offset = Slot(Put("key", "value").slot).offset();
  const Touch touch = Touch::Of(offset, 250);
  const std::string_view bytes(reinterpret_cast<const char*>(&touch), sizeof(touch));
  for (int i = 0; i < 3; ++i) (*store_)->NoteTouches(bytes, /*each=*/1);
  Put("key", "other");
  for (int i = 0; i < 3; ++i) (*store_)->NoteTouches(bytes, /*each=*/1);
  EXPECT_THAT(leases_.popular().Choose(), testing::IsEmpty()) << "it was written meanwhile";
  (*store_)->NoteTouches(bytes, /*each=*/1);
  EXPECT_THAT(leases_.popular().Choose(), testing::ElementsAre(offset));
}

// Another item may lie there now, which nobody READs.
TEST_F(LeasedItemsTest, WhatLiesWhereAPopularItemWasIsNotLeased) {
  Start();
  const WriteOutcome put = Put("key", "value");
  const uint64_t offset = Slot(put.slot).offset();
  leases_.popular().Note(offset, put.version, PopularItems::kUsesMin);
  ASSERT_EQ(Slot(Put("key", "other").slot).offset(), offset);
  const auto serves = [](std::string_view) { return true; };
  ItemLeaser leaser(**store_);
  EXPECT_FALSE(leaser.Choose());
  leases_.popular().Note(offset, put.version + 1, PopularItems::kUsesMin);
  ASSERT_TRUE(leaser.Choose());
  const WriteOutcome meanwhile = Put("key", "third");
  ASSERT_EQ(Slot(meanwhile.slot).offset(), offset);
  leaser.LeaseAnnounced(Now(), serves);
  EXPECT_EQ(leases_.counts().leased, 0u) << "it was written since it was announced";
  leases_.popular().Note(offset, meanwhile.version, PopularItems::kUsesMin);
  ASSERT_TRUE(leaser.Choose());
  leaser.LeaseAnnounced(Now(), serves);
  EXPECT_EQ(leases_.counts().leased, 1u);
}

// What is recorded and waits is what the key is for whoever writes it next.
TEST_F(LeasedItemsTest, AKeyWithAWaitingChangeIsNotLeased) {
  Start();
  const uint64_t offset = Slot(Put("key", "value").slot).offset();
  RecordedChanges sink;
  (*store_)->UseSink(&sink);
  store_->writes().WaitFor(&sink);
  const auto decided = store_->writes().Put("key", "other", {}, {}, Now());
  ASSERT_NE(decided.ticket, 0u);
  EXPECT_FALSE(LeaseAt(offset));
  store_->writes().Publish(sink.end);
  ASSERT_EQ(store_->Get("key", Now()), "other");
  const uint64_t now_at = Slot(decided.outcome.slot).offset();
  EXPECT_TRUE(LeaseAt(now_at));
  leases_.Renew(Now());
  EXPECT_THAT(store_->writes().Put("key", "third", {}, {}, Now()).outcome, Waits(kLeaseMs));
  store_.reset();  // before its sink
}

}  // namespace
}  // namespace gannet
