#ifndef GANNET_TESTS_SERVER_GROUP_CLUSTER_ETCD_CONFIG_STORE_FIXTURE_H_
#define GANNET_TESTS_SERVER_GROUP_CLUSTER_ETCD_CONFIG_STORE_FIXTURE_H_

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/cluster/create_cluster.h"
#include "server/group/cluster/etcd_config_store.h"
#include "tests/common/etcd/etcd_caller.h"
#include "tests/common/etcd/etcd_processes.h"

namespace gannet {

// A group of two nodes, in a real etcd.
inline const GroupMember kN1 = {"n1", 0xb1};
inline const GroupMember kN2 = {"n2", 0xb2};

class EtcdConfigStoreTest : public testing::Test {
 protected:
  EtcdConfigStoreTest() {
    const auto txn = CreateClusterTxn(
        {.name = "c", .groups = {{.name = "g1", .members = {"n1", "n2"}}}}, [] { return 0x11; });
    EXPECT_EQ(caller_.Txn(*txn).outcome, EtcdTxnResult::Outcome::kWon);
  }

  EtcdConfigStore::Options OptionsOf(const std::string& node) {
    return {.etcd = {.endpoints = etcd_.Urls(), .call_ms = call_ms_}, .cluster = "c", .node = node};
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

  int64_t call_ms_ = 20'000;  // only a hang takes so long. Tests that stop etcd wait for less
  const GroupConfiguration first_ = {.epoch = 1, .primary = kN1, .in_sync = {kN1}};
  EtcdProcesses etcd_{1};
  EtcdCaller caller_{etcd_.Urls()};
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_CLUSTER_ETCD_CONFIG_STORE_FIXTURE_H_
