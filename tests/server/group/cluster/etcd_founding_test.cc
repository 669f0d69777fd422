// What else the process writes that founds its group.

#include <gtest/gtest.h>

#include <string>

#include "common/cluster/cluster_keys.h"
#include "tests/server/group/cluster/etcd_config_store_fixture.h"

namespace gannet {
namespace {

using EtcdFoundingTest = EtcdConfigStoreTest;

TEST_F(EtcdFoundingTest, WhoFoundsTheGroupSaysWhatMembersDoAlike) {
  const std::string key = PolicyKey("c", "g1");
  caller_.Put(key, R"({"format":1,"on_full":"evict","shards":"3"})");
  auto store = Open("n1");
  store->SetOwnPolicy({.settings = {{"on_full", "reject"}, {"sync", "none"}}});
  // What an operator sets meanwhile is not written over.
  const std::string set = R"({"format":1,"on_full":"evict","shards":"4"})";
  caller_.Put(key, set);
  EXPECT_EQ(Do(store.get(), store->Seen()->revision, first_).result, ConfigStore::Result::kLost);
  PollUntil(store.get(), [&] { return store->Policy()->settings.at("shards") == "4"; });
  EXPECT_EQ(ValueOf(key), set);
  ASSERT_EQ(Do(store.get(), store->Seen()->revision, first_).result, ConfigStore::Result::kWon);
  EXPECT_EQ(ValueOf(key), R"({"format":1,"on_full":"evict","shards":"4","sync":"none"})");
  // Later on it is an operator's.
  caller_.Put(key, set);
  ASSERT_EQ(Do(store.get(), store->Seen()->revision, first_.With(kN2)).result,
            ConfigStore::Result::kWon);
  EXPECT_EQ(ValueOf(key), set);
}

TEST_F(EtcdFoundingTest, WhatCannotBeReadIsNotWrittenOver) {
  const std::string newer = R"({"format":2,"on_full":{}})";
  caller_.Put(PolicyKey("c", "g1"), newer);
  auto store = Open("n1");
  store->SetOwnPolicy({.settings = {{"sync", "none"}}});
  ASSERT_EQ(Do(store.get(), store->Seen()->revision, first_).result, ConfigStore::Result::kWon);
  EXPECT_EQ(ValueOf(PolicyKey("c", "g1")), newer);
}

}  // namespace
}  // namespace gannet
