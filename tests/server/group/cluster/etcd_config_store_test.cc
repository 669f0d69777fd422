// The register and the directory of a group in a real etcd.

#include "server/group/cluster/etcd_config_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/cluster/cluster_keys.h"
#include "common/cluster/map_changes.h"
#include "common/cluster/node_life.h"
#include "common/protocol/versions.h"
#include "tests/common/etcd/etcd_caller.h"
#include "tests/common/etcd/etcd_processes.h"
#include "tests/common/etcd/fake_server.h"
#include "tests/common/etcd/gateway.h"
#include "tests/server/group/cluster/etcd_config_store_fixture.h"

namespace gannet {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Result = ConfigStore::Result;
using enum EtcdTxnResult::Outcome;

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
  call_ms_ = 500;
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
  store->AnnounceSoon();
  store->Announce(kN1, "10.0.0.1:7471", 6);
  PollUntil(store.get(), [&] {
    const auto node = DecodeNodeInfo(ValueOf(NodeKey("c", "n1")));
    return node.ok() && node->applied == 6;
  });
}

// What keys were before is of no use to anybody, if etcd has no other users.
TEST_F(EtcdConfigStoreTest, ThePrimaryCompactsIfItIsToldTo) {
  EtcdConfigStore::Options options = OptionsOf("n1");
  options.compact_ms = 1;
  auto store = *EtcdConfigStore::Open(options);
  store->Announce(kN1, "h:1", 0);
  PollUntil(store.get(), [&] { return store->AddressOf(kN1).has_value(); });
  ASSERT_EQ(Do(store.get(), store->Seen()->revision, first_).result, Result::kWon);
  PollUntil(store.get(), [&] { return store->compacted() > 0; });
  absl::Status again;
  bool answered = false;
  caller_.client().Compact(1, [&](const absl::Status& status) {
    again = status;
    answered = true;
  });
  ASSERT_TRUE(caller_.PollUntil([&] { return answered; }));
  EXPECT_THAT(std::string(again.message()), testing::HasSubstr("compacted")) << again;
  // Watches of what is compacted go on, and so do announcements.
  store->AnnounceSoon();
  store->Announce(kN1, "h:2", 6);
  PollUntil(store.get(), [&] { return store->AddressOf(kN1) == "h:2"; });
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
  auto later = Open("n1");
  const GroupMember restarted = {"n1", 0xb9};
  later->Announce(restarted, "h:1", 0);
  PollUntil(later.get(), [&] { return later->AddressOf(restarted).has_value(); });
  const GroupRegister before = *later->Seen();
  const ConfigStore::Answer late = Do(earlier.get(), before.revision, first_);
  EXPECT_EQ(late.result, Result::kLost);
  EXPECT_EQ(late.now, before);
  const GroupConfiguration wanted = {.epoch = 1, .primary = restarted, .in_sync = {restarted}};
  EXPECT_EQ(Do(later.get(), before.revision, wanted).result, Result::kWon);
}

TEST_F(EtcdConfigStoreTest, AHandOverToAProcessThatWasReplacedIsNotExecuted) {
  auto primary = Open("n1");
  primary->Announce(kN1, "h:1", 0);
  auto successor = Open("n2");
  successor->Announce(kN2, "h:2", 0);
  PollUntil(primary.get(), [&] { return primary->AddressOf(kN1).has_value(); });
  PollUntil(successor.get(), [&] { return successor->AddressOf(kN2).has_value(); });
  const GroupConfiguration both = first_.With(kN2);
  const ConfigStore::Answer before = Do(primary.get(), primary->Seen()->revision, both);
  ASSERT_EQ(before.result, Result::kWon);
  auto later = Open("n2");
  const GroupMember restarted = {"n2", 0xb9};
  later->Announce(restarted, "h:2", 0);
  PollUntil(later.get(), [&] { return later->AddressOf(restarted).has_value(); });
  const ConfigStore::Answer named = Do(primary.get(), before.now.revision, both.Under(kN2));
  EXPECT_EQ(named.result, Result::kLost);
  EXPECT_EQ(named.now, before.now);
  const GroupConfiguration now = first_.With(restarted);
  const ConfigStore::Answer removed = Do(primary.get(), before.now.revision, now);
  ASSERT_EQ(removed.result, Result::kWon);
  EXPECT_EQ(Do(primary.get(), removed.now.revision, now.Under(restarted)).result, Result::kWon);
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
  EXPECT_EQ(
      ValueOf(VersionKey("c", "n1")),
      Encode(NodeVersion{
          .incarnation = 0xb1, .version = "0.2.0", .moves = true, .stream = kStreamVersions.max}));
  PollUntil(store->get(), [&] {
    const auto seen = (*store)->NodeOf("n1");
    return seen && seen->stream_version == kStreamVersions.max;
  });
}

