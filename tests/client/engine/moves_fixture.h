#ifndef GANNET_TESTS_CLIENT_ENGINE_MOVES_FIXTURE_H_
#define GANNET_TESTS_CLIENT_ENGINE_MOVES_FIXTURE_H_

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/protocol/partition_map.h"
#include "tests/client/engine/fake_run.h"

namespace gannet {

inline constexpr uint16_t kLeaseMs = 400;

// Returns a key of a partition of the lower half (0), or of the upper half (1).
inline std::string KeyOfHalf(uint32_t half, uint32_t number = 0) {
  for (uint32_t i = 0;; ++i) {
    std::string key = absl::StrCat("key-", i);
    if (PartitionOf(key) / (kPartitions / 2) == half && number-- == 0) return key;
  }
}

// An engine with three groups of one cluster, whose map the test changes.
class MovesTest : public FakeRun {
 protected:
  // Group g1 has the lower half of the partitions, group g2 the upper one. g3 has none.
  void SetUp() override {
    for (size_t i = 0; i < groups_.size(); ++i) Prepare(groups_[i], 0xa0 + i);
    map_.groups = {{"g1", {Of(0).endpoint()}}, {"g2", {Of(1).endpoint()}}};
    map_.partitions.resize(kPartitions);
    for (uint32_t p = kPartitions / 2; p < kPartitions; ++p) map_.partitions[p] = 1;
    Tell();
  }
  void Prepare(FakeServer* server, uint64_t number) {
    IndexView& view = server->region().view();
    server->grant().history = number;
    server->grant().incarnation = view.incarnation = number;
    server->grant().hash_seed = view.hash_seed = number;
    for (uint64_t b = 0; b < view.index.buckets(); ++b) server->region().Publish(b);
    server->PublishRegion();
    server->lease_left_ms = [this, server] {
      return has_lease_ || server != groups_[0] ? kLeaseMs : uint16_t{0};
    };
    server->answer = [](const FakeServer::Request& request) {
      return FakeServer::ReplyTo(request);
    };
  }
  void PutItem(uint32_t group, const std::string& key, std::string_view value) {
    HandMadeRegion& region = Of(group).region();
    region.SetSlot(region.HomeOf(key), group, region.AddItem(key, value));
    region.Publish(region.HomeOf(key));
    Of(group).PublishRegion();
  }
  void ConnectToCluster(uint32_t depth = 8) {
    Connect(depth, [this](Engine::Settings& settings) {
      settings.endpoints = {absl::StrCat("cluster:", Of(0).endpoint())};
      settings.options.location_cache_bytes = 1 << 20;
    });
    Settle();
    ASSERT_EQ(engine_->servers().size(), 2u);
    ASSERT_TRUE(engine_->servers().session(1).ready());
  }
  void StepOthers() override {
    other_.Step();
    third_.Step();
  }
  FakeServer& Of(uint32_t group) { return *groups_[group]; }

  // These change the map, but nobody is told.
  void Close(const std::string& key) {
    Change(key);
    map_.closed[PartitionOf(key)] = true;
    lost_ = map_.revision;
  }
  void Give(const std::string& key, uint16_t group) {
    Change(key);
    map_.closed[PartitionOf(key)] = false;
    map_.partitions[PartitionOf(key)] = group;
  }
  void Change(const std::string& key) {
    map_.changed.resize(kPartitions);
    map_.closed.resize(kPartitions);
    map_.changed[PartitionOf(key)] = ++map_.revision;
  }
  // All groups know the map now.
  void Tell() {
    for (FakeServer* server : groups_) server->map = EncodePartitionMap(map_);
    Of(0).leases_from = lost_;
  }
  // Group 0 refuses all requests, as it does not serve their partition.
  void Refuse() {
    Of(0).answer = [this](const FakeServer::Request& request) { return Refusal(request); };
  }
  ReplyHeader Refusal(const FakeServer::Request& request) const {
    ReplyHeader reply = FakeServer::ReplyTo(request, ReplyStatus::kElsewhere);
    reply.words[0] = map_.revision;
    if (request.opcode() == Opcode::kPut) reply.words[1] = kPutOffInOrder;
    return reply;
  }
  uint32_t Asked() const {
    uint32_t asked = 0;
    for (const FakeServer* server : groups_) asked += server->asked_for_map();
    return asked;
  }
  // Returns the keys of the requests that a group got.
  std::vector<std::string> Got(uint32_t group) {
    std::vector<std::string> keys;
    for (const FakeServer::Request& it : Of(group).requests()) keys.push_back(it.key);
    return keys;
  }
  // GETs the key, whose READs are done when the lease is over, so that they wait for a lease.
  uint64_t BeginHeldGet(const std::string& key) {
    const uint64_t get = BeginKey(OpType::kGet, key, 5'000);
    PollOnce();
    while (softverbs_step() > 0) {
    }
    return get;
  }

  Lock TakeLock(const std::string& key) {
    const uint64_t op = BeginKey(OpType::kLock, key);
    Settle();
    EXPECT_TRUE(ended_[op].found);
    return {key, ended_[op].word.word(), 0};
  }

  FakeServer other_, third_;
  const std::array<FakeServer*, 3> groups_ = {server_.get(), &other_, &third_};
  PartitionMap map_;
  uint64_t lost_ = 0;  // the revision at which g1 last closed a partition
  bool has_lease_ = true;
};

}  // namespace gannet

#endif  // GANNET_TESTS_CLIENT_ENGINE_MOVES_FIXTURE_H_
