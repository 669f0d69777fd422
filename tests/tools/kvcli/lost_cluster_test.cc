#include "tools/kvcli/lost_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "common/cluster/cluster_keys.h"
#include "common/cluster/cluster_map.h"
#include "common/cluster/map_changes.h"

namespace gannet::kvcli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// n1 was primary of g1, n2 its backup. g2 had m1 alone, and got partition 3.
class LostClusterTest : public testing::Test {
 protected:
  LostClusterTest() {
    map_ = FillPartitions({"g1", "g2"});
    map_.partitions[3] = 0;
    map_ = *GivePartitions(*ClosePartitions(map_, "g1", std::vector<uint16_t>{3}), "g2",
                           std::vector<uint16_t>{3}, 1);
    lives_["n1"] = Life("n1", 0xb1, kG1);
    lives_["n1"].info.leads = true;
    lives_["n2"] = Life("n2", 0xb2, kG1);
    lives_["m1"] = Life("m1", 0xc1, kG2);
    lives_["m1"].info.leads = true;
    living_ = {"n1", "n2", "m1"};
  }
  LifeSeen Life(const std::string&, uint64_t incarnation, const GroupConfig& known) {
    return {.info = {.incarnation = incarnation,
                     .group = known.members.front() == "m1" ? "g2" : "g1",
                     .known = known,
                     .map = map_,
                     .applied = 100},
            .mod_revision = 9};
  }
  absl::StatusOr<InitPlan> Plan(const std::vector<EtcdKeyValue>& items = {}) {
    const auto create = CreateClusterTxn(cluster_, [] { return 0x98; });
    EXPECT_TRUE(create.ok()) << create.status();
    return PlanInit(cluster_, *create, items, lives_, living_);
  }
  static std::string ValueOf(const EtcdTxn& txn, const std::string& key) {
    for (const EtcdTxn::Put& put : txn.puts) {
      if (put.key == key) return put.value;
    }
    return "";
  }

  const GroupConfig kG1 = {.history = 0x11,
                           .epoch = 3,
                           .primary = {"n1", 0xb1},
                           .in_sync = {{"n1", 0xb1}, {"n2", 0xb2}},
                           .members = {"n1", "n2", "n3"},
                           .lease_ms = 300};
  const GroupConfig kG2 = {.history = 0x12,
                           .epoch = 1,
                           .primary = {"m1", 0xc1},
                           .in_sync = {{"m1", 0xc1}},
                           .members = {"m1"}};
  NewCluster cluster_ = {
      .name = "c",
      .groups = {{.name = "g1", .members = {"n1", "n2"}}, {.name = "g2", .members = {"m1"}}}};
  ClusterConfig map_;
  Lives lives_;
  std::set<std::string> living_;
};

TEST_F(LostClusterTest, AClusterThatNobodyKnowsIsMade) {
  lives_.clear();
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->adopting, IsEmpty());
  EXPECT_EQ(plan->advice, "");
  EXPECT_EQ(plan->txn.puts.size(), 5u) << "the map, two groups and their policies";
  EXPECT_EQ(plan->txn.compares.size(), 3u) << "none of them is there";
  EXPECT_EQ(DecodeGroupConfig(ValueOf(plan->txn, GroupKey("c", "g1")))->members.size(), 2u);
}

TEST_F(LostClusterTest, WhatLivesIsTakenOverAsItWas) {
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->adopting, ElementsAre("g1", "g2"));
  EXPECT_EQ(plan->advice, "");
  EXPECT_EQ(*DecodeClusterConfig(ValueOf(plan->txn, ConfigKey("c"))), map_);
  const auto group = DecodeGroupConfig(ValueOf(plan->txn, GroupKey("c", "g1")));
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->epoch, 0u) << "its primary writes it";
  EXPECT_EQ(group->history, 0x11u);
  EXPECT_EQ(group->lease_ms, 300u);
  EXPECT_THAT(group->members, ElementsAre("n1", "n2", "n3"));
}

