// The register and the directory of a group in a real etcd.

#include "server/cluster/etcd_config_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/cluster/cluster_keys.h"
#include "common/cluster/create_cluster.h"
#include "common/cluster/map_changes.h"
#include "tests/common/etcd/etcd_caller.h"
#include "tests/common/etcd/etcd_processes.h"
#include "tests/common/etcd/fake_server.h"
#include "tests/common/etcd/gateway.h"

namespace gannet {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Result = ConfigStore::Result;
using enum EtcdTxnResult::Outcome;

const GroupMember kN1 = {"n1", 0xb1};
const GroupMember kN2 = {"n2", 0xb2};

class EtcdConfigStoreTest : public testing::Test {
 protected:
  EtcdConfigStoreTest() {
    const auto txn = CreateClusterTxn(
        {.name = "c", .groups = {{.name = "g1", .members = {"n1", "n2"}}}}, [] { return 0x11; });
    EXPECT_EQ(caller_.Txn(*txn).outcome, kWon);
  }

  EtcdConfigStore::Options OptionsOf(const std::string& node) {
    return {.etcd = {.endpoints = etcd_.Urls(), .call_ms = 500}, .cluster = "c", .node = node};
  }
  std::unique_ptr<EtcdConfigStore> Open(const std::string& node) {
    auto store = EtcdConfigStore::Open(OptionsOf(node));
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  static void PollUntil(EtcdConfigStore* store, const std::function<bool()>& done) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + test_support::kStepTimeout;
    for (store->Poll(); !done() && Clock::now() < end; store->Poll()) {
      pollfd waiting = {.fd = store->fd(), .events = POLLIN, .revents = 0};
      poll(&waiting, 1, 100);
    }
    EXPECT_TRUE(done());
  }
  static ConfigStore::Answer AnswerOf(EtcdConfigStore* store) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + test_support::kStepTimeout;
    while (Clock::now() < end) {
      if (auto answer = store->Poll()) return *answer;
      pollfd waiting = {.fd = store->fd(), .events = POLLIN, .revents = 0};
      poll(&waiting, 1, 100);
    }
    ADD_FAILURE() << "no answer";
    return {};
  }
  static ConfigStore::Answer Do(EtcdConfigStore* store, uint64_t revision,
                                const GroupConfiguration& wanted) {
    store->Txn(revision, wanted);
    return AnswerOf(store);
  }
  std::string ValueOf(const std::string& key) {
    const auto answer = caller_.Range(key);
    return answer.ok() && !answer->items.empty() ? answer->items.front().value : "";
  }

  const GroupConfiguration first_ = {.epoch = 1, .primary = kN1, .in_sync = {kN1}};
  EtcdProcesses etcd_{1};
  EtcdCaller caller_{etcd_.Urls()};
};

TEST_F(EtcdConfigStoreTest, ReadsAndChangesTheRegister) {
  auto store = Open("n1");
  EXPECT_EQ(store->group(), "g1");
  EXPECT_EQ(store->terms().history, 0x11u);
  ASSERT_TRUE(store->Seen());
  const GroupRegister before = *store->Seen();
  EXPECT_EQ(before.configuration, GroupConfiguration{});

  const ConfigStore::Answer won = Do(store.get(), before.revision, first_);
  EXPECT_EQ(won.result, Result::kWon);
  EXPECT_EQ(won.now.configuration, first_);
  EXPECT_GT(won.now.revision, before.revision);
  EXPECT_EQ(store->Seen(), won.now);

  const ConfigStore::Answer lost = Do(store.get(), before.revision, first_.With(kN2));
  EXPECT_EQ(lost.result, Result::kLost);
  EXPECT_EQ(lost.now, won.now);

  store->Read();
  const ConfigStore::Answer read = AnswerOf(store.get());
  EXPECT_EQ(read.result, Result::kRead);
  EXPECT_EQ(read.now, won.now);
  EXPECT_FALSE(store->Poll()) << "an answer is given once";
}

TEST_F(EtcdConfigStoreTest, AnAbandonedRequestIsNotAnswered) {
  auto store = Open("n1");
  const uint64_t revision = store->Seen()->revision;
  store->Read();
  store->Txn(revision, first_);
  EXPECT_EQ(AnswerOf(store.get()).result, Result::kWon);
  store->Txn(store->Seen()->revision, first_.With(kN2));
  store->Read();
  EXPECT_EQ(AnswerOf(store.get()).result, Result::kRead);
  PollUntil(store.get(), [&] { return store->Seen()->configuration == first_.With(kN2); });
  EXPECT_FALSE(store->Poll());
}

