// The way to a cluster's map in a real etcd.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/cluster/cluster_keys.h"
#include "common/cluster/map_changes.h"
#include "tests/server/group/cluster/etcd_config_store_fixture.h"

namespace gannet {
namespace {

using enum EtcdTxnResult::Outcome;

class EtcdMapStoreTest : public EtcdConfigStoreTest {
 protected:
  static MapStore::Result Do(EtcdConfigStore* store, const MapTxn& txn) {
    std::optional<MapStore::Result> result;
    store->map_store()->Txn(txn);
    PollUntil(store, [&] {
      if (!result) result = store->map_store()->Poll();
      return result.has_value();
    });
    return result.value_or(MapStore::Result::kUnknown);
  }
  // Returns the map with one partition more closed.
  static MapTxn Closing(const EtcdConfigStore& store, uint16_t partition) {
    const std::vector<uint16_t> partitions = {partition};
    auto closed = ClosePartitions(store.Config()->config, "g1", partitions);
    EXPECT_TRUE(closed.ok()) << closed.status();
    return {.map_revision = store.Config()->mod_revision, .wanted = *closed};
  }
  int64_t Wish(uint16_t partition) {
    return caller_.Put(MoveKey("c", partition), Encode(MoveInfo{.to = "g1"})).revision;
  }
};
using MapResult = MapStore::Result;

TEST_F(EtcdMapStoreTest, ChangesTheMapThatWasRead) {
  auto store = Open("n1");
  const MapTxn txn = Closing(*store, 5);
  EXPECT_EQ(Do(store.get(), txn), MapResult::kWon);
  EXPECT_EQ(store->map_store()->Seen()->config, txn.wanted) << "at once";
  EXPECT_GT(store->Config()->mod_revision, txn.map_revision);
  EXPECT_FALSE(store->map_store()->Poll()) << "a result is given once";
  EXPECT_EQ(Do(store.get(), txn), MapResult::kLost);
  EXPECT_EQ(Do(store.get(), Closing(*store, 6)), MapResult::kWon);
  EXPECT_EQ(ValueOf(ConfigKey("c")), Encode(store->Config()->config));
}

TEST_F(EtcdMapStoreTest, WhoLosesLearnsTheMap) {
  auto store = Open("n1");
  const MapTxn txn = Closing(*store, 5);
  MapTxn other = Closing(*store, 7);
  // The watch's news is not polled before the result is there.
  ASSERT_EQ(caller_.Put(ConfigKey("c"), Encode(other.wanted)).outcome, kWon);
  EXPECT_EQ(Do(store.get(), txn), MapResult::kLost);
  EXPECT_EQ(store->Config()->config, other.wanted);
}

TEST_F(EtcdMapStoreTest, EndsMovesThatAreAsTheyWere) {
  auto store = Open("n1");
  const int64_t one = Wish(1), two = Wish(2);
  PollUntil(store.get(), [&] { return store->Moves()->size() == 2; });
  MapTxn txn = Closing(*store, 5);
  txn.ended = {{1, one}, {2, two - 1}};
  EXPECT_EQ(Do(store.get(), txn), MapResult::kLost) << "another wish";
  txn.ended = {{1, one}, {3, one}};
  EXPECT_EQ(Do(store.get(), txn), MapResult::kLost) << "no wish";
  txn.ended = {{1, one}};
  EXPECT_EQ(Do(store.get(), txn), MapResult::kWon);
  EXPECT_EQ(ValueOf(MoveKey("c", 1)), "");
  EXPECT_NE(ValueOf(MoveKey("c", 2)), "");
}

TEST_F(EtcdMapStoreTest, AsManyMovesAsATransactionMayHave) {
  auto store = Open("n1");
  for (uint16_t i = 0; i < kMovesOfTxnMax; ++i) Wish(i);
  PollUntil(store.get(), [&] { return store->Moves()->size() == kMovesOfTxnMax; });
  store->Announce(kN1, "h:1", 0);
  PollUntil(store.get(), [&] { return store->AddressOf(kN1).has_value(); });
  MapTxn txn = Closing(*store, 5);
  txn.group = store->Seen()->revision;
  for (const auto& [partition, wish] : *store->Moves()) {
    txn.ended.emplace_back(partition, wish.mod_revision);
  }
  EXPECT_EQ(Do(store.get(), txn), MapResult::kWon);
  PollUntil(store.get(), [&] { return store->Moves() && store->Moves()->empty(); });
}

TEST_F(EtcdMapStoreTest, NobodyWhoseGroupHasChangedChangesTheMap) {
  auto store = Open("n1");
  MapTxn txn = Closing(*store, 5);
  txn.group = store->Seen()->revision;
  ASSERT_EQ(EtcdConfigStoreTest::Do(store.get(), store->Seen()->revision, first_).result,
            Result::kWon);
  EXPECT_EQ(Do(store.get(), txn), MapResult::kLost);
  txn.group = store->Seen()->revision;
  EXPECT_EQ(Do(store.get(), txn), MapResult::kWon);
}

TEST_F(EtcdMapStoreTest, WhatAnEarlierProcessSentChangesNothing) {
  auto earlier = Open("n1");
  earlier->Announce(kN1, "h:1", 0);
  PollUntil(earlier.get(), [&] { return earlier->AddressOf(kN1).has_value(); });
  auto later = Open("n1");
  const GroupMember restarted = {"n1", 0xb9};
  later->Announce(restarted, "h:1", 0);
  PollUntil(later.get(), [&] { return later->AddressOf(restarted).has_value(); });
  const MapTxn txn = Closing(*earlier, 5);
  EXPECT_EQ(Do(earlier.get(), txn), MapResult::kLost);
  EXPECT_EQ(Do(later.get(), txn), MapResult::kWon);
}

TEST_F(EtcdMapStoreTest, AnAbandonedRequestIsNotAnswered) {
  auto store = Open("n1");
  const MapTxn txn = Closing(*store, 5);
  MapTxn other = Closing(*store, 6);
  other.map_revision += 1'000'000;
  store->map_store()->Txn(txn);
  EXPECT_EQ(Do(store.get(), other), MapResult::kLost);
  PollUntil(store.get(), [&] { return store->Config()->config == txn.wanted; });
  EXPECT_FALSE(store->map_store()->Poll());
}

TEST_F(EtcdMapStoreTest, TheResultIsUnknownWhileEtcdIsAway) {
  call_ms_ = 500;
  auto store = Open("n1");
  const MapTxn txn = Closing(*store, 5);
  etcd_.process(0).Stop();
  EXPECT_EQ(Do(store.get(), txn), MapResult::kUnknown);
  EXPECT_EQ(store->Config()->mod_revision, txn.map_revision);
  etcd_.process(0).Signal(SIGCONT);
  // The same again: it wins, or loses because the first one has won in the meantime.
  while (Do(store.get(), txn) == MapResult::kUnknown) {
  }
  PollUntil(store.get(), [&] { return store->Config()->config == txn.wanted; });
}

// It is going to take the map that is there for the right one.
TEST_F(EtcdConfigStoreTest, NobodyIsAddedWhileTheMapIsNotBelieved) {
  auto store = Open("n1");
  store->Announce(kN1, "h:1", 0);
  PollUntil(store.get(), [&] { return store->AddressOf(kN1).has_value(); });
  const auto founded = Do(store.get(), store->Seen()->revision, first_);
  ASSERT_EQ(founded.result, ConfigStore::Result::kWon);
  const std::string map = ValueOf(ConfigKey("c"));
  ASSERT_EQ(caller_.Put(ConfigKey("c"), "garbage").outcome, EtcdTxnResult::Outcome::kWon);
  const GroupConfiguration both = first_.With(kN2);
  EXPECT_EQ(Do(store.get(), founded.now.revision, both).result, ConfigStore::Result::kUnknown);
  EXPECT_EQ(DecodeGroupConfig(ValueOf(GroupKey("c", "g1")))->in_sync.size(), 1u);
  ASSERT_EQ(caller_.Put(ConfigKey("c"), map).outcome, EtcdTxnResult::Outcome::kWon);
  // The first time it may not have heard of the map.
  const auto added = [&] {
    return Do(store.get(), founded.now.revision, both).result == ConfigStore::Result::kWon;
  };
  EXPECT_TRUE(added() || added());
}

}  // namespace
}  // namespace gannet