TEST_F(LostClusterTest, WhatMembersDoAlikeIsTakenOverToo) {
  const GroupPolicy known = {.settings = {{"on_full", "evict"}, {"shards", "3"}}};
  lives_["n1"].info.policy = known;
  lives_["n2"].info.policy.settings = {{"on_full", "reject"}};  // n1 has the newer items
  cluster_.policy.settings = {{"on_full", "reject"}, {"sync", "none"}};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(*DecodeGroupPolicy(ValueOf(plan->txn, PolicyKey("c", "g1"))), known);
  EXPECT_EQ(*DecodeGroupPolicy(ValueOf(plan->txn, PolicyKey("c", "g2"))), GroupPolicy{})
      << "m1 knows none, so each goes by its own flags, as before";
  const std::vector<EtcdKeyValue> there = {{PolicyKey("c", "g1"), Encode(cluster_.policy), 5}};
  EXPECT_EQ(ValueOf(Plan(there)->txn, PolicyKey("c", "g1")), "") << "somebody has set it";
}

TEST_F(LostClusterTest, TheNewestMapCounts) {
  lives_["n1"].info.map = FillPartitions({"g1", "g2"});
  EXPECT_EQ(*DecodeClusterConfig(ValueOf(Plan()->txn, ConfigKey("c"))), map_);
  cluster_.groups.pop_back();
  const auto plan = Plan();
  EXPECT_TRUE(absl::IsFailedPrecondition(plan.status()));
  EXPECT_THAT(plan.status().message(), HasSubstr("--group=g1:n1,n2,n3 --group=g2:m1"));
}

// A backup may have taken over from it, so an operator has to choose.
TEST_F(LostClusterTest, WhoIsNotSureToLeadAdoptsNothing) {
  lives_["n1"].info.leads = false;
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->adopting, ElementsAre("g2"));
  EXPECT_THAT(plan->advice,
              AllOf(HasSubstr("nobody leads group g1"), HasSubstr("n1 (primary in epoch 3"),
                    HasSubstr("kvcli cluster force g1 --from=n1 --lose-data")));
  living_.erase("n1");
  EXPECT_THAT(Plan()->advice, HasSubstr("force g1 --from=n2"));
  lives_["n1"].info.leads = true;
  EXPECT_THAT(Plan()->adopting, ElementsAre("g2")) << "it is dead";
  // n2 took over, and the other does not know.
  living_.insert("n1");
  lives_["n2"].info.known.epoch = 4;
  EXPECT_THAT(Plan()->advice, HasSubstr("force g1 --from=n2"));
}

TEST_F(LostClusterTest, ItemsOfTheDeadKeepAGroupFromBeingFounded) {
  living_ = {"m1"};
  const auto plan = Plan();
  EXPECT_TRUE(absl::IsFailedPrecondition(plan.status()));
  EXPECT_THAT(plan.status().message(), HasSubstr("--abandon=n1 --abandon=n2"));
  lives_.erase("n1");
  lives_.erase("n2");
  EXPECT_TRUE(Plan().ok());
}

TEST_F(LostClusterTest, AClusterThatIsThereStaysButForAMapThatNoChangeMade) {
  const std::vector<EtcdKeyValue> there = {{ConfigKey("c"), Encode(map_), 5},
                                           {GroupKey("c", "g1"), Encode(kG1), 7},
                                           {GroupKey("c", "g2"), Encode(kG2), 7}};
  EXPECT_THAT(Plan(there)->txn.puts, IsEmpty());
  ClusterConfig lie = map_;
  lie.revision = 7;
  for (uint16_t& owner : lie.partitions) owner = 1 - owner;
  std::vector<EtcdKeyValue> items = there;
  items[0].value = Encode(lie);
  const auto plan = Plan(items);
  ASSERT_EQ(plan->txn.puts.size(), 1u);
  const auto again = DecodeClusterConfig(plan->txn.puts[0].value);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->partitions, map_.partitions);
  EXPECT_EQ(again->revision, 8u) << "clients may know the lie";
  EXPECT_TRUE(CheckFollows(map_, *again).ok()) << "members believe it";
  lives_.clear();
  EXPECT_THAT(Plan(items)->txn.puts, IsEmpty()) << "nobody knows another one";
}