TEST_F(EtcdConfigStoreTest, SeesWhatOthersChangeAndKeepsTheirTerms) {
  auto store = Open("n1");
  auto other = Open("n2");
  ASSERT_EQ(Do(store.get(), store->Seen()->revision, first_).result, Result::kWon);
  PollUntil(other.get(), [&] { return other->Seen() == store->Seen(); });

  auto config = DecodeGroupConfig(ValueOf(GroupKey("c", "g1")));
  ASSERT_TRUE(config.ok()) << config.status();
  config->members.emplace_back("n3");
  config->lease_ms = 900;
  ASSERT_EQ(caller_.Put(GroupKey("c", "g1"), Encode(*config)).outcome, kWon);
  PollUntil(store.get(), [&] { return store->terms().lease_ms == 900; });
  const ConfigStore::Answer won =
      Do(store.get(), store->Seen()->revision, first_.With({"n3", 0xb3}));
  EXPECT_EQ(won.result, Result::kWon);
  config = DecodeGroupConfig(ValueOf(GroupKey("c", "g1")));
  EXPECT_EQ(config->lease_ms, 900u);
  EXPECT_EQ(config->in_sync.size(), 2u);
}

TEST_F(EtcdConfigStoreTest, SendsNothingThatTheTermsDoNotAllow) {
  auto store = Open("n1");
  const GroupRegister before = *store->Seen();
  const ConfigStore::Answer lost = Do(store.get(), before.revision, first_.With({"n9", 0xb9}));
  EXPECT_EQ(lost.result, Result::kLost);
  EXPECT_EQ(lost.now, before);
}

TEST_F(EtcdConfigStoreTest, AnswersUnknownWhileEtcdIsAwayAndGoesOnAfterwards) {
  auto store = Open("n1");
  const GroupRegister before = *store->Seen();
  etcd_.process(0).Stop();
  EXPECT_EQ(Do(store.get(), before.revision, first_).result, Result::kUnknown);
  store->Read();
  EXPECT_EQ(AnswerOf(store.get()).result, Result::kUnknown);
  EXPECT_EQ(store->Seen(), before);
  etcd_.process(0).Signal(SIGCONT);
  // The same again: it wins, or loses because the first one has won in the meantime.
  ConfigStore::Answer answer;
  do {
    answer = Do(store.get(), before.revision, first_);
  } while (answer.result == Result::kUnknown);
  EXPECT_EQ(answer.now.configuration, first_);
  PollUntil(store.get(), [&] { return store->Seen()->configuration == first_; });
}

TEST_F(EtcdConfigStoreTest, TellsAddressesOfProcesses) {
  auto store = Open("n1");
  auto other = Open("n2");
  EXPECT_FALSE(other->AddressOf(kN1));
  store->Announce(kN1, "10.0.0.1:7471", 5);
  PollUntil(store.get(), [&] { return store->AddressOf(kN1).has_value(); });
  PollUntil(other.get(), [&] { return other->AddressOf(kN1) == "10.0.0.1:7471"; });
  EXPECT_FALSE(other->AddressOf({"n1", 0xb9})) << "not another process of the node";
  store->Announce(kN1, "10.0.0.1:7471", 6);
  PollUntil(store.get(), [&] {
    const auto node = DecodeNodeInfo(ValueOf(NodeKey("c", "n1")));
    return node.ok() && node->applied == 6;
  });
}

TEST_F(EtcdConfigStoreTest, ALaterProcessHasTheName) {
  auto earlier = Open("n1");
  earlier->Announce(kN1, "h:1", 0);
  PollUntil(earlier.get(), [&] { return earlier->AddressOf(kN1).has_value(); });
  auto later = Open("n1");
  const GroupMember restarted = {"n1", 0xb9};
  later->Announce(restarted, "h:2", 0);
  PollUntil(later.get(), [&] { return later->AddressOf(restarted).has_value(); });
  PollUntil(earlier.get(), [&] { return earlier->Replaced(); });
  EXPECT_FALSE(later->Replaced());
  EXPECT_FALSE(earlier->AddressOf(kN1));
}

