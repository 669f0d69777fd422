// What status tells of a cluster whose members were asked what they are.

#include "tools/kvcli/cluster_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tools/kvcli/cluster_health.h"

namespace gannet::kvcli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = MemberAnswer::Kind;

MemberAnswer Told(MemberRole role, uint64_t incarnation, uint16_t lease_left_ms = 0) {
  return {.kind = Kind::kTold,
          .why = "",
          .standing = {.role = role,
                       .epoch = 3,
                       .incarnation = incarnation,
                       .applied = 200,
                       .uptime_s = 3700,
                       .lease_left_ms = lease_left_ms}};
}
const MemberAnswer kDead = {.kind = Kind::kDead, .why = "nobody listens there"};

// n1 is primary, and n2 and n3 its backups. All is well.
ClusterState Whole() {
  ClusterState state = {.name = "c"};
  state.map.groups = {"g1"};
  state.map.partitions.assign(kPartitions, 0);
  state.groups["g1"].config = {.history = 0x11,
                               .epoch = 3,
                               .primary = {"n1", 0xb1},
                               .in_sync = {{"n1", 0xb1}, {"n2", 0xb2}, {"n3", 0xb3}},
                               .members = {"n1", "n2", "n3"}};
  state.nodes = {{"n1", {.incarnation = 0xb1, .address = "h:1", .applied = 100}},
                 {"n2", {.incarnation = 0xb2, .address = "h:2", .applied = 90}},
                 {"n3", {.incarnation = 0xb3, .address = "h:3", .applied = 90}}};
  state.answers = {{"n1", Told(MemberRole::kPrimary, 0xb1, 500)},
                   {"n2", Told(MemberRole::kBackup, 0xb2)},
                   {"n3", Told(MemberRole::kBackup, 0xb3)}};
  return state;
}
GroupConfig& ConfigOf(ClusterState& state) { return state.groups["g1"].config; }
std::string StateIn(const ClusterState& state, size_t member) {
  return StatusJson(state)["groups"][0]["members"][member]["state"];
}

TEST(ClusterStatusTest, AllIsWell) {
  const ClusterState state = Whole();
  EXPECT_EQ(HealthOf(state), Health::kOk);
  const std::string text = StatusText(state);
  EXPECT_THAT(text, AllOf(HasSubstr("group g1: epoch 3, primary n1, 3 of 3 in sync"),
                          HasSubstr("applied 200, up 1 h 1 min"), Not(HasSubstr("!"))));
  const Json json = StatusJson(state);
  EXPECT_EQ(json["health"], "ok");
  EXPECT_EQ(json["groups"][0]["health"], "ok");
  EXPECT_EQ(json["groups"][0]["problems"], Json::array());
  const Json& member = json["groups"][0]["members"][1];
  EXPECT_EQ(member["state"], "in_sync");
  EXPECT_EQ(member["applied"], 200) << "its answer is newer than what it announced";
  EXPECT_EQ(member["uptime_s"], 3700);
}

// etcd still has them as it was before they died.
TEST(ClusterStatusTest, TheDeadAreNotInSync) {
  ClusterState state = Whole();
  for (auto& [node, answer] : state.answers) answer = kDead;
  EXPECT_EQ(HealthOf(state), Health::kDown);
  EXPECT_THAT(StatusText(state),
              AllOf(HasSubstr("group g1: down, epoch 3, primary n1, 0 of 3 in sync"),
                    HasSubstr("n1           dead     h:1"), HasSubstr("primary in etcd"),
                    HasSubstr("! its primary n1 does not serve: nobody listens there"),
                    HasSubstr("! n2 is dead: nobody listens there")));
  const Json group = StatusJson(state)["groups"][0];
  EXPECT_EQ(group["health"], "down");
  EXPECT_EQ(group["members"][0]["role"], "primary") << "that is what etcd has";
  EXPECT_EQ(group["members"][0]["state"], "dead");
  EXPECT_EQ(group["members"][0]["why"], "nobody listens there");
}

TEST(ClusterStatusTest, TellsTheDeadFromTheJoining) {
  ClusterState state = Whole();
  ConfigOf(state).in_sync = {{"n1", 0xb1}};
  state.answers["n2"] = Told(MemberRole::kJoining, 0xc2);
  state.answers["n2"].standing.joined_percent = 43;
  state.answers["n3"] = kDead;
  EXPECT_EQ(HealthOf(state), Health::kDegraded);
  EXPECT_THAT(StatusText(state),
              AllOf(HasSubstr("group g1: degraded, epoch 3, primary n1, 1 of 3 in sync"),
                    HasSubstr("n2           joining  h:2"), HasSubstr("43 % copied"),
                    HasSubstr("n3           dead     h:3"), HasSubstr("! n2 joins, and has 43 %")));
  EXPECT_EQ(StatusJson(state)["groups"][0]["members"][1]["joined_percent"], 43);
  state.answers["n3"] = {.kind = Kind::kSilent, .why = "no answer in time"};
  EXPECT_EQ(StateIn(state, 2), "silent");
  state.answers["n3"] = {.kind = Kind::kStarts, .why = "40 %"};
  EXPECT_EQ(StateIn(state, 2), "starting");
  state.answers["n3"] = Told(MemberRole::kEnded, 0xb3);
  EXPECT_EQ(StateIn(state, 2), "starting");
  state.answers["n3"] = Told(MemberRole::kBackup, 0xb3);
  EXPECT_EQ(StateIn(state, 2), "out") << "it keeps its items until it finds a primary";
  state.nodes.erase("n3");
  EXPECT_EQ(StateIn(state, 2), "absent");
}

