#include "server/group/cluster/group_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/cluster/cluster_keys.h"
#include "common/cluster/cluster_map.h"
#include "common/cluster/map_changes.h"

namespace gannet {
namespace {

using testing::HasSubstr;

const GroupConfig kConfig = {.history = 0x11,
                             .epoch = 3,
                             .primary = {"n1", 0xb1},
                             .in_sync = {{"n1", 0xb1}, {"n2", 0xb2}},
                             .members = {"n1", "n2", "n3"},
                             .lease_ms = 300,
                             .min_copies = 2,
                             .ring_bytes = 8 << 20};

EtcdKeyValue Item(const std::string& key, const std::string& value, int64_t revision = 7) {
  return {.key = key, .value = value, .mod_revision = revision};
}
std::vector<EtcdKeyValue> Items() {
  return {Item(ConfigKey("c"), Encode(FillPartitions({"g1", "g2"}))),
          Item(GroupKey("c", "g1"), Encode(GroupConfig{.history = 0x12, .members = {"x"}})),
          Item(GroupKey("c", "g2"), Encode(kConfig)),
          Item(NodeKey("c", "n1"), Encode(NodeInfo{.incarnation = 0xb1, .address = "h:1"}), 9),
          Item(WishKey("c", "g1"), Encode(GroupWish{.handover = "x"})),
          Item(WishKey("c", "g2"), Encode(GroupWish{.handover = "n2"}), 8)};
}
EtcdNews Changed(const EtcdKeyValue& item, bool deleted = false) {
  return {.kind = EtcdNews::Kind::kChanged,
          .revision = item.mod_revision,
          .changes = {{.item = item, .deleted = deleted}}};
}

class GroupViewTest : public testing::Test {
 protected:
  void Begin() {
    const absl::Status begun = view_.Begin(Items());
    ASSERT_TRUE(begun.ok()) << begun;
  }
  GroupView view_{"c", "n3"};
};

TEST_F(GroupViewTest, ConvertsBothWays) {
  const GroupState state = StateOf(kConfig, 7);
  EXPECT_EQ(state.now.revision, 7u);
  EXPECT_EQ(ConfigOf(state.terms, state.now.configuration), kConfig);
}

TEST_F(GroupViewTest, BeginsWithTheGroupOfItsNode) {
  Begin();
  EXPECT_EQ(view_.group(), "g2");
  EXPECT_EQ(view_.state().now, StateOf(kConfig, 7).now);
  EXPECT_EQ(view_.state().terms, StateOf(kConfig, 7).terms);
  ASSERT_NE(view_.FindNode("n1"), nullptr);
  EXPECT_EQ(view_.FindNode("n1")->info.address, "h:1");
  EXPECT_EQ(view_.FindNode("n1")->mod_revision, 9);
  EXPECT_EQ(view_.FindNode("n2"), nullptr);
  ASSERT_TRUE(view_.wish());
  EXPECT_EQ(view_.wish()->handover, "n2");
  EXPECT_EQ(view_.wish()->mod_revision, 8);
}

TEST_F(GroupViewTest, KnowsThePolicyOfItsGroup) {
  const GroupPolicy evict = {.settings = {{"on_full", "evict"}, {"shards", "3"}}};
  Begin();
  EXPECT_EQ(view_.policy(), GroupPolicy{}) << "the version before has set none";
  const std::string key = PolicyKey("c", "g2");
  view_.Take(Changed(Item(PolicyKey("c", "g1"), Encode(evict), 16)));
  EXPECT_EQ(view_.policy(), GroupPolicy{}) << "it is another group's";
  view_.Take(Changed(Item(key, Encode(evict), 17)));
  EXPECT_EQ(view_.policy(), evict);
  view_.Take(Changed(Item(key, "garbage", 18)));
  EXPECT_EQ(view_.policy(), evict) << "what cannot be read changes nothing";
  view_.Take(Changed(Item(key, "", 19), /*deleted=*/true));
  EXPECT_EQ(view_.policy(), evict) << "so that it can say so if etcd has lost the group";
}

TEST_F(GroupViewTest, HasTheMapOfAllGroups) {
  Begin();
  const ClusterConfig config = FillPartitions({"g1", "g2"});
  PartitionMap map = view_.Map();
  EXPECT_EQ(map.revision, 0u);
  EXPECT_EQ(map.partitions, config.partitions);
  EXPECT_TRUE(map.changed.empty());
  EXPECT_THAT(map.groups, testing::ElementsAre(PartitionMap::Group{"g1", {}},
                                               PartitionMap::Group{"g2", {"h:1"}}));

  view_.Take(
      Changed(Item(NodeKey("c", "x"), Encode(NodeInfo{.incarnation = 1, .address = "h:2"}))));
  view_.Take(Changed(Item(NodeKey("c", "n1"), "", 16), /*deleted=*/true));
  view_.Take(Changed(Item(ConfigKey("c"), Encode(FillPartitions({"g1"})), 17)));
  map = view_.Map();
  EXPECT_EQ(map.revision, 0u);
  EXPECT_THAT(map.groups, testing::ElementsAre(PartitionMap::Group{"g1", {"h:2"}}));
}

TEST_F(GroupViewTest, KnowsWhatItsGroupServes) {
  Begin();
  const ClusterConfig config = FillPartitions({"g1", "g2"});
  const GroupPartitions& partitions = view_.partitions();
  EXPECT_FALSE(partitions.alone);
  EXPECT_EQ(partitions.revision, 0u);
  for (uint32_t i = 0; i < kPartitions; ++i) {
    ASSERT_EQ(partitions.served[i], config.groups[config.partitions[i]] == view_.group()) << i;
  }
  view_.Take(Changed(Item(ConfigKey("c"), Encode(FillPartitions({view_.group()})), 17)));
  EXPECT_TRUE(partitions.alone);
  EXPECT_TRUE(partitions.served.all());
  view_.Take(Changed(Item(ConfigKey("c"), Encode(FillPartitions({"other"})), 18)));
  EXPECT_TRUE(partitions.served.none()) << "the group is not in the map any more";
}

TEST_F(GroupViewTest, TheMapTellsWhatChanged) {
  Begin();
  const ClusterConfig config = FillPartitions({"g1", "g2"});
  const std::vector<uint16_t> moved = {7};
  const std::string& owner = config.groups[config.partitions[7]];
  const auto closed = ClosePartitions(config, owner, moved);
  ASSERT_TRUE(closed.ok()) << closed.status();
  view_.Take(Changed(Item(ConfigKey("c"), Encode(*closed), 17)));
  PartitionMap map = view_.Map();
  EXPECT_EQ(map.revision, 1u);
  EXPECT_EQ(view_.partitions().revision, 1u);
  EXPECT_EQ(view_.partitions().lost, owner == view_.group() ? 1u : 0u);
  EXPECT_FALSE(view_.partitions().served[7]) << "by nobody";
  EXPECT_TRUE(map.closed[7]);
  EXPECT_FALSE(map.closed[8]);
  EXPECT_EQ(map.changed[7], 1u);

  const auto given = GivePartitions(*closed, owner == "g1" ? "g2" : "g1", moved, 1);
  ASSERT_TRUE(given.ok()) << given.status();
  view_.Take(Changed(Item(ConfigKey("c"), Encode(*given), 18)));
  map = view_.Map();
  EXPECT_EQ(map.revision, 2u);
  EXPECT_EQ(view_.partitions().served[7], owner != view_.group());
  EXPECT_FALSE(map.closed[7]);
  EXPECT_NE(map.partitions[7], config.partitions[7]);
  EXPECT_EQ(map.changed[7], 2u);
}

TEST_F(GroupViewTest, SaysWhyItCannotBegin) {
  EXPECT_TRUE(absl::IsNotFound(view_.Begin({})));
  EXPECT_FALSE(view_.found_cluster());

  GroupView stranger("c", "n4");
  EXPECT_TRUE(absl::IsNotFound(stranger.Begin(Items())));
  EXPECT_TRUE(stranger.found_cluster());

  std::vector<EtcdKeyValue> newer = Items();
  newer[0].value = R"({"format":3,"groups":7})";
  EXPECT_TRUE(absl::IsUnimplemented(GroupView("c", "n3").Begin(newer)));

  std::vector<EtcdKeyValue> odd = Items();
  odd[1].value = "{}";
  const absl::Status begun = GroupView("c", "n3").Begin(odd);
  EXPECT_TRUE(absl::IsInvalidArgument(begun));
  EXPECT_THAT(std::string(begun.message()), HasSubstr("/gannet/c/groups/g1 in etcd"));
}

TEST_F(GroupViewTest, TakesChanges) {
  Begin();
  GroupConfig next = kConfig;
  next.epoch = 4;
  view_.Take(Changed(Item(GroupKey("c", "g2"), Encode(next), 12)));
  EXPECT_EQ(view_.state().now.configuration.epoch, 4u);
  // Older than what an answer told already, or of others.
  view_.Take(Changed(Item(GroupKey("c", "g2"), Encode(kConfig), 11)));
  view_.Take(Changed(Item(GroupKey("c", "g1"), Encode(kConfig), 13)));
  EXPECT_EQ(view_.state().now.revision, 12u);

  view_.Take(Changed(Item(WishKey("c", "g1"), "", 14), /*deleted=*/true));
  EXPECT_TRUE(view_.wish());
  view_.Take(Changed(Item(WishKey("c", "g2"), "", 15), /*deleted=*/true));
  EXPECT_FALSE(view_.wish());
  view_.Take(Changed(Item(NodeKey("c", "n1"), "", 16), /*deleted=*/true));
  EXPECT_EQ(view_.FindNode("n1"), nullptr);
}

TEST_F(GroupViewTest, KeepsTheGroupIfItsKeyIsGoneOrCannotBeRead) {
  Begin();
  view_.Take(Changed(Item(GroupKey("c", "g2"), "{}", 12)));
  view_.Take(Changed(Item(GroupKey("c", "g2"), "", 13), /*deleted=*/true));
  EXPECT_EQ(view_.state().now.revision, 7u);
}

TEST_F(GroupViewTest, TheNewestMapStays) {
  Begin();
  EXPECT_EQ(view_.map(), (SeenMap{FillPartitions({"g1", "g2"}), 7}));
  const auto more = AddGroup(view_.map().config, "g3");
  ASSERT_TRUE(more.ok()) << more.status();
  view_.TakeConfig(*more, 20);
  EXPECT_EQ(view_.map(), (SeenMap{*more, 20}));
  EXPECT_EQ(view_.partitions().revision, 1u);
  // The watch tells later what was before.
  view_.Take(Changed(Item(ConfigKey("c"), Encode(FillPartitions({"g1"})), 19)));
  EXPECT_EQ(view_.map(), (SeenMap{*more, 20}));
  view_.Take(Changed(Item(ConfigKey("c"), "{}", 21)));
  EXPECT_EQ(view_.map(), (SeenMap{*more, 20})) << "what cannot be read";
}

TEST_F(GroupViewTest, KnowsWhichPartitionsAreToMove) {
  Begin();
  EXPECT_TRUE(view_.moves()->empty());
  view_.Take(Changed(Item(MoveKey("c", 3), Encode(MoveInfo{.to = "g2"}), 12)));
  view_.Take(Changed(Item(MoveKey("c", 1023), Encode(MoveInfo{.to = "g1", .stop = true}), 13)));
  const PartitionMoveWishes expected = {{3, {.to = "g2", .stop = false, .mod_revision = 12}},
                                        {1023, {.to = "g1", .stop = true, .mod_revision = 13}}};
  EXPECT_EQ(*view_.moves(), expected);
  view_.Take(Changed(Item(MoveKey("c", 3), "", 13), /*deleted=*/true));
  EXPECT_EQ(view_.moves()->size(), 1u);
  // Of a wish that cannot be read nothing is known: not what an earlier one said, either.
  view_.Take(Changed(Item(MoveKey("c", 1023), R"({"format":2})", 14)));
  EXPECT_TRUE(view_.moves()->empty());
  view_.Take(Changed(Item(MoveKey("c", 4), Encode(MoveInfo{.to = "g2"}), 15)));
  view_.Take(Changed(Item(MoveKey("c", 4), "", 16), /*deleted=*/true));
  EXPECT_TRUE(view_.moves()->empty());
}

// Whoever gives a wish up writes the map, too. So nobody acts by a newer map and older wishes.
TEST_F(GroupViewTest, DoesNotTellWishesThatAreOlderThanTheMap) {
  Begin();
  view_.Take(Changed(Item(MoveKey("c", 3), Encode(MoveInfo{.to = "g2"}), 12)));
  view_.TakeConfig(view_.map().config, 14);
  EXPECT_EQ(view_.moves(), nullptr);
  view_.Take(Changed(Item(NodeKey("c", "x"), "", 13), /*deleted=*/true));
  EXPECT_EQ(view_.moves(), nullptr);
  view_.Take(Changed(Item(MoveKey("c", 3), "", 14), /*deleted=*/true));
  ASSERT_NE(view_.moves(), nullptr);
  EXPECT_TRUE(view_.moves()->empty());
}

TEST_F(GroupViewTest, KnowsWhereTheOtherGroupsPrimariesAre) {
  Begin();
  EXPECT_EQ(view_.PrimaryOf("g2"), "h:1");
  EXPECT_FALSE(view_.PrimaryOf("g1")) << "it has no primary yet";
  EXPECT_FALSE(view_.PrimaryOf("g9"));
  GroupConfig other = {.history = 0x12,
                       .epoch = 1,
                       .primary = {"x", 0xc1},
                       .in_sync = {{"x", 0xc1}},
                       .members = {"x"}};
  view_.Take(Changed(Item(GroupKey("c", "g1"), Encode(other), 12)));
  EXPECT_FALSE(view_.PrimaryOf("g1")) << "it has not announced itself";
  const NodeInfo node = {.incarnation = 0xc1, .address = "h:3"};
  view_.Take(Changed(Item(NodeKey("c", "x"), Encode(node), 13)));
  EXPECT_EQ(view_.PrimaryOf("g1"), "h:3");
  other.epoch = 2;
  other.primary = {"x", 0xc2};
  other.in_sync = {other.primary};
  view_.Take(Changed(Item(GroupKey("c", "g1"), Encode(other), 14)));
  EXPECT_FALSE(view_.PrimaryOf("g1")) << "the address is another process's";
  view_.Take(Changed(Item(GroupKey("c", "g1"), "", 15), /*deleted=*/true));
  EXPECT_FALSE(view_.PrimaryOf("g1"));
}

TEST_F(GroupViewTest, AListTakesThePlaceOfAllNodesAndWishes) {
  Begin();
  std::vector<EtcdKeyValue> items = Items();
  items.resize(3);
  view_.Take(Changed(Item(MoveKey("c", 3), Encode(MoveInfo{.to = "g2"}), 12)));
  view_.Take(Changed(Item(GroupKey("c", "g3"), Encode(kConfig), 12)));
  EXPECT_TRUE(view_.PrimaryOf("g3"));
  items.push_back(Item(NodeKey("c", "n1"), Encode(NodeInfo{.incarnation = 0xb1, .address = "h"})));
  view_.Take({.kind = EtcdNews::Kind::kListed, .revision = 20, .items = items});
  EXPECT_FALSE(view_.wish());
  EXPECT_TRUE(view_.moves()->empty());
  EXPECT_FALSE(view_.PrimaryOf("g3"));
  items.resize(3);
  view_.Take({.kind = EtcdNews::Kind::kListed, .revision = 20, .items = items});
  EXPECT_EQ(view_.FindNode("n1"), nullptr);
}

// --- what is not believed ---

using Standing = ConfigStore::Standing;

// A process of n2 that has the group's items.
class LostGroupTest : public GroupViewTest {
 protected:
  LostGroupTest() {
    EXPECT_TRUE(view_.Begin(Items()).ok());
    view_.SetHasItems();
  }
  void TakeGroup(const GroupConfig& config, int64_t revision) {
    view_.Take(Changed(Item(GroupKey("c", "g2"), Encode(config), revision)));
  }
  static GroupConfig Unfounded() { return {.history = 0x99, .members = kConfig.members}; }
  void List(std::vector<EtcdKeyValue> items, int64_t revision, bool went_back = false) {
    view_.Take({.kind = EtcdNews::Kind::kListed,
                .revision = revision,
                .items = std::move(items),
                .changes = {},
                .status = {},
                .went_back = went_back});
  }
  EtcdKeyValue LifeOf(const std::string& node, uint64_t incarnation, int64_t revision) {
    return Item(LifeKey("c", node),
                Encode(NodeLife{.incarnation = incarnation,
                                .group = "g2",
                                .known = kConfig,
                                .map = view_.map().config}),
                revision);
  }
  void ExpectKnown() { EXPECT_EQ(view_.state().now.configuration.epoch, 3u); }
};

TEST_F(LostGroupTest, AnEpochDoesNotFallAndHasOnePrimaryAndOneHistory) {
  EXPECT_EQ(view_.standing(), Standing::kThere);
  GroupConfig next = kConfig;
  next.in_sync = {kConfig.primary};
  TakeGroup(next, 10);
  EXPECT_EQ(view_.state().now.configuration.in_sync.size(), 1u);
  next.epoch = 2;
  TakeGroup(next, 11);
  ExpectKnown();
  EXPECT_EQ(view_.standing(), Standing::kLost);
  EXPECT_TRUE(view_.lost());
  next = kConfig;
  next.primary = next.in_sync[1];
  TakeGroup(next, 12);
  EXPECT_EQ(view_.state().now.configuration.primary, kConfig.primary);
  next = kConfig;
  next.history = 0x77;
  TakeGroup(next, 13);
  EXPECT_EQ(view_.state().terms.history, kConfig.history);
  EXPECT_EQ(view_.standing(), Standing::kLost);
  next.epoch = 4;  // an operator forced it
  TakeGroup(next, 14);
  EXPECT_EQ(view_.state().now.configuration.epoch, 4u);
  EXPECT_EQ(view_.standing(), Standing::kThere);
}

TEST_F(LostGroupTest, ARegisterThatIsGoneOrNobodyHasFoundedMayBeAdopted) {
  view_.Take(Changed(Item(GroupKey("c", "g2"), "", 10), true));
  EXPECT_EQ(view_.standing(), Standing::kUnfounded);
  EXPECT_EQ(view_.other_revision(), 0);
  TakeGroup(Unfounded(), 11);
  EXPECT_EQ(view_.standing(), Standing::kUnfounded);
  EXPECT_EQ(view_.other_revision(), 11);
  ExpectKnown();
  EXPECT_TRUE(view_.TakeGroup(kConfig, 12)) << "the primary's answer";
  EXPECT_EQ(view_.standing(), Standing::kThere);
  view_.Take(Changed(Item(GroupKey("c", "g2"), "###", 13)));
  EXPECT_EQ(view_.standing(), Standing::kLost) << "nobody knows what it was";
}

TEST_F(LostGroupTest, AProcessWithoutItemsBelievesWhatIsThere) {
  GroupView joining("c", "n3");
  ASSERT_TRUE(joining.Begin(Items()).ok());
  joining.Take(Changed(Item(GroupKey("c", "g2"), Encode(Unfounded()), 11)));
  EXPECT_EQ(joining.state().now.configuration.epoch, 0u);
  EXPECT_FALSE(joining.lost());
}

TEST_F(LostGroupTest, AGroupThatWasRemovedIsNotLost) {
  ClusterConfig map = FillPartitions({"g1", "g2"});
  std::vector<uint16_t> all;
  for (uint16_t p = 0; p < kPartitions; ++p) {
    if (map.partitions[p] == 1) all.push_back(p);
  }
  map = *ClosePartitions(map, "g2", all);
  map = *RemoveGroup(*GivePartitions(map, "g1", all, map.revision), "g2");
  view_.Take({.kind = EtcdNews::Kind::kChanged,
              .revision = 10,
              .changes = {{.item = Item(ConfigKey("c"), Encode(map), 10)},
                          {.item = Item(GroupKey("c", "g2"), "", 10), .deleted = true}}});
  EXPECT_FALSE(view_.lost());
  EXPECT_EQ(view_.standing(), Standing::kThere);
  TakeGroup(Unfounded(), 11);
  EXPECT_EQ(view_.state().now.configuration.epoch, 0u) << "another group of that name";
}

// Somebody has restored an older backup of etcd. It lacks whom the primary has removed since.
TEST_F(LostGroupTest, WhatWasThereWhenEtcdWentBackIsNotBelieved) {
  std::vector<EtcdKeyValue> restored = Items();
  for (EtcdKeyValue& item : restored) item.mod_revision += 100;
  List(restored, 120, true);
  EXPECT_EQ(view_.state().now.revision, 7u);
  EXPECT_EQ(view_.standing(), Standing::kLost);
  TakeGroup(kConfig, 121);  // who writes it now knows it as the process does
  EXPECT_EQ(view_.state().now.revision, 121u);
  EXPECT_EQ(view_.standing(), Standing::kThere);
}

TEST_F(LostGroupTest, AnEmptyEtcdLeavesAllAsItWas) {
  List({}, 120, true);
  EXPECT_TRUE(view_.lost());
  EXPECT_EQ(view_.standing(), Standing::kLost) << "there is no cluster";
  EXPECT_EQ(view_.Map().groups[1].addresses.size(), 1u) << "clients ask for them";
  EXPECT_EQ(view_.FindNode("n1")->mod_revision, 0);
  List({Item(ConfigKey("c"), Encode(FillPartitions({"g1", "g2"})), 121),
        Item(GroupKey("c", "g2"), Encode(Unfounded()), 121)},
       121);
  EXPECT_EQ(view_.standing(), Standing::kUnfounded);
}

// A next revision that no change makes.
ClusterConfig WithOwnersSwapped(ClusterConfig config) {
  config.revision = 1;
  config.changed.assign(kPartitions, 1);
  config.lost.assign(2, 0);
  for (uint16_t& owner : config.partitions) owner = 1 - owner;
  return config;
}

TEST_F(LostGroupTest, AMapThatNoChangeMakesIsNotBelieved) {
  const ClusterConfig before = view_.map().config;
  const ClusterConfig lie = WithOwnersSwapped(before);
  view_.Take(Changed(Item(ConfigKey("c"), Encode(lie), 10)));
  EXPECT_EQ(view_.map().config, before);
  EXPECT_TRUE(view_.lost());
  EXPECT_EQ(view_.standing(), Standing::kThere) << "the group's register is";
  EXPECT_EQ(view_.moves(), nullptr) << "nothing moves, and nothing is deleted";
  EXPECT_FALSE(view_.TakeMap({Item(ConfigKey("c"), Encode(lie), 11)}));
  view_.Take(Changed(Item(ConfigKey("c"), "{", 12)));
  EXPECT_TRUE(view_.lost());
  view_.Take(Changed(Item(ConfigKey("c"), Encode(before), 13)));
  EXPECT_FALSE(view_.lost());
  EXPECT_EQ(view_.map().mod_revision, 13);
}

// It does so from the register that says that it is in sync, so nothing comes in between.
TEST_F(GroupViewTest, AProcessInSyncHasItems) {
  ASSERT_TRUE(view_.Begin(Items()).ok());
  const ClusterConfig map = view_.map().config;
  const ClusterConfig lie = WithOwnersSwapped(map);
  view_.SetHasItemsIfInSync(0xc7, kConfig);
  view_.Take(Changed(Item(ConfigKey("c"), Encode(lie), 20)));
  EXPECT_EQ(view_.map().config, lie) << "it knows nothing to compare with";
  view_.Take(Changed(Item(ConfigKey("c"), Encode(map), 21)));
  GroupConfig with = kConfig;
  with.in_sync.push_back({"n3", 0xc7});
  view_.Take(Changed(Item(GroupKey("c", "g2"), Encode(with), 22)));
  view_.Take(Changed(Item(ConfigKey("c"), Encode(lie), 23)));
  EXPECT_EQ(view_.map().config, map);
}

TEST_F(LostGroupTest, KnowsWhoHasItems) {
  EXPECT_TRUE(view_.WithItems().empty());
  view_.Take(Changed(LifeOf("n1", 0xb1, 10)));
  view_.Take(Changed(Item(LifeKey("c", "n2"), "###", 11)));
  view_.Take(Changed(Item(LifeKey("c", "x"), "###", 11)));
  EXPECT_THAT(view_.WithItems(), testing::ElementsAre("n1", "n2"));
  EXPECT_EQ(view_.FindLife("n1")->info.incarnation, 0xb1u);
  view_.Take(Changed(Item(LifeKey("c", "n1"), "", 12), true));
  EXPECT_THAT(view_.WithItems(), testing::ElementsAre("n2"));
}

// It has heard nothing of the register since etcd went back.
TEST_F(LostGroupTest, AMemberInSyncThatSaysItHasItemsDoubtsTheRegister) {
  view_.Take(Changed(LifeOf("n2", 0xb9, 10)));
  EXPECT_EQ(view_.standing(), Standing::kThere) << "another process of n2";
  view_.Take(Changed(LifeOf("n2", 0xb2, 11)));
  EXPECT_EQ(view_.standing(), Standing::kDoubted);
  TakeGroup(kConfig, 12);
  EXPECT_EQ(view_.standing(), Standing::kThere) << "it was written after that";
}

}  // namespace
}  // namespace gannet
