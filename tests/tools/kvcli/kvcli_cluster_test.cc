// kvcli cluster with a real etcd, and no servers: the test plays their part.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "common/cluster/cluster_config.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/cluster_map.h"
#include "common/cluster/node_life.h"
#include "common/protocol/versions.h"
#include "tests/support/run_program.h"
#include "tests/tools/kvcli/kvcli_with_etcd.h"

namespace gannet {
namespace {

using Json = nlohmann::json;
using test_support::Finished;
using test_support::ProgramPath;
using test_support::RunProgram;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const GroupMember kN1 = {"n1", 0xb1};
const GroupMember kN2 = {"n2", 0xb2};

class KvcliClusterTest : public KvcliWithEtcd {
 protected:
  void Init() {
    const Finished done = Kvcli({"init", "--group=g1:n1,n2,n3", "--wait=0"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  GroupConfig Group() {
    const auto answer = caller_.Range(GroupKey("c", "g1"));
    EXPECT_TRUE(answer.ok() && answer->items.size() == 1);
    return *DecodeGroupConfig(answer->items.at(0).value);
  }
  void PutGroup(const GroupConfig& config) {
    ASSERT_EQ(caller_.Put(GroupKey("c", "g1"), Encode(config)).outcome,
              EtcdTxnResult::Outcome::kWon);
  }
  // n1 is primary, and n2 its backup.
  void Found() {
    GroupConfig config = Group();
    config.epoch = 3;
    config.primary = kN1;
    config.in_sync = {kN1, kN2};
    PutGroup(config);
    for (const GroupMember& member : config.in_sync) {
      caller_.Put(NodeKey("c", member.node),
                  Encode(NodeInfo{.incarnation = member.incarnation, .address = "127.0.0.1:1"}));
    }
  }
  void AwaitWish() {
    bool there = false;
    const uint64_t watch = caller_.client().Watch(WishKey("c", "g1"), [&](const EtcdNews& news) {
      there |= !news.items.empty() || !news.changes.empty();
    });
    EXPECT_TRUE(caller_.PollUntil([&] { return there; }));
    caller_.client().Unwatch(watch);
  }
  // Runs kvcli while a process lives that announces itself whenever its node's key is gone.
  Finished KvcliWhileLives(const GroupMember& process, const Words& words) {
    std::atomic<bool> over = false;
    std::thread living([&] {
      EtcdCaller caller(etcd_.Urls());
      const std::string key = NodeKey("c", process.node);
      const NodeInfo info = {.incarnation = process.incarnation, .address = "h:1"};
      while (!over) {
        const auto there = caller.Range(key);
        if (there.ok() && there->items.empty()) caller.Put(key, Encode(info));
      }
    });
    const Finished done = Kvcli(words);
    over = true;
    living.join();
    return done;
  }
  bool HasWish() { return !caller_.Range(WishKey("c", "g1"))->items.empty(); }
};

TEST_F(KvcliClusterTest, MakesAClusterOnceAndShowsIt) {
  EXPECT_EQ(Kvcli({"status"}).exit_code, 1);
  const Finished made =
      Kvcli({"init", "--group=g1:n1,n2,n3", "--lease_ms=300", "--min_copies=2", "--wait=0"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("kvserver --cluster=c --etcd=" + etcd_.Url(0) + " --name=n1"));
  EXPECT_EQ(Group().lease_ms, 300u);
  EXPECT_EQ(Group().min_copies, 2u);
  const Finished again = Kvcli({"init", "--group=g1:n1", "--json"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(Json::parse(again.out)["error"], "ALREADY_EXISTS") << again.out;
  const Finished there = Kvcli({"init", "--group=g1:n1", "--if_missing"});
  EXPECT_EQ(there.exit_code, 0) << there.err;
  EXPECT_EQ(Group().lease_ms, 300u) << "it was changed";

  Found();
  const Finished status = Kvcli({"status", "--json"});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  const Json group = Json::parse(status.out)["groups"][0];
  EXPECT_EQ(group["epoch"], 3);
  EXPECT_EQ(group["primary"], "n1");
  EXPECT_EQ(group["in_sync"], Json({"n1", "n2"}));
  EXPECT_EQ(group["members"].size(), 3u);
  EXPECT_EQ(group["on_full"], "reject");
}

// Nobody is where etcd says.
TEST_F(KvcliClusterTest, StatusAsksTheMembersThemselves) {
  Init();
  Found();
  const Finished status = Kvcli({"status"});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_THAT(status.out, AllOf(HasSubstr("group g1: down, epoch 3, primary n1, 0 of 3 in sync"),
                                HasSubstr("! its primary n1 does not serve")));
  const Finished check = Kvcli({"status", "--check", "--json"});
  EXPECT_EQ(check.exit_code, 3);
  const Json json = Json::parse(check.out);
  EXPECT_EQ(json["health"], "down");
  EXPECT_EQ(json["groups"][0]["members"][0]["state"], "dead");
  EXPECT_EQ(json["groups"][0]["members"][2]["state"], "absent");
  // Nor may it say that members of other hosts are dead, which softverbs does not reach.
  for (const GroupMember& member : {kN1, kN2}) {
    caller_.Put(NodeKey("c", member.node),
                Encode(NodeInfo{.incarnation = member.incarnation, .address = "198.51.100.1:1"}));
  }
  const Finished far = Kvcli({"status", "--check"});
  EXPECT_EQ(far.exit_code, 1) << "n3 has not run; of the others nothing is known";
  EXPECT_THAT(far.out, AllOf(HasSubstr("primary n1, 2 of 3 in sync"),
                             HasSubstr("members were not asked, so this is what etcd has")));
  caller_.Txn({.deletes = {GroupKey("c", "g1")}});
  const Finished lost = Kvcli({"status", "--check"});
  EXPECT_EQ(lost.exit_code, 3);
  EXPECT_THAT(lost.out, HasSubstr("etcd has lost the group's entry"));
}

TEST_F(KvcliClusterTest, AddsAndRemovesMembers) {
  Init();
  Found();
  EXPECT_EQ(Kvcli({"add", "g1", "n4"}).exit_code, 0);
  EXPECT_THAT(Group().members, ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_EQ(Kvcli({"add", "g1", "n4"}).exit_code, 1);
  const Finished removed = Kvcli({"remove", "g1", "n2", "--json"});
  EXPECT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_EQ(Json::parse(removed.out)["members"], Json({"n1", "n3", "n4"}));
  EXPECT_THAT(Group().in_sync, ElementsAre(kN1));
  EXPECT_TRUE(caller_.Range(NodeKey("c", "n2"))->items.empty());
  const Finished primary = Kvcli({"remove", "g1", "n1"});
  EXPECT_EQ(primary.exit_code, 1);
  EXPECT_THAT(primary.err, HasSubstr("Hand over first"));
}

TEST_F(KvcliClusterTest, SetsTheTermsOfAGroupThatRuns) {
  Init();
  Found();
  // An older member would go by the lease that it found when it was started.
  const Finished older = Kvcli({"set", "g1", "lease_ms=900"});
  EXPECT_EQ(older.exit_code, 1);
  EXPECT_THAT(older.err, AllOf(HasSubstr("member n1 of group g1 runs Gannet 0.1.0"),
                               HasSubstr("Upgrade it first")));
  EXPECT_EQ(Group().lease_ms, 600u);
  for (const GroupMember& member : {kN1, kN2}) {
    caller_.Put(VersionKey("c", member.node), Encode(NodeVersion{.incarnation = member.incarnation,
                                                                 .version = "0.2.0",
                                                                 .moves = true,
                                                                 .stream = kStreamVersions.max}));
  }
  const GroupConfig before = Group();
  // A later version has set something, which stays.
  caller_.Put(PolicyKey("c", "g1"), R"({"format":1,"on_full":"reject","shards":"3"})");
  const Finished set = Kvcli({"set", "g1", "lease_ms=900", "min_copies=2", "on_full=evict",
                              "sync=always", "silence_ms=900", "index_grows=false"});
  EXPECT_EQ(set.exit_code, 0) << set.err;
  EXPECT_THAT(set.out, AllOf(HasSubstr("min_copies 2, was 1. It counts now"),
                             HasSubstr("lease_ms 900, was 600. It counts from the next primary on"),
                             HasSubstr("on_full evict, was reject. It counts for each member from "
                                       "its next start on"),
                             HasSubstr("sync always, was not set. It counts for each member"),
                             HasSubstr("With always, a member without --data does not start any "
                                       "more")));
  GroupConfig after = before;
  after.lease_ms = 900;
  after.min_copies = 2;
  EXPECT_EQ(Group(), after) << "all else stays as it was";
  const Json group = Json::parse(Kvcli({"status", "--json"}).out)["groups"][0];
  EXPECT_EQ(group["on_full"], "evict");
  EXPECT_EQ(group["sync"], "always");
  EXPECT_EQ(group["silence_ms"], 900);
  EXPECT_EQ(group["index_grows"], false);
  EXPECT_EQ(group["lock_words"], nullptr);
  EXPECT_EQ(group["unknown_settings"], Json({"shards=3"}));
  EXPECT_EQ(group["min_copies"], 2);
  EXPECT_THAT(
      Kvcli({"status"}).out,
      HasSubstr(
          "writes need 2 in sync; all members: on_full=evict sync=always "
          "silence_ms=900 index_grows=false\n  set, but not known to this version: shards=3\n"));

  const Finished many = Kvcli({"set", "g1", "min_copies=4"});
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_THAT(many.err, HasSubstr("min_copies is not between 1 and the number of members"));
  EXPECT_EQ(Kvcli({"set", "g9", "min_copies=1"}).exit_code, 1);
  EXPECT_EQ(Group(), after);
}

// Such groups were made by the version before.
TEST_F(KvcliClusterTest, AGroupWithoutAPolicySaysSoAndGetsOne) {
  Init();
  caller_.Txn({.deletes = {PolicyKey("c", "g1")}});
  EXPECT_EQ(Json::parse(Kvcli({"status", "--json"}).out)["groups"][0]["on_full"], nullptr);
  EXPECT_THAT(
      Kvcli({"status"}).out,
      HasSubstr(
          "on_full as each member's own flag says (kvcli cluster set g1 on_full=reject|evict)"));
  const Finished set = Kvcli({"set", "g1", "on_full=reject"});
  EXPECT_EQ(set.exit_code, 0) << set.err;
  EXPECT_THAT(set.out, HasSubstr("on_full reject, was not set"));
  EXPECT_THAT(Kvcli({"status"}).out, HasSubstr("all members: on_full=reject"));

  // What this version cannot read is not lost by it.
  const std::string newer = R"({"format":2,"on_full":{"g1":"evict"}})";
  caller_.Put(PolicyKey("c", "g1"), newer);
  const Finished refused = Kvcli({"set", "g1", "on_full=reject"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("a later version of kvcli has set what the members of group "
                                     "g1 do alike"));
  EXPECT_EQ(caller_.Range(PolicyKey("c", "g1"))->items.at(0).value, newer);
  EXPECT_THAT(Kvcli({"status"}).out, HasSubstr("policies/g1 in etcd: policy: format 2 is newer"));
}

TEST_F(KvcliClusterTest, WaitsUntilThePrimaryHasHandedOver) {
  Init();
  Found();
  test_support::ChildProcess kvcli({.argv = Command({"handover", "g1", "n2", "--wait=60s"}),
                                    .streams = test_support::ChildProcess::Streams::kCaptured});
  AwaitWish();
  GroupConfig config = Group();
  config.epoch = 4;
  config.primary = kN2;
  PutGroup(config);
  const Finished done = test_support::Finish(kvcli);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("n2 is primary of group g1, epoch 4"));
  EXPECT_EQ(Kvcli({"handover", "g1", "n2"}).exit_code, 0) << "it is already";
}

TEST_F(KvcliClusterTest, TakesBackAWishThatNobodyFulfils) {
  Init();
  Found();
  EXPECT_EQ(Kvcli({"handover", "g1", "n3"}).exit_code, 1) << "not in sync";
  EXPECT_FALSE(HasWish());
  const Finished late = Kvcli({"handover", "g1", "n2", "--wait=100ms"});
  EXPECT_EQ(late.exit_code, 3);
  EXPECT_THAT(late.err, HasSubstr("It is not asked any more"));
  EXPECT_FALSE(HasWish());
}

TEST_F(KvcliClusterTest, SaysThatThePrimaryGaveAWishUp) {
  Init();
  Found();
  test_support::ChildProcess kvcli({.argv = Command({"handover", "g1", "n2", "--wait=6s"}),
                                    .streams = test_support::ChildProcess::Streams::kCaptured});
  AwaitWish();
  caller_.Txn({.deletes = {WishKey("c", "g1")}});
  const Finished done = test_support::Finish(kvcli);
  EXPECT_EQ(done.exit_code, 1) << done.out;
  EXPECT_THAT(done.err, HasSubstr("the primary has not handed over"));
}

TEST_F(KvcliClusterTest, ForcesAPrimaryWithANewHistory) {
  Init();
  Found();
  EXPECT_EQ(Kvcli({"force", "g1", "--from=n2"}).exit_code, 2);
  const uint64_t history = Group().history;
  const Finished done = KvcliWhileLives(kN2, {"force", "g1", "--from=n2", "--lose-data"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("lost: what only n1 has"));
  const GroupConfig config = Group();
  EXPECT_NE(config.history, history);
  EXPECT_EQ(config.epoch, 4u);
  EXPECT_EQ(config.primary, kN2);
  EXPECT_THAT(config.in_sync, ElementsAre(kN2));
}

// Right after a restart etcd still has what the former process said of itself.
TEST_F(KvcliClusterTest, ForcesTheProcessThatLives) {
  Init();
  Found();
  const GroupMember restarted = {"n2", 0xb9};
  const Finished done = KvcliWhileLives(restarted, {"force", "g1", "--from=n2", "--lose-data"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(Group().primary, restarted);
}

TEST_F(KvcliClusterTest, ForcesNobodyWhoDoesNotRun) {
  Init();
  Found();
  const GroupConfig before = Group();
  const std::string said = caller_.Range(NodeKey("c", "n2"))->items.at(0).value;
  const Finished done = Kvcli({"force", "g1", "--from=n2", "--lose-data", "--wait=300ms"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("no process of n2 has announced itself within 300 ms"));
  EXPECT_EQ(Group(), before);
  EXPECT_EQ(caller_.Range(NodeKey("c", "n2"))->items.at(0).value, said);
}

// --- etcd has lost the cluster ---

class KvcliLostClusterTest : public KvcliClusterTest {
 protected:
  static NodeLife LifeOf(const GroupMember& process, bool leads) {
    return {.incarnation = process.incarnation,
            .group = "g1",
            .known = {.history = 0x11,
                      .epoch = 3,
                      .primary = kN1,
                      .in_sync = {kN1, kN2},
                      .members = {"n1", "n2", "n3"},
                      .lease_ms = 300},
            .map = FillPartitions({"g1"}),
            .leads = leads,
            .applied = 7};
  }
  void PutLife(const GroupMember& process, bool leads) {
    ASSERT_EQ(caller_.Put(LifeKey("c", process.node), Encode(LifeOf(process, leads))).outcome,
              EtcdTxnResult::Outcome::kWon);
  }
  bool HasCluster() { return !caller_.Range(ConfigKey("c"))->items.empty(); }
  // Runs kvcli while the primary lives: it says so whenever its note is another one, and leads the
  // group again when it may.
  Finished KvcliWhilePrimaryLives(const Words& words) {
    std::atomic<bool> over = false;
    std::thread living([&] {
      EtcdCaller caller(etcd_.Urls());
      const NodeLife life = LifeOf(kN1, true);
      while (!over) {
        const auto note = caller.Range(LifeKey("c", "n1"));
        if (note.ok() && (note->items.empty() || note->items[0].value != Encode(life))) {
          caller.Put(LifeKey("c", "n1"), Encode(life));
        }
        const auto group = caller.Range(GroupKey("c", "g1"));
        if (!group.ok() || group->items.empty()) continue;
        if (DecodeGroupConfig(group->items[0].value)->epoch > 0) continue;
        caller.Put(GroupKey("c", "g1"), Encode(life.known), group->items[0].mod_revision);
      }
    });
    const Finished done = Kvcli(words);
    over = true;
    living.join();
    return done;
  }
};

TEST_F(KvcliLostClusterTest, StatusSaysWhoLives) {
  PutLife(kN1, true);
  const Finished status = Kvcli({"status"});
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_THAT(status.err, AllOf(HasSubstr("etcd has lost cluster c"),
                                HasSubstr("n1 (primary in epoch 3, applied 7) of group g1"),
                                HasSubstr("kvcli cluster init --group=g1:n1,n2,n3")));
}

TEST_F(KvcliLostClusterTest, InitTakesOverWhatLives) {
  const Finished done = KvcliWhilePrimaryLives({"init", "--group=g1:n1", "--min_copies=1"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("n1 leads group g1 as before, epoch 3"));
  EXPECT_EQ(Group(), LifeOf(kN1, true).known);
  EXPECT_TRUE(HasCluster());
}

TEST_F(KvcliLostClusterTest, WhatTheDeadHadKeepsAnEmptyGroupFromBeingMade) {
  PutLife(kN2, false);
  const Words init = {"init", "--group=g1:n1,n2,n3", "--wait=0"};
  const Finished refused = Kvcli(init);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--abandon=n2"));
  EXPECT_FALSE(HasCluster());
  EXPECT_EQ(caller_.Range(LifeKey("c", "n2"))->items.at(0).value, Encode(LifeOf(kN2, false)))
      << "it is of interest still";
  const Finished done = Kvcli({"init", "--group=g1:n1,n2,n3", "--wait=0", "--abandon=n2"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(HasCluster());
  EXPECT_TRUE(caller_.Range(LifeKey("c", "n2"))->items.empty());
}

TEST_F(KvcliLostClusterTest, NobodyAbandonsWhoLives) {
  const Finished done = KvcliWhilePrimaryLives({"init", "--group=g1:n1", "--abandon=n1"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("n1 lives"));
}

TEST_F(KvcliClusterTest, ForcesNoWorseDiskUnlessAsked) {
  Init();
  Found();
  const GroupMember again = {"n2", 0xb9};
  for (const auto& [node, incarnation, applied] :
       {std::tuple("n1", 0xb8, 9), std::tuple("n2", 0xb9, 5)}) {
    caller_.Put(NodeKey("c", node),
                Encode(NodeInfo{.incarnation = uint64_t(incarnation), .address = "h:1"}));
    caller_.Put(DiskKey("c", node), Encode(NodeDisk{.incarnation = uint64_t(incarnation),
                                                    .run = 0xb1,
                                                    .history = Group().history,
                                                    .applied = uint64_t(applied)}));
  }
  const GroupConfig before = Group();
  const Words words = {"force", "g1", "--from=n2", "--lose-data"};
  const Finished refused = KvcliWhileLives(again, words);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("the disk of n1 has all up to LSN 9, and n2 up to 5"),
                                 HasSubstr("--even-if-worse")));
  EXPECT_EQ(Group(), before);
  Words even = words;
  even.push_back("--even-if-worse");
  EXPECT_EQ(KvcliWhileLives(again, even).exit_code, 0);
  EXPECT_EQ(Group().primary, again);
}

// Garbage that somebody has written is no reason to show nothing.
TEST_F(KvcliClusterTest, NamesWhatGannetHasNotWritten) {
  Init();
  Found();
  caller_.Put(NodeKey("c", "n2"), "###");
  caller_.Put(WishKey("c", "g1"), "###");
  const Finished status = Kvcli({"status"});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_THAT(status.out, AllOf(HasSubstr("epoch 3, primary n1"),
                                HasSubstr("ignored: /gannet/c/nodes/n2 in etcd"),
                                HasSubstr("ignored: /gannet/c/wishes/g1 in etcd")));
  EXPECT_EQ(Json::parse(Kvcli({"status", "--json"}).out)["unreadable"].size(), 2u);
}

TEST_F(KvcliClusterTest, SaysWhatIsWrong) {
  const Finished usage = Kvcli({"status", "g1"});
  EXPECT_EQ(usage.exit_code, 2);
  EXPECT_THAT(usage.err,
              AllOf(HasSubstr("one word too many"), HasSubstr("usage: cluster status [--check]")));
  const Finished name = RunProgram(
      {ProgramPath("kvcli"), "cluster", "status", "--cluster=a b", "--etcd=" + etcd_.Url(0)});
  EXPECT_EQ(name.exit_code, 2);
  EXPECT_THAT(name.err, HasSubstr("the name of a cluster"));
  const Finished url =
      RunProgram({ProgramPath("kvcli"), "cluster", "status", "--cluster=c", "--etcd=127.0.0.1:1"});
  EXPECT_EQ(url.exit_code, 2);
  EXPECT_THAT(url.err, HasSubstr("is no URL of etcd"));
  const Finished away = RunProgram(
      {ProgramPath("kvcli"), "cluster", "status", "--cluster=c", "--etcd=http://127.0.0.1:1"});
  EXPECT_EQ(away.exit_code, 3);
  EXPECT_THAT(away.err, HasSubstr("http://127.0.0.1:1"));
}

}  // namespace
}  // namespace gannet