TEST(ClusterStatusTest, AnotherProcessOfTheNodeIsNotTheOneInSync) {
  ClusterState state = Whole();
  state.answers["n2"] = Told(MemberRole::kJoining, 0xc2);
  EXPECT_EQ(StateIn(state, 1), "joining");
  EXPECT_EQ(HealthOf(state), Health::kDegraded);
  state.answers["n1"] = Told(MemberRole::kJoining, 0xc1);
  EXPECT_EQ(HealthOf(state), Health::kDown);
  EXPECT_THAT(HealthOf(state, "g1").problems[0], HasSubstr("another process of n1"));
}

TEST(ClusterStatusTest, APrimaryServesOnlyUnderItsLease) {
  ClusterState state = Whole();
  state.answers["n1"].standing.lease_left_ms = 0;
  EXPECT_EQ(HealthOf(state), Health::kDown);
  EXPECT_THAT(HealthOf(state, "g1").problems, ElementsAre(HasSubstr("n1 has no lease")));
  state.answers["n1"] = Told(MemberRole::kBackup, 0xb1);
  EXPECT_THAT(HealthOf(state, "g1").problems[0], HasSubstr("it becomes primary"));
}

TEST(ClusterStatusTest, AGroupWithFewerThanItsCopiesTakesNoWrites) {
  ClusterState state = Whole();
  ConfigOf(state).min_copies = 2;
  ConfigOf(state).in_sync = {{"n1", 0xb1}};
  EXPECT_EQ(HealthOf(state), Health::kDown);
  EXPECT_THAT(StatusText(state), HasSubstr("! it takes no writes: 1 in sync, and min_copies is 2"));
}

TEST(ClusterStatusTest, AnEntryThatEtcdHasLostIsShown) {
  ClusterState state = Whole();
  state.groups.clear();
  EXPECT_EQ(HealthOf(state), Health::kDown);
  EXPECT_THAT(StatusText(state),
              AllOf(HasSubstr("group g1: down"), HasSubstr("etcd has lost the group's entry"),
                    HasSubstr("in no group that etcd has:\n  n1 ")));
  const Json json = StatusJson(state);
  EXPECT_EQ(json["groups"][0]["name"], "g1");
  EXPECT_EQ(json["groups"][0]["epoch"], nullptr);
  EXPECT_EQ(json["others"].size(), 3u);
}

TEST(ClusterStatusTest, WhoWasNotAskedIsNotKnown) {
  ClusterState state = Whole();
  for (auto& [node, answer] : state.answers) answer = {.why = "this machine has no RDMA device"};
  EXPECT_EQ(HealthOf(state), Health::kUnknown);
  EXPECT_THAT(StatusText(state),
              AllOf(HasSubstr("group g1: epoch 3, primary n1, 3 of 3 in sync"),
                    HasSubstr("members were not asked"), HasSubstr("no RDMA device")));
  ConfigOf(state).in_sync.pop_back();
  EXPECT_EQ(HealthOf(state), Health::kDegraded) << "etcd knows who is not in sync";
}

// Of an older version, or with a key that kvcli lacks.
TEST(ClusterStatusTest, WhoLivesAndDoesNotSayWhatItIsIsWhatEtcdHas) {
  ClusterState state = Whole();
  for (auto& [node, answer] : state.answers) answer = {.kind = Kind::kLives, .why = "an old one"};
  EXPECT_EQ(HealthOf(state), Health::kOk);
  EXPECT_THAT(StatusText(state), HasSubstr("an old one"));
}

TEST(ClusterStatusTest, AFoundedClusterOfOneIsWell) {
  ClusterState state = Whole();
  ConfigOf(state).in_sync = {{"n1", 0xb1}};
  ConfigOf(state).members = {"n1"};
  EXPECT_EQ(HealthOf(state), Health::kOk);
  ConfigOf(state) = {.history = 0x11, .members = {"n1"}};
  EXPECT_EQ(HealthOf(state), Health::kDown);
  EXPECT_THAT(HealthOf(state, "g1").problems[0], HasSubstr("it has no primary yet"));
}

}  // namespace
}  // namespace gannet::kvcli