TEST_F(LostClusterTest, ANoteThatAsksIsNobodys) {
  const NodeLife asking = Asking(lives_["n1"].info);
  EXPECT_TRUE(Check(asking).ok());
  EXPECT_TRUE(IsAsking(asking));
  EXPECT_FALSE(asking.leads);
  EXPECT_FALSE(IsAsking(lives_["n1"].info));
}

TEST_F(LostClusterTest, SaysWhoLivesAndWhatToDo) {
  EXPECT_EQ(LivesText("c", {}), "");
  EXPECT_THAT(LivesText("c", lives_),
              AllOf(HasSubstr("n1 (primary in epoch 3, applied 100) of group g1"),
                    HasSubstr("kvcli cluster init --group=g1:n1,n2,n3 --group=g2:m1")));
}

// --- whom to force ---

class BetterCopyTest : public testing::Test {
 protected:
  BetterCopyTest() {
    state_ = {.name = "c",
              .groups = {{"g1",
                          {{.history = 0x11,
                            .epoch = 3,
                            .primary = {"n1", 0xb1},
                            .in_sync = {{"n1", 0xb1}},
                            .members = {"n1", "n2", "n3"}},
                           7}}}};
    for (const char* const node : {"n1", "n2", "n3"}) {
      state_.nodes[node] = {.incarnation = 2, .address = "h:1"};
      state_.disks[node] = {.incarnation = 2, .run = 1, .history = 0x11, .applied = 50};
    }
  }
  std::string Better(const std::string& node) const { return WhatIsBetter(state_, "g1", node); }
  ClusterState state_;
};

TEST_F(BetterCopyTest, TheDiskThatHasOpenedTheHighestEpochIsBestAndThenTheOneThatHasMost) {
  EXPECT_EQ(Better("n1"), "");
  state_.disks["n1"].applied = 90;
  EXPECT_THAT(Better("n2"), HasSubstr("the disk of n1 has all up to LSN 90, and n2 up to 50"));
  EXPECT_EQ(Better("n1"), "");
  state_.disks["n3"].opened = 2;
  EXPECT_THAT(Better("n1"), HasSubstr("the disk of n3 has opened epoch 2"));
  EXPECT_EQ(Better("n3"), "");
  state_.disks["n3"].history = 0x12;
  EXPECT_EQ(Better("n1"), "") << "of other items";
  state_.nodes["n1"].incarnation = 3;  // has not said what its disk has
  EXPECT_EQ(Better("n2"), "");
}

TEST_F(BetterCopyTest, WhoIsInSyncIsBetterThanWhoHasNothing) {
  state_.disks.clear();
  EXPECT_EQ(Better("n2"), "");
  state_.nodes["n1"] = {.incarnation = 0xb1, .address = "h:1", .applied = 9};
  EXPECT_THAT(Better("n2"), HasSubstr("n2 has none of the group's items"));
  EXPECT_EQ(Better("n1"), "");
  state_.nodes["n2"].applied = 5;
  EXPECT_EQ(Better("n2"), "") << "n1 may be dead";
}

// etcd's data was lost, and then the power.
TEST_F(BetterCopyTest, DisksOfOneHistoryAreComparedAlsoIfNobodyHasFoundedTheGroup) {
  state_.groups["g1"].config = {.history = 0x99, .members = {"n1", "n2", "n3"}};
  state_.disks["n2"].applied = 60;
  state_.disks["n3"].applied = 90;
  state_.disks["n3"].history = 0x10;
  EXPECT_THAT(Better("n1"), HasSubstr("the disk of n2 has all up to LSN 60, and n1 up to 50"));
  EXPECT_EQ(Better("n2"), "") << "that of n3 has other items";
}