// As etcd may execute a transaction late, this is as if the earlier process had sent it before it
// died.
TEST_F(EtcdConfigStoreTest, WhatAnEarlierProcessSentIsNotExecutedAnyMore) {
  auto earlier = Open("n1");
  earlier->Announce(kN1, "h:1", 0);
  PollUntil(earlier.get(), [&] { return earlier->AddressOf(kN1).has_value(); });
  const ConfigStore::Answer before = Do(earlier.get(), earlier->Seen()->revision, first_);
  ASSERT_EQ(before.result, Result::kWon);
  auto later = Open("n1");
  const GroupMember restarted = {"n1", 0xb9};
  later->Announce(restarted, "h:1", 0);
  PollUntil(later.get(), [&] { return later->AddressOf(restarted).has_value(); });
  const ConfigStore::Answer late = Do(earlier.get(), before.now.revision, first_.With(kN2));
  EXPECT_EQ(late.result, Result::kLost);
  EXPECT_EQ(late.now, before.now);
  EXPECT_EQ(Do(later.get(), before.now.revision, first_.With(kN2)).result, Result::kWon);
}

TEST_F(EtcdConfigStoreTest, AProcessWhoseAnnouncementWasDeletedAnnouncesItselfAgain) {
  auto store = Open("n1");
  store->Announce(kN1, "h:1", 0);
  PollUntil(store.get(), [&] { return store->AddressOf(kN1).has_value(); });
  const std::string key = NodeKey("c", "n1");
  ASSERT_EQ(caller_.Txn({.deletes = {key}}).outcome, kWon);
  ASSERT_EQ(ValueOf(key), "");
  PollUntil(store.get(), [&] { return ValueOf(key) != ""; });
  EXPECT_FALSE(store->Replaced());
  EXPECT_EQ(Do(store.get(), store->Seen()->revision, first_).result, Result::kWon);
}

TEST_F(EtcdConfigStoreTest, TellsAWishAndForgetsIt) {
  auto store = Open("n1");
  EXPECT_FALSE(store->WantedSuccessor());
  const std::string key = WishKey("c", "g1");
  ASSERT_EQ(caller_.Put(key, Encode(GroupWish{.handover = "n2"})).outcome, kWon);
  PollUntil(store.get(), [&] { return store->WantedSuccessor() == "n2"; });
  store->ForgetWantedSuccessor();
  EXPECT_FALSE(store->WantedSuccessor()) << "at once";
  PollUntil(store.get(), [&] { return ValueOf(key).empty(); });
  // Another wish of the same.
  ASSERT_EQ(caller_.Put(key, Encode(GroupWish{.handover = "n2"})).outcome, kWon);
  PollUntil(store.get(), [&] { return store->WantedSuccessor() == "n2"; });
}

TEST_F(EtcdConfigStoreTest, DoesNotDeleteALaterWish) {
  auto store = Open("n1");
  const std::string key = WishKey("c", "g1");
  ASSERT_EQ(caller_.Put(key, Encode(GroupWish{.handover = "n1"})).outcome, kWon);
  PollUntil(store.get(), [&] { return store->WantedSuccessor() == "n1"; });
  ASSERT_EQ(caller_.Put(key, Encode(GroupWish{.handover = "n2"})).outcome, kWon);
  store->ForgetWantedSuccessor();  // has not seen it
  PollUntil(store.get(), [&] { return store->WantedSuccessor() == "n2"; });
  EXPECT_EQ(ValueOf(key), Encode(GroupWish{.handover = "n2"}));
}

TEST_F(EtcdConfigStoreTest, AnnouncesItsVersion) {
  EtcdConfigStore::Options options = OptionsOf("n1");
  options.version = "0.2.0";
  auto store = EtcdConfigStore::Open(std::move(options));
  ASSERT_TRUE(store.ok()) << store.status();
  (*store)->Announce(kN1, "h:1", 0);
  PollUntil(store->get(), [&] { return (*store)->AddressOf(kN1).has_value(); });
  EXPECT_EQ(ValueOf(VersionKey("c", "n1")),
            Encode(NodeVersion{.incarnation = 0xb1, .version = "0.2.0", .moves = true}));
}

// Passes requests on to etcd, but leaves watches without an answer. So only lists and answers to
// transactions tell what is new.
class EtcdWithoutNews {
 public:
  explicit EtcdWithoutNews(std::string url)
      : server_([url = std::move(url)](const std::string& request) -> FakeServer::Answer {
          const std::string path = request.substr(5, request.find(' ', 5) - 5);
          if (path.ends_with("/watch")) return {.bytes = "HTTP/1.1 200 OK\r\n\r\n", .close = false};
          const std::string body = request.substr(request.find("\r\n\r\n") + 4);
          return {.bytes = FakeServer::Http(PostToEtcd(url + path, body))};
        }) {}
  std::string Url() const { return server_.Url(); }

 private:
  FakeServer server_;
};