TEST_F(EtcdConfigStoreTest, TellsWhatIsOnDisksAndBeginsTheGroupAgain) {
  auto other = Open("n2");
  other->Announce(kN2, "h:2", 0);
  auto store = Open("n1");
  const KeptRun kept = {.process = 0xa1, .history = 0x11, .lsn = 7, .always = true, .opened = 1};
  store->AnnounceKept(kept);
  store->Announce(kN1, "h:1", 0);
  PollUntil(other.get(), [&] { return other->NodeOf("n1") && other->NodeOf("n1")->kept; });
  EXPECT_EQ(other->NodeOf("n1")->kept, kept);
  EXPECT_EQ(other->NodeOf("n1")->incarnation, kN1.incarnation);
  EXPECT_FALSE(other->NodeOf("n9"));
  PollUntil(store.get(), [&] { return store->AddressOf(kN1) && store->AddressOf(kN2); });
  const auto begin = [&](uint64_t history, const GroupMember& n2) {
    store->BeginAgain(store->Seen()->revision, first_, history, {n2});
    return AnswerOf(store.get()).result;
  };
  EXPECT_EQ(begin(0x12, {"n2", 0xb9}), Result::kLost) << "not the newest process";
  EXPECT_EQ(store->terms().history, 0x11u);
  EXPECT_EQ(begin(0x12, kN2), Result::kWon);
  EXPECT_EQ(store->terms().history, 0x12u);
  EXPECT_EQ(store->Seen()->configuration, first_);

  // A later process of the node says nothing of the disk.
  auto later = Open("n1");
  later->Announce({"n1", 0xb9}, "h:1", 0);
  PollUntil(other.get(), [&] { return other->NodeOf("n1")->incarnation == 0xb9; });
  EXPECT_FALSE(other->NodeOf("n1")->kept);
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

  call_ms_ = 500;
  EtcdConfigStore::Options away = OptionsOf("n1");
  away.open_ms = 300;
  away.etcd.endpoints = {"http://127.0.0.1:1"};
  EXPECT_THAT(message(away, kUnavailable),
              AllOf(HasSubstr("http://127.0.0.1:1"), HasSubstr("Does etcd run at")));
  etcd_.process(0).Stop();
  away.etcd.endpoints = etcd_.Urls();
  EXPECT_THAT(message(away, kUnavailable), HasSubstr("Does etcd run at"));
}

