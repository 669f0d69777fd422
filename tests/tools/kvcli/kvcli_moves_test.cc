// kvcli cluster: groups that are added and removed, and moves of partitions, with a real etcd and
// no servers: the test plays their part.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/cluster/cluster_config.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/map_changes.h"
#include "tests/support/run_program.h"
#include "tests/tools/kvcli/kvcli_with_etcd.h"

namespace gannet {
namespace {

using Json = nlohmann::json;
using test_support::Finished;
using ::testing::AllOf;
using ::testing::HasSubstr;

class KvcliMovesTest : public KvcliWithEtcd {
 protected:
  // g1 and g2, with a member each, both of which are primary.
  void Begin() {
    const Finished made = Kvcli({"init", "--group=g1:n1", "--group=g2:n2", "--wait=0"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    Start("g1", {"n1", 0xb1});
    Start("g2", {"n2", 0xb2});
  }
  void Start(const std::string& group, const GroupMember& member, bool knows_moves = true) {
    GroupConfig config = *DecodeGroupConfig(ValueOf(GroupKey("c", group)));
    config.epoch = 1;
    config.primary = member;
    config.in_sync = {member};
    Put(GroupKey("c", group), Encode(config));
    Put(NodeKey("c", member.node),
        Encode(NodeInfo{.incarnation = member.incarnation, .address = "127.0.0.1:1"}));
    if (!knows_moves) return;
    Put(VersionKey("c", member.node),
        Encode(NodeVersion{.incarnation = member.incarnation, .version = "0.2.0", .moves = true}));
  }
  void Put(const std::string& key, const std::string& value) {
    ASSERT_EQ(caller_.Put(key, value).outcome, EtcdTxnResult::Outcome::kWon);
  }
  std::string ValueOf(const std::string& key) {
    const auto answer = caller_.Range(key);
    return answer.ok() && !answer->items.empty() ? answer->items.front().value : "";
  }
  ClusterConfig Map() { return *DecodeClusterConfig(ValueOf(ConfigKey("c"))); }
  // Returns partitions that a group has.
  std::vector<uint16_t> PartitionsOf(const std::string& group) {
    const ClusterConfig map = Map();
    std::vector<uint16_t> all;
    for (uint16_t p = 0; p < map.partitions.size(); ++p) {
      if (map.groups[map.partitions[p]] == group) all.push_back(p);
    }
    return all;
  }
  size_t Wishes() { return caller_.RangeOfPrefix("/gannet/c/moves/")->items.size(); }
  static Words MoveWords(const std::vector<uint16_t>& partitions, const std::string& to) {
    Words words = {"move", "--to=" + to};
    for (const uint16_t partition : partitions) words.push_back(std::to_string(partition));
    return words;
  }

  // Does what servers would do for wishes: what is wanted, or what is not wanted any more. `back`:
  // a partition that g2 gets together with the first of them.
  static void Serve(EtcdCaller* caller, std::optional<uint16_t> back = std::nullopt) {
    const auto all = caller->RangeOfPrefix("/gannet/c/");
    ASSERT_TRUE(all.ok()) << all.status();
    ClusterConfig map;
    for (const EtcdKeyValue& item : all->items) {
      if (item.key == ConfigKey("c")) map = *DecodeClusterConfig(item.value);
    }
    EtcdTxn txn;
    for (const EtcdKeyValue& item : all->items) {
      const auto key = ParseClusterKey("c", item.key);
      if (!key || key->kind != ClusterKey::Kind::kMove || txn.deletes.size() == 100) continue;
      const MoveInfo move = *DecodeMoveInfo(item.value);
      const std::vector<uint16_t> one = {key->partition};
      const std::string giver = map.groups[map.partitions[key->partition]];
      if (!IsClosed(map, key->partition)) map = *ClosePartitions(map, giver, one);
      map = move.stop ? *ReopenPartitions(map, one)
                      : *GivePartitions(map, move.to, one, map.changed[key->partition]);
      txn.deletes.push_back(item.key);
    }
    if (txn.deletes.empty()) return;
    const std::vector<uint16_t> gets = {back.value_or(0)};
    if (back && map.groups[map.partitions[*back]] == "g1") {
      map = *ClosePartitions(map, "g1", gets);
      map = *GivePartitions(map, "g2", gets, map.changed[*back]);
    }
    txn.puts = {{ConfigKey("c"), Encode(map)}};
    EXPECT_EQ(caller->Txn(txn).outcome, EtcdTxnResult::Outcome::kWon);
  }
  Finished KvcliWhileServersMove(const Words& words) {
    std::atomic<bool> over = false;
    std::thread servers([&] {
      EtcdCaller caller(etcd_.Urls());
      while (!over) Serve(&caller);
    });
    const Finished done = Kvcli(words);
    over = true;
    servers.join();
    return done;
  }
};

TEST_F(KvcliMovesTest, AddsAGroupAndLetsItGo) {
  Begin();
  const Finished added = Kvcli({"add-group", "g3:n3,n4", "--lease_ms=300"});
  EXPECT_EQ(added.exit_code, 0) << added.err;
  EXPECT_THAT(added.out,
              AllOf(HasSubstr("kvserver --name=n3"), HasSubstr("kvcli cluster balance")));
  const auto group = DecodeGroupConfig(ValueOf(GroupKey("c", "g3")));
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->lease_ms, 300u);
  EXPECT_EQ(group->epoch, 0u);
  EXPECT_EQ(Map().groups.size(), 3u);
  EXPECT_TRUE(PartitionsOf("g3").empty());
  const Finished again = Kvcli({"add-group", "g3:n5"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("has a group g3 already"));
  EXPECT_THAT(Kvcli({"status"}).out,
              HasSubstr("group g3: down, epoch 0, primary none, 0 of 2 in sync"));

  const Finished nobody = Kvcli({"balance", "--by_partitions"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.err, HasSubstr("no member of group g3 has been started"));
  EXPECT_EQ(Wishes(), 0u);

  Start("g3", {"n3", 0xb3});
  EXPECT_EQ(Kvcli({"remove-group", "g1"}).exit_code, 1);
  const Finished removed = Kvcli({"remove-group", "g3"});
  EXPECT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_EQ(Map().groups.size(), 2u);
  for (const std::string& key : {GroupKey("c", "g3"), NodeKey("c", "n3"), VersionKey("c", "n3")}) {
    EXPECT_EQ(ValueOf(key), "") << key;
  }
}

TEST_F(KvcliMovesTest, NothingIsChangedWhileAMemberKnowsOfNoMoves) {
  const Finished made = Kvcli({"init", "--group=g1:n1", "--group=g2:n2", "--wait=0"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  Start("g1", {"n1", 0xb1});
  Start("g2", {"n2", 0xb2}, /*knows_moves=*/false);
  const std::string before = ValueOf(ConfigKey("c"));
  for (const Words& words : {Words{"add-group", "g3:n3"}, MoveWords(PartitionsOf("g1"), "g2"),
                             Words{"drain", "g1", "--by_partitions"}}) {
    const Finished refused = Kvcli(words);
    EXPECT_EQ(refused.exit_code, 1) << words[0];
    EXPECT_THAT(refused.err, HasSubstr("member n2 of group g2 runs Gannet 0.1.0")) << words[0];
  }
  EXPECT_EQ(ValueOf(ConfigKey("c")), before);
  EXPECT_EQ(Wishes(), 0u);
}

TEST_F(KvcliMovesTest, WaitsUntilPartitionsHaveMoved) {
  Begin();
  std::vector<uint16_t> some = PartitionsOf("g1");
  some.resize(3);
  const Finished moved = KvcliWhileServersMove(MoveWords(some, "g2"));
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_THAT(moved.out, AllOf(HasSubstr("plan: 3 partitions to move"),
                               HasSubstr("3 of 3 partitions have moved")));
  for (const uint16_t partition : some) {
    EXPECT_EQ(Map().groups[Map().partitions[partition]], "g2");
  }
  const Finished again = Kvcli(MoveWords(some, "g2"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("nothing is to be moved"));
  EXPECT_EQ(Kvcli(MoveWords(some, "g9")).exit_code, 1);
}

TEST_F(KvcliMovesTest, DrainsAndRemoves) {
  Begin();
  const Finished dry = Kvcli({"drain", "g2", "--by_partitions", "--dry-run", "--json"});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_EQ(Json::parse(dry.out)["moves"].size(), PartitionsOf("g2").size());
  EXPECT_EQ(Wishes(), 0u);
  const Finished drained = KvcliWhileServersMove({"drain", "g2", "--by_partitions", "--json"});
  EXPECT_EQ(drained.exit_code, 0) << drained.err;
  EXPECT_EQ(Json::parse(drained.out)["moved"], Json::parse(dry.out)["moves"].size());
  EXPECT_TRUE(PartitionsOf("g2").empty());
  EXPECT_EQ(Kvcli({"remove-group", "g2"}).exit_code, 0);
  const Finished last = Kvcli({"drain", "g1", "--by_partitions"});
  EXPECT_EQ(last.exit_code, 1);
  EXPECT_THAT(last.err, HasSubstr("the only one"));
}

// Each would get partitions of the other one.
TEST_F(KvcliMovesTest, OfTwoGroupsThatAreDrainedAtOnceOneIsRefused) {
  const Finished made = Kvcli({"init", "--group=g1:n1", "--group=g2:n2", "--group=g3:n3"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  Start("g1", {"n1", 0xb1});
  Start("g2", {"n2", 0xb2});
  Start("g3", {"n3", 0xb3});
  for (int round = 0; round < 5; ++round) {
    Finished other;
    std::thread at_once([&] { other = Kvcli({"drain", "g2", "--by_partitions", "--wait=0s"}); });
    const Finished one = Kvcli({"drain", "g3", "--by_partitions", "--wait=0s"});
    at_once.join();
    std::map<std::string, std::set<std::string>> ways;
    const Json moves = Json::parse(Kvcli({"moves", "--json"}).out)["moves"];
    for (const Json& move : moves) ways[move["from"]].insert(move["to"].get<std::string>());
    EXPECT_EQ(ways.size(), 1u) << moves;
    EXPECT_THAT(one.err + other.err, HasSubstr("already. Wait for it, or give that up first"));
    EXPECT_EQ(Kvcli({"moves", "--stop"}).exit_code, 0);
  }
}

TEST_F(KvcliMovesTest, SaysSoIfAGroupGotPartitionsWhileItWasDrained) {
  Begin();
  const uint16_t back = PartitionsOf("g1").front();
  std::atomic<bool> over = false;
  std::thread servers([&] {
    EtcdCaller caller(etcd_.Urls());
    while (!over) Serve(&caller, back);
  });
  const Finished drained = Kvcli({"drain", "g2", "--by_partitions"});
  over = true;
  servers.join();
  EXPECT_EQ(drained.exit_code, 1);
  EXPECT_THAT(drained.err, HasSubstr("group g2 has 1 partitions"));
  EXPECT_EQ(PartitionsOf("g2"), std::vector<uint16_t>{back});
}

// As if kvcli had been killed: what was asked for is there, and the same again waits for it.
TEST_F(KvcliMovesTest, WhoStopsWaitingGoesOnLater) {
  Begin();
  std::vector<uint16_t> some = PartitionsOf("g1");
  some.resize(3);
  Words words = MoveWords(some, "g2");
  words.emplace_back("--wait=0s");
  const Finished waited = Kvcli(words);
  EXPECT_EQ(waited.exit_code, 1);
  EXPECT_THAT(waited.err, AllOf(HasSubstr("0 of 3 partitions have moved"),
                                HasSubstr(". The servers go on without kvcli. To wait again"),
                                HasSubstr("--stop")));
  EXPECT_EQ(Wishes(), 3u);
  const Finished moves = Kvcli({"moves", "--json"});
  EXPECT_EQ(Json::parse(moves.out)["moves"].size(), 3u);
  EXPECT_THAT(Kvcli({"status"}).out, HasSubstr("g1 -> g2  3 to move, 0 closed for it"));
  EXPECT_EQ(Kvcli({"remove-group", "g2"}).exit_code, 1);
  EXPECT_EQ(KvcliWhileServersMove(MoveWords(some, "g2")).exit_code, 0);
  EXPECT_EQ(Wishes(), 0u);
}

// As with 2>&1 | tee.
TEST_F(KvcliMovesTest, ThePlanComesBeforeTheProgress) {
  Begin();
  std::vector<uint16_t> some = PartitionsOf("g1");
  some.resize(3);
  Words words = MoveWords(some, "g2");
  words.emplace_back("--wait=1500ms");
  std::string line = "env -u USER";
  for (const std::string& word : Command(words)) line += " '" + word + "'";
  const std::string out = test_support::RunProgram({"/bin/sh", "-c", line + " 2>&1"}).out;
  const size_t plan = out.find("plan: 3 partitions to move");
  const size_t progress = out.find("kvcli: 0 of 3 partitions have moved");
  ASSERT_NE(plan, std::string::npos) << out;
  ASSERT_NE(progress, std::string::npos) << out;
  EXPECT_LT(plan, progress) << out;
  const std::string asked = DecodeMoveInfo(ValueOf(MoveKey("c", some[0])))->asked;
  EXPECT_EQ(asked.find(" by ?"), std::string::npos) << asked;
}

TEST_F(KvcliMovesTest, GivesMovesUp) {
  Begin();
  std::vector<uint16_t> some = PartitionsOf("g1");
  some.resize(3);
  Words words = MoveWords(some, "g2");
  words.emplace_back("--wait=0s");
  Kvcli(words);
  ASSERT_EQ(Wishes(), 3u);
  // One is closed: only its receiver may open it again.
  const std::vector<uint16_t> closed = {some[1]};
  Put(ConfigKey("c"), Encode(*ClosePartitions(Map(), "g1", closed)));
  const Finished early = Kvcli({"moves", "--stop", "--wait=0s"});
  EXPECT_EQ(early.exit_code, 1);
  EXPECT_EQ(Wishes(), 1u);
  EXPECT_TRUE(DecodeMoveInfo(ValueOf(MoveKey("c", some[1])))->stop);
  EXPECT_TRUE(IsClosed(Map(), some[1]));
  const Finished stopped = KvcliWhileServersMove({"moves", "--stop"});
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_EQ(Wishes(), 0u);
  EXPECT_FALSE(IsClosed(Map(), some[1]));
  for (const uint16_t partition : some) {
    EXPECT_EQ(Map().groups[Map().partitions[partition]], "g1");
  }
  EXPECT_THAT(Kvcli({"moves", "--stop"}).out, HasSubstr("no partition moves"));
}

}  // namespace
}  // namespace gannet
