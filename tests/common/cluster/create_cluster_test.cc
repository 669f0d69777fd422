#include "common/cluster/create_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/cluster_map.h"
#include "tests/common/etcd/etcd_caller.h"
#include "tests/common/etcd/etcd_processes.h"

namespace gannet {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using enum EtcdTxnResult::Outcome;

uint64_t NoChance() { return 0x1234; }

NewCluster Example() {
  return {
      .name = "c",
      .groups = {{.name = "g2", .members = {"n3", "n4"}}, {.name = "g1", .members = {"n1", "n2"}}},
      .lease_ms = 300,
      .min_copies = 2,
      .policy = {.settings = {{"on_full", "evict"}}}};
}

TEST(CreateClusterTest, CreatesAllKeysOnce) {
  EtcdProcesses etcd(1);
  EtcdCaller caller(etcd.Urls());
  // Another cluster's keys are no hindrance.
  ASSERT_EQ(caller.Put("/gannet/c2/config", "x").outcome, kWon);
  const auto txn = CreateClusterTxn(Example(), NoChance);
  ASSERT_TRUE(txn.ok()) << txn.status();
  const EtcdTxnResult created = caller.Txn(*txn);
  ASSERT_EQ(created.outcome, kWon) << created.status;

  const auto all = caller.RangeOfPrefix(ClusterPrefix("c"));
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_THAT(all->items, SizeIs(5));
  EXPECT_EQ(all->items[0].key, ConfigKey("c"));
  EXPECT_EQ(*DecodeClusterConfig(all->items[0].value), FillPartitions({"g1", "g2"}));
  EXPECT_EQ(all->items[1].key, GroupKey("c", "g1"));
  EXPECT_EQ(
      *DecodeGroupConfig(all->items[1].value),
      (GroupConfig{.history = 0x1235, .members = {"n1", "n2"}, .lease_ms = 300, .min_copies = 2}));
  EXPECT_EQ(all->items[2].key, GroupKey("c", "g2"));
  EXPECT_EQ(all->items[3].key, PolicyKey("c", "g1"));
  EXPECT_EQ(*DecodeGroupPolicy(all->items[3].value), Example().policy);
  EXPECT_EQ(all->items[4].key, PolicyKey("c", "g2"));

  // A second time, or beside anything else of the cluster, it changes nothing.
  EXPECT_EQ(caller.Txn(*txn).outcome, kRefused);
  ASSERT_EQ(caller.Put(NodeKey("d", "n1"), "x").outcome, kWon);
  NewCluster other = Example();
  other.name = "d";
  EXPECT_EQ(caller.Txn(*CreateClusterTxn(other, NoChance)).outcome, kRefused);
  EXPECT_THAT(caller.RangeOfPrefix(ClusterPrefix("d"))->items, SizeIs(1));
}

TEST(CreateClusterTest, AsManyGroupsAsFitIntoATransaction) {
  EtcdProcesses etcd(1);
  EtcdCaller caller(etcd.Urls());
  NewCluster cluster = {.name = "c"};
  for (int i = 0; i < 63; ++i) {
    cluster.groups.push_back({.name = absl::StrCat("g", i), .members = {absl::StrCat("n", i)}});
  }
  const EtcdTxnResult created = caller.Txn(*CreateClusterTxn(cluster, NoChance));
  EXPECT_EQ(created.outcome, kWon) << created.status;
  cluster.groups.push_back({.name = "more", .members = {"more"}});
  EXPECT_FALSE(CreateClusterTxn(cluster, NoChance).ok());
}

TEST(CreateClusterTest, SaysWhatAClusterMayNotBe) {
  const auto why = [](const NewCluster& cluster) {
    return std::string(CreateClusterTxn(cluster, NoChance).status().message());
  };
  NewCluster cluster = Example();
  cluster.name = "a/b";
  EXPECT_THAT(why(cluster), HasSubstr("the name of a cluster has 1 to 32 letters"));
  cluster = Example();
  cluster.groups[0].name = "";
  EXPECT_THAT(why(cluster), HasSubstr("the name of a group"));
  cluster = Example();
  cluster.groups[0].name = "g1";
  EXPECT_THAT(why(cluster), HasSubstr("two groups are called g1"));
  cluster = Example();
  cluster.groups[0].members[1] = "n1";
  EXPECT_THAT(why(cluster), HasSubstr("node n1 is named twice"));
  cluster = Example();
  cluster.groups[0].members[1] = "n,1";
  EXPECT_THAT(why(cluster), HasSubstr("the name of a node"));
  cluster = Example();
  cluster.groups.clear();
  EXPECT_THAT(why(cluster), HasSubstr("1 to 63 groups"));
  cluster = Example();
  cluster.groups[1].members.clear();
  EXPECT_THAT(why(cluster), HasSubstr("group g1 cannot be: group: a group has 1 to 16 members"));
  cluster = Example();
  cluster.lease_ms = 100;
  EXPECT_THAT(why(cluster), HasSubstr("lease_ms"));
  cluster = Example();
  cluster.min_copies = 3;
  EXPECT_THAT(why(cluster), HasSubstr("min_copies"));
}

}  // namespace
}  // namespace gannet