TEST_F(BetterCopyTest, WhoLivesIsBetterThanADisk) {
  NodeLife life = {.incarnation = 2,
                   .group = "g1",
                   .known = state_.groups["g1"].config,
                   .map = FillPartitions({"g1"})};
  state_.lives["n2"] = {life, 9};
  EXPECT_THAT(Better("n1"), HasSubstr("n2 has said that it lives"));
  EXPECT_EQ(Better("n2"), "");
  life.incarnation = 0xb1;
  state_.nodes["n1"].incarnation = 0xb1;
  state_.lives["n1"] = {life, 9};
  EXPECT_THAT(Better("n2"), HasSubstr("better is n1 (primary in epoch 3"));
  state_.lives["n2"].info.known.epoch = 4;
  state_.lives["n2"].info.known.in_sync = {{"n2", 2}};
  EXPECT_THAT(Better("n1"), HasSubstr("better is n2 (backup in epoch 4"));
}

// Nobody has to ask one that was taken out, so others have more.
TEST_F(BetterCopyTest, WhoKnowsThatItIsOutIsWorse) {
  NodeLife life = {.incarnation = 2,
                   .group = "g1",
                   .known = state_.groups["g1"].config,
                   .map = FillPartitions({"g1"}),
                   .applied = 50};
  life.known.in_sync.push_back({"n2", 2});
  state_.lives["n2"] = {life, 9};
  life.known = {.history = 0x11,
                .epoch = 4,
                .primary = {"n1", 0xb2},
                .in_sync = {{"n1", 0xb2}, {"n2", 2}},
                .members = {"n1", "n2", "n3"}};
  life.applied = 60;
  state_.lives["n3"] = {life, 9};
  EXPECT_EQ(Better("n2"), "");
  EXPECT_THAT(Better("n3"), HasSubstr("better is n2 (backup in epoch 3, applied 50)"));
}

// A backup that was taken out before etcd lost its data may not know it.
TEST_F(BetterCopyTest, OfTwoBackupsTheOneThatHasMoreIsBetter) {
  NodeLife life = {.incarnation = 2,
                   .group = "g1",
                   .known = state_.groups["g1"].config,
                   .map = FillPartitions({"g1"}),
                   .applied = 60};
  state_.lives["n2"] = {life, 9};
  life.applied = 50;
  state_.lives["n3"] = {life, 9};
  EXPECT_EQ(Better("n2"), "");
  EXPECT_THAT(Better("n3"), HasSubstr("better is n2 (backup in epoch 3, applied 60)"));
}

TEST_F(BetterCopyTest, AProcessThatHasComeSinceHasNothing) {
  const NodeLife life = {.incarnation = 0xb9,
                         .group = "g1",
                         .known = state_.groups["g1"].config,
                         .map = FillPartitions({"g1"})};
  state_.lives["n2"] = {life, 9};
  EXPECT_THAT(Better("n2"), HasSubstr("the process of n2 that has said that it lives has ended"));
}

TEST_F(BetterCopyTest, WhoLivesIsForcedBehindAllThatMembersKnow) {
  state_.groups["g1"].config = {.history = 0x99, .members = {"n1", "n2", "n3"}};
  const GroupConfig known = {.history = 0x11,
                             .epoch = 5,
                             .primary = {"n1", 2},
                             .in_sync = {{"n1", 2}, {"n2", 2}},
                             .members = {"n1", "n2", "n3"}};
  for (const char* const node : {"n1", "n2"}) {
    state_.lives[node] = {
        {.incarnation = 2, .group = "g1", .known = known, .map = FillPartitions({"g1"})}, 9};
  }
  const auto primary = Forced(state_, "g1", "n1", 0x77);
  ASSERT_TRUE(primary.ok()) << primary.status();
  EXPECT_EQ(primary->history, 0x11u) << "it goes on";
  EXPECT_EQ(primary->epoch, 5u);
  EXPECT_THAT(primary->in_sync, ElementsAre(known.primary));
  const auto backup = Forced(state_, "g1", "n2", 0x77);
  EXPECT_EQ(backup->history, 0x77u);
  EXPECT_EQ(backup->epoch, 6u);
}

}  // namespace
}  // namespace gannet::kvcli
