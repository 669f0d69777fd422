#include "tools/kvcli/cluster_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/cluster/cluster_keys.h"
#include "common/cluster/cluster_map.h"
#include "common/protocol/versions.h"
#include "tools/kvcli/cluster_status.h"

namespace gannet::kvcli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const GroupConfig kGroup = {.history = 0x11,
                            .epoch = 3,
                            .primary = {"n1", 0xb1},
                            .in_sync = {{"n1", 0xb1}, {"n2", 0xb2}},
                            .members = {"n1", "n2", "n3"}};

ClusterState State(const GroupConfig& group = kGroup) {
  return {
      .name = "c",
      .groups = {{"g1", {group, 7}}, {"g2", {GroupConfig{.history = 0x12, .members = {"m1"}}, 8}}},
      .nodes = {{"n1", {.incarnation = 0xb1, .address = "h:1", .applied = 100}},
                {"n2", {.incarnation = 0xb2, .address = "h:2", .applied = 90}},
                {"n3", {.incarnation = 0xb3, .address = "h:3", .applied = 50}}},
      .wishes = {{"g1", {GroupWish{.handover = "n2"}, 9}}}};
}

TEST(ClusterStateTest, ReadsAllKeys) {
  std::vector<EtcdKeyValue> items = {
      {ConfigKey("c"), Encode(FillPartitions({"g1"})), 5},
      {GroupKey("c", "g1"), Encode(kGroup), 7},
      {NodeKey("c", "n1"), Encode(NodeInfo{.incarnation = 0xb1, .address = "h:1"}), 8},
      {WishKey("c", "g1"), Encode(GroupWish{.handover = "n2"}), 9},
      {ClusterPrefix("c") + "later", "?", 9}};
  const auto state = ReadCluster("c", items);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->groups.at("g1").config, kGroup);
  EXPECT_EQ(state->groups.at("g1").mod_revision, 7);
  EXPECT_EQ(state->nodes.at("n1").address, "h:1");
  EXPECT_EQ(state->wishes.at("g1").wish.handover, "n2");
  EXPECT_EQ(state->wishes.at("g1").mod_revision, 9);

  // Who shows the rest can say what is wrong. But nobody changes a group that he cannot read.
  items[2].value = "{}";
  items[3].value = "###";
  const auto some = ReadCluster("c", items);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_THAT(some->unreadable, ElementsAre(HasSubstr("/gannet/c/nodes/n1 in etcd"),
                                            HasSubstr("/gannet/c/wishes/g1 in etcd")));
  EXPECT_TRUE(some->nodes.empty());
  EXPECT_EQ(some->wishes.at("g1").mod_revision, 9) << "for who writes over it";
  EXPECT_THAT(StatusText(*some), testing::Not(HasSubstr("wanted")));
  items[1].value = "{}";
  EXPECT_THAT(std::string(ReadCluster("c", items).status().message()),
              HasSubstr("/gannet/c/groups/g1 in etcd"));
  EXPECT_TRUE(absl::IsNotFound(ReadCluster("c", {}).status()));
}

// A process that has died leaves its note.
TEST(ClusterStateTest, NotesOfTheDeadCountOnlyIfNobodyHasFoundedTheGroup) {
  const auto life = [](uint64_t incarnation, uint64_t epoch) {
    NodeLife note = {
        .incarnation = incarnation, .group = "g1", .known = kGroup, .map = FillPartitions({"g1"})};
    note.known.epoch = epoch;
    return Encode(note);
  };
  std::vector<EtcdKeyValue> items = {
      {ConfigKey("c"), Encode(FillPartitions({"g1"})), 5},
      {GroupKey("c", "g1"), Encode(kGroup), 7},
      {NodeKey("c", "n1"), Encode(NodeInfo{.incarnation = 0xb1, .address = "h:1"}), 8},
      {NodeKey("c", "n2"), Encode(NodeInfo{.incarnation = 0xb9, .address = "h:1"}), 8},
      {LifeKey("c", "n1"), life(0xb1, 3), 9},
      {LifeKey("c", "n2"), life(0xb2, 3), 9}};
  EXPECT_EQ(ReadCluster("c", items)->lives.size(), 1u) << "n2 was started again";
  items[4].value = life(0xb1, 2);
  EXPECT_TRUE(ReadCluster("c", items)->lives.empty()) << "it knows less than the register";
  items[1].value = Encode(GroupConfig{.history = 0x99, .members = {"n1", "n2"}});
  EXPECT_EQ(ReadCluster("c", items)->lives.size(), 2u);
}