// A new primary has to know of what was closed before it took over (docs/partitions.md, rule 3),
// however late its watch is.
TEST_F(EtcdConfigStoreTest, EachAnswerComesWithTheMap) {
  const EtcdWithoutNews way(etcd_.Urls().front());
  EtcdConfigStore::Options options = OptionsOf("n1");
  options.etcd = {.endpoints = {way.Url()}, .call_ms = 20'000, .watch_silence_ms = 600'000};
  auto opened = EtcdConfigStore::Open(std::move(options));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EtcdConfigStore* const store = opened->get();
  uint64_t closed = 0;
  const auto close_one = [&] {
    auto config = DecodeClusterConfig(ValueOf(ConfigKey("c")));
    ASSERT_TRUE(config.ok()) << config.status();
    const std::vector<uint16_t> partitions = {static_cast<uint16_t>(++closed)};
    config = ClosePartitions(*config, "g1", partitions);
    ASSERT_TRUE(config.ok()) << config.status();
    ASSERT_EQ(caller_.Put(ConfigKey("c"), Encode(*config)).outcome, kWon);
    for (int i = 0; i < 3; ++i) store->Poll();
    EXPECT_LT(store->Partitions()->revision, closed) << "the watch has told";
  };
  const uint64_t before = store->Seen()->revision;
  close_one();
  EXPECT_EQ(Do(store, before, first_).result, Result::kWon);
  EXPECT_EQ(store->Partitions()->revision, closed);
  EXPECT_FALSE(store->Partitions()->served[1]);
  close_one();
  EXPECT_EQ(Do(store, before, first_).result, Result::kLost);
  EXPECT_EQ(store->Partitions()->revision, closed);
  close_one();
  store->Read();
  EXPECT_EQ(AnswerOf(store).result, Result::kRead);
  EXPECT_EQ(store->Partitions()->revision, closed);
}

// --- the map ---

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
  txn.moves = {{1, one}, {2, two - 1}};
  txn.end_moves = true;
  EXPECT_EQ(Do(store.get(), txn), MapResult::kLost) << "another wish";
  txn.moves = {{1, one}, {3, one}};
  EXPECT_EQ(Do(store.get(), txn), MapResult::kLost) << "no wish";
  txn.moves = {{1, one}, {2, two}};
  txn.end_moves = false;
  EXPECT_EQ(Do(store.get(), txn), MapResult::kWon);
  EXPECT_EQ(store->Moves()->size(), 2u);
  txn = Closing(*store, 6);
  txn.moves = {{1, one}};
  txn.end_moves = true;
  EXPECT_EQ(Do(store.get(), txn), MapResult::kWon);
  EXPECT_FALSE(store->Moves()->contains(1)) << "at once";
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
  txn.end_moves = true;
  for (const auto& [partition, wish] : *store->Moves()) {
    txn.moves.emplace_back(partition, wish.mod_revision);
  }
  EXPECT_EQ(Do(store.get(), txn), MapResult::kWon);
  PollUntil(store.get(), [&] { return store->Moves()->empty(); });
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

TEST_F(EtcdConfigStoreTest, SaysWhatToDoIfItCannotBegin) {
  const std::string flags = " --etcd=" + etcd_.Url(0) + " --cluster=";
  const auto message = [](const EtcdConfigStore::Options& options, absl::StatusCode code) {
    const absl::Status status = EtcdConfigStore::Open(options).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  };
  using enum absl::StatusCode;
  EtcdConfigStore::Options other = OptionsOf("n1");
  other.cluster = "d";
  EXPECT_THAT(message(other, kNotFound),
              AllOf(HasSubstr("there is no cluster d"),
                    HasSubstr("kvcli cluster init" + flags + "d --group=g1:n1,...")));
  EXPECT_THAT(message(OptionsOf("n4"), kNotFound),
              AllOf(HasSubstr("node n4 is in no group of cluster c"),
                    HasSubstr("kvcli cluster add GROUP n4" + flags + "c")));
  other.cluster = "no name";
  EXPECT_THAT(message(other, kInvalidArgument), HasSubstr("the name of a cluster"));
  EXPECT_THAT(message(OptionsOf(""), kInvalidArgument), HasSubstr("the name of a node"));

  EtcdConfigStore::Options away = OptionsOf("n1");
  away.open_ms = 300;
  away.etcd.endpoints = {"http://127.0.0.1:1"};
  EXPECT_THAT(message(away, kUnavailable),
              AllOf(HasSubstr("http://127.0.0.1:1"), HasSubstr("Does etcd run at")));
  etcd_.process(0).Stop();
  away.etcd.endpoints = etcd_.Urls();
  EXPECT_THAT(message(away, kUnavailable), HasSubstr("Does etcd run at"));
}

}  // namespace
}  // namespace gannet