// A member that executes itself again has only etcd to tell it where to go on.
TEST_F(EtcdConfigStoreTest, WhoIsPatientWaitsUntilEtcdIsBack) {
  call_ms_ = 500;
  etcd_.process(0).Stop();
  EtcdConfigStore::Options away = OptionsOf("n1");
  away.open_ms = 100;
  away.patient = true;
  std::atomic<bool> opened = false;
  std::thread opening([&] {
    const auto store = EtcdConfigStore::Open(away);
    EXPECT_TRUE(store.ok()) << store.status();
    opened = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_FALSE(opened);
  etcd_.process(0).Signal(SIGCONT);
  opening.join();
}

// etcd's data is lost. n1 is primary, n2 its backup, and both live.
TEST_F(EtcdConfigStoreTest, AGroupThatEtcdHasLostIsAdoptedAndNotFounded) {
  using Standing = ConfigStore::Standing;
  auto primary = Open("n1");
  auto backup = Open("n2");
  primary->Announce(kN1, "h:1", 7);
  backup->Announce(kN2, "h:2", 7);
  PollUntil(primary.get(), [&] { return primary->AddressOf(kN1).has_value(); });
  PollUntil(backup.get(), [&] { return backup->AddressOf(kN2).has_value(); });
  const auto founded = Do(primary.get(), primary->Seen()->revision, first_);
  const GroupConfiguration both = first_.With(kN2);
  ASSERT_EQ(Do(primary.get(), founded.now.revision, both).result, Result::kWon);
  PollUntil(backup.get(), [&] { return backup->Seen()->configuration == both; });
  primary->AnnounceItems(false);
  backup->AnnounceItems(false);
  const GroupRegister known = *primary->Seen();
  const GroupPolicy policy = {.settings = {{"on_full", "evict"}, {"shards", "3"}}};
  caller_.Put(PolicyKey("c", "g1"), Encode(policy));
  PollUntil(primary.get(), [&] { return *primary->Policy() == policy; });
  PollUntil(backup.get(), [&] { return *backup->Policy() == policy; });  // else revisions differ

  etcd_.Kill(0);
  std::filesystem::remove_all(etcd_.DataFolder(0));
  etcd_.Restart(0);
  PollUntil(primary.get(), [&] { return primary->standing() == Standing::kLost; });
  EXPECT_EQ(primary->Seen(), known) << "all goes on as it was";
  primary->AnnounceItems(true);
  const auto life_of = [&](const std::string& node) {
    return DecodeNodeLife(ValueOf(LifeKey("c", node))).value_or(NodeLife{});
  };
  PollUntil(primary.get(), [&] { return life_of("n1").leads; });
  EXPECT_EQ(life_of("n1").known.in_sync, both.in_sync);
  EXPECT_EQ(life_of("n1").policy, policy);
  PollUntil(backup.get(), [&] { return life_of("n2").incarnation == kN2.incarnation; });
  // Its primary goes on, and may die.
  backup->Announce(kN2, "h:2", 9);
  PollUntil(backup.get(), [&] { return life_of("n2").applied == 9; });
  EXPECT_EQ(Do(primary.get(), known.revision, first_).result, Result::kUnknown);

  // An operator makes the cluster anew. A process that starts must not found an empty group.
  const auto create = CreateClusterTxn(
      {.name = "c", .groups = {{.name = "g1", .members = {"n1", "n2"}}}}, [] { return 0x99; });
  ASSERT_EQ(caller_.Txn({.puts = create->puts}).outcome, kWon);
  const GroupMember again = {"n2", 0xb9};
  auto founder = Open("n2");
  founder->Announce(again, "h:3", 0);
  PollUntil(founder.get(), [&] { return founder->AddressOf(again).has_value(); });
  EXPECT_THAT(founder->WithItems(), testing::ElementsAre("n1", "n2"));
  EXPECT_EQ(Do(founder.get(), founder->Seen()->revision,
               {.epoch = 1, .primary = again, .in_sync = {again}})
                .result,
            Result::kLost);

  PollUntil(primary.get(), [&] { return primary->standing() == Standing::kUnfounded; });
  primary->Adopt(known.configuration);
  const ConfigStore::Answer adopted = AnswerOf(primary.get());
  EXPECT_EQ(adopted.result, Result::kWon);
  EXPECT_EQ(adopted.now.configuration, both);
  EXPECT_GT(adopted.now.revision, known.revision);
  EXPECT_EQ(primary->terms().history, 0x11u);
  PollUntil(primary.get(), [&] { return primary->standing() == Standing::kThere; });
  PollUntil(backup.get(), [&] { return backup->Seen() == adopted.now; });
  PollUntil(primary.get(), [&] { return ValueOf(LifeKey("c", "n1")).empty(); });
  EXPECT_EQ(Do(primary.get(), known.revision, first_).result, Result::kLost);
  EXPECT_EQ(Do(primary.get(), adopted.now.revision, first_).result, Result::kWon);
}

TEST_F(EtcdConfigStoreTest, AnEarlierProcessInARestoredBackupDoesNotEndThisOne) {
  const auto first = Open("n1");
  first->Announce({"n1", 0xa1}, "h:0", 1);
  PollUntil(first.get(), [&] { return first->AddressOf({"n1", 0xa1}).has_value(); });
  etcd_.Kill(0);
  const std::filesystem::path backup = etcd_.DataFolder(0) + "-backup";
  std::filesystem::copy(etcd_.DataFolder(0), backup, std::filesystem::copy_options::recursive);
  etcd_.Restart(0);
  auto store = Open("n1");
  store->Announce(kN1, "h:1", 1);
  PollUntil(store.get(), [&] { return store->AddressOf(kN1).has_value(); });

  etcd_.Kill(0);
  std::filesystem::remove_all(etcd_.DataFolder(0));
  std::filesystem::rename(backup, etcd_.DataFolder(0));
  etcd_.Restart(0);
  PollUntil(store.get(), [&] { return !store->AddressOf(kN1).has_value(); });
  PollUntil(store.get(), [&] { return store->AddressOf(kN1).has_value(); });
  EXPECT_FALSE(store->Replaced());
}

// It ended that process, which may have had the last copy.
TEST_F(EtcdConfigStoreTest, WhatNobodyCanReadInItsAnnouncementIsWrittenOver) {
  auto store = Open("n1");
  store->Announce(kN1, "h:1", 1);
  PollUntil(store.get(), [&] { return store->AddressOf(kN1).has_value(); });
  for (const char* const garbage : {"###", "{}", ""}) {
    ASSERT_EQ(caller_.Put(NodeKey("c", "n1"), garbage).outcome, kWon);
    PollUntil(store.get(), [&] { return ValueOf(NodeKey("c", "n1")) != garbage; });
    PollUntil(store.get(), [&] { return store->AddressOf(kN1).has_value(); });
    EXPECT_FALSE(store->Replaced());
  }
}

}  // namespace
}  // namespace gannet