TEST(ClusterStateTest, AddsAMemberOnce) {
  const auto added = WithMember(State(), "g1", "n4");
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_THAT(added->members, ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_EQ(added->in_sync, kGroup.in_sync);
  EXPECT_TRUE(absl::IsAlreadyExists(WithMember(State(), "g1", "n1").status()));
  EXPECT_TRUE(absl::IsAlreadyExists(WithMember(State(), "g1", "m1").status()));
  EXPECT_TRUE(absl::IsNotFound(WithMember(State(), "g3", "n4").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(WithMember(State(), "g1", "a b").status()));
}

TEST(ClusterStateTest, RemovesAMemberButNotThePrimary) {
  const auto removed = WithoutMember(State(), "g1", "n2");
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_THAT(removed->members, ElementsAre("n1", "n3"));
  EXPECT_THAT(removed->in_sync, ElementsAre(kGroup.primary));
  EXPECT_EQ(removed->epoch, 3u);

  const absl::Status primary = WithoutMember(State(), "g1", "n1").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(primary));
  EXPECT_THAT(std::string(primary.message()), HasSubstr("kvcli cluster handover g1"));
  EXPECT_TRUE(absl::IsNotFound(WithoutMember(State(), "g1", "n9").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(WithoutMember(State(), "g2", "m1").status()));
  GroupConfig strict = kGroup;
  strict.min_copies = 3;
  EXPECT_TRUE(absl::IsFailedPrecondition(WithoutMember(State(strict), "g1", "n2").status()));
}

TEST(ClusterStateTest, ForcesTheNewestProcessOfANode) {
  const auto forced = Forced(State(), "g1", "n3", 0x99);
  ASSERT_TRUE(forced.ok()) << forced.status();
  EXPECT_EQ(forced->history, 0x99u);
  EXPECT_EQ(forced->epoch, 4u);
  EXPECT_EQ(forced->primary, (GroupMember{"n3", 0xb3}));
  EXPECT_THAT(forced->in_sync, ElementsAre(forced->primary));
  EXPECT_EQ(forced->members, kGroup.members);
  ClusterState without = State();
  without.nodes.erase("n3");
  EXPECT_TRUE(absl::IsFailedPrecondition(Forced(without, "g1", "n3", 0x99).status()));
  EXPECT_TRUE(absl::IsNotFound(Forced(State(), "g1", "n9", 0x99).status()));
  EXPECT_THAT(LossText(State(), "g1", "n3"),
              AllOf(HasSubstr("n3 is not in sync. If it runs, its disk has all up to LSN 50"),
                    HasSubstr("n1 has, which had applied LSN 100"),
                    HasSubstr("n2 has, which had applied LSN 90")));
  ClusterState nothing_kept = State();
  nothing_kept.nodes["n3"].applied = 0;
  EXPECT_THAT(LossText(nothing_kept, "g1", "n3"),
              HasSubstr("n3 was not in sync: it may have none"));
  // All were started again.
  ClusterState again = State();
  again.nodes["n1"].incarnation = 0xc1;
  EXPECT_THAT(LossText(again, "g1", "n2"), HasSubstr("n1 has, whose disk has LSN 100"));
  EXPECT_THAT(LossText(State(), "g1", "n2"), HasSubstr("n2 said that it had applied LSN 90"));
}

TEST(ClusterStateTest, HandsOverToWhoIsInSync) {
  EXPECT_TRUE(MayHandOver(State(), "g1", "n2").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(MayHandOver(State(), "g1", "n3")));
  EXPECT_TRUE(absl::IsFailedPrecondition(MayHandOver(State(), "g2", "m1")));
  EXPECT_TRUE(absl::IsNotFound(MayHandOver(State(), "g1", "n9")));
}

TEST(ClusterStateTest, ShowsWhichVersionOfTheStreamAllInSyncSpeak) {
  ClusterState state = State();
  EXPECT_EQ(StatusJson(state)["groups"][0]["stream"], 0) << "nobody has said";
  EXPECT_THAT(StatusText(state), HasSubstr("lease 600 ms, stream version 0 of 3"));
  for (const GroupMember& member : state.groups["g1"].config.in_sync) {
    state.versions[member.node] = {
        .incarnation = member.incarnation, .version = "1", .stream = kStreamVersions.max};
  }
  EXPECT_EQ(StatusJson(state)["groups"][0]["stream"], kStreamVersions.max);
  EXPECT_THAT(StatusText(state), HasSubstr("lease 600 ms\n"));
  state.versions["n2"].incarnation = 0x77;  // of another process
  EXPECT_EQ(StatusJson(state)["groups"][0]["stream"], 0);
}

TEST(ClusterStateTest, ShowsWhichEpochADiskHasOpened) {
  ClusterState state = State();
  const uint64_t history = state.groups["g1"].config.history;
  state.disks["n3"] = {.incarnation = state.nodes["n3"].incarnation,
                       .run = 0xa1,
                       .history = history,
                       .always = true,
                       .opened = 2};
  EXPECT_EQ(StatusJson(state)["groups"][0]["members"][2]["opened"], 2);
  EXPECT_THAT(StatusText(state), HasSubstr("not in sync, kept 50, opened epoch 2\n"));
  state.disks["n3"].history = history + 1;
  EXPECT_EQ(StatusJson(state)["groups"][0]["members"][2]["opened"], nullptr);
}

TEST(ClusterStateTest, ShowsTheStatus) {
  ClusterState state = State();
  const Json json = StatusJson(state);
  EXPECT_EQ(json["cluster"], "c");
  const Json& group = json["groups"][0];
  EXPECT_EQ(group["name"], "g1");
  EXPECT_EQ(group["epoch"], 3);
  EXPECT_EQ(group["primary"], "n1");
  EXPECT_EQ(group["in_sync"], Json({"n1", "n2"}));
  EXPECT_EQ(group["handover"], "n2");
  EXPECT_EQ(group["members"][0]["role"], "primary");
  EXPECT_FALSE(group["members"][0].contains("lag_records")) << "LSNs are bytes";
  EXPECT_EQ(group["members"][1]["name"], "n2");
  EXPECT_EQ(group["members"][1]["role"], "backup");
  EXPECT_EQ(group["members"][1]["lag_bytes"], 10);
  // Its LSN is of another stream, or none.
  EXPECT_EQ(group["members"][2]["role"], "out");
  EXPECT_EQ(group["members"][2]["applied"], nullptr);
  EXPECT_EQ(group["members"][2]["kept"], 50);
  EXPECT_EQ(group["members"][1]["kept"], nullptr);
  EXPECT_EQ(json["groups"][1]["primary"], nullptr);

  const std::string text = StatusText(state);
  EXPECT_THAT(text, AllOf(HasSubstr("group g1: epoch 3, primary n1, 2 of 3 in sync"),
                          HasSubstr("10 bytes behind"), HasSubstr("wanted: hand over to n2"),
                          HasSubstr("group g2: epoch 0, primary none")));
  EXPECT_EQ(group["members"][1]["rails"], Json::array());
  state.rails["n2"] = {.incarnation = state.nodes["n2"].incarnation, .rails = {"a:1", "b:1"}};
  EXPECT_EQ(StatusJson(state)["groups"][0]["members"][1]["rails"], Json({"a:1", "b:1"}));
  EXPECT_THAT(StatusText(state), HasSubstr("10 bytes behind, rails a:1 b:1\n"));
  state.rails["n2"].incarnation ^= 1;
  EXPECT_THAT(StatusText(state), Not(HasSubstr("rails"))) << "of another process";
  // The backup spoke later than the primary.
  state.nodes["n2"].applied = 101;
  EXPECT_EQ(StatusJson(state)["groups"][0]["members"][1]["lag_bytes"], nullptr);
  state.nodes["n2"].applied = 90;
  // A process that has started again says nothing of the one in sync.
  state.nodes["n2"].incarnation = 0xb9;
  EXPECT_EQ(StatusJson(state)["groups"][0]["members"][1]["lag_bytes"], nullptr);
}

}  // namespace
}  // namespace gannet::kvcli
