#ifndef GANNET_TESTS_SERVER_GROUP_MOVE_MOVE_SERVERS_H_
#define GANNET_TESTS_SERVER_GROUP_MOVE_MOVE_SERVERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clocks.h"
#include "common/base/server_time.h"
#include "common/rdma/loopback.h"
#include "server/main/control/server.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/group/members/shared_register.h"
#include "tests/server/group/move/fake_giver.h"

namespace gannet {

inline constexpr int64_t kPatientNs = 60 * kNsPerSecond;  // nothing depends on how long it takes
inline constexpr uint16_t kMoves[] = {3, 400, 1000};
inline constexpr uint64_t kHourMs = 3'600'000;

// A member's way to the map that both groups share.
class MapDirectory : public SharedConfigStore {
 public:
  MapDirectory(SharedRegister* shared, const FakeMap* map, uint16_t group,
               const std::array<std::string, 2>* addresses)
      : SharedConfigStore(shared), map_(map), group_(group), addresses_(addresses) {}

  const SeenMap* Config() const override { return map_->Seen(); }
  const PartitionMoveWishes* Moves() const override { return map_->Moves(); }
  std::optional<PartitionMap> Map() const override {
    const ClusterConfig& config = map_->Seen()->config;
    PartitionMap map = {.revision = config.revision,
                        .groups = {},
                        .partitions = config.partitions,
                        .changed = config.changed,
                        .closed = {}};
    for (size_t i = 0; i < config.groups.size(); ++i) {
      map.groups.push_back({.name = config.groups[i], .addresses = {(*addresses_)[i]}});
    }
    if (map.revision != 0) {
      map.closed.resize(kPartitions);
      for (const uint16_t partition : config.closed) map.closed[partition] = true;
    }
    return map;
  }
  std::optional<std::string> PrimaryOf(std::string_view group) const override {
    return (*addresses_)[group == "g1" ? 0 : 1];
  }
  const GroupPartitions* Partitions() const override {
    const ClusterConfig& config = map_->Seen()->config;
    partitions_ = {.revision = config.revision,
                   .lost = config.lost.empty() ? 0 : config.lost[group_],
                   .alone = false,
                   .served = {},
                   .changed = config.changed};
    for (uint16_t i = 0; i < kPartitions; ++i) {
      partitions_.served[i] = config.partitions[i] == group_ && !map_->closed(i);
    }
    return &partitions_;
  }

 private:
  const FakeMap* const map_;
  const uint16_t group_;
  const std::array<std::string, 2>* const addresses_;
  mutable GroupPartitions partitions_;
};

// Two groups of one server each. The test's thread steps them, and a register that they share.
class MoveServersTest : public testing::Test {
 protected:
  void SetUp() override { StartAll(); }
  void StartAll() {
    for (size_t i = 0; i < groups_.size(); ++i) Start(i);
    ASSERT_TRUE(StepUntil([this] { return Serves(0) && Serves(1); }));
  }
  void TearDown() override {
    for (Group& group : groups_) group.server->BeginStop();
    EXPECT_TRUE(StepUntil([this] {
      for (const Group& group : groups_) {
        for (const auto& worker : group.server->workers()) {
          if (!worker->closed()) return false;
        }
      }
      return true;
    }));
    for (Group& group : groups_) group.server.reset();
  }
  void Start(size_t i) {
    Group& group = groups_[i];
    group.shared.emplace(GroupTerms{.history = 7 + i, .lease_ms = 1'000, .members = {"n1"}});
    group.store = std::make_unique<MapDirectory>(&*group.shared, &map_, i, &addresses_);
    Server::Options options{.clocks = MachineClocks()};
    options.device = TestDevice();
    options.listen = OwnAddress(TestDevice()).value();
    options.memory_bytes = 32 << 20;
    options.lock_words = 256;
    options.connections_max = 64;
    options.silence_ms = 30'000;  // a client's thread may wait for the test's
    options.group = GroupOptions{.config_store = group.store.get(),
                                 .directory = group.store.get(),
                                 .map_store = &map_,
                                 .name = absl::StrCat("g", i + 1),
                                 .terms = group.shared->terms(),
                                 .node = "n1",
                                 .auth_file = auth_files_[i]};
    options.auth_file = auth_files_[i];
    auto server = Server::Create(options);
    ASSERT_TRUE(server.ok()) << server.status();
    group.server = *std::move(server);
    group.clock.GoOnFrom(group.clock.Time() + clock_ahead_ms_[i]);
    group.server->UseClock(&group.clock);
    addresses_[i] = group.server->address().ToString();
  }
  void Step() {
    map_.group_ = groups_[1].shared->now().revision;
    for (Group& group : groups_) {
      const Now now = group.clock.Read();
      group.server->Poll(now);
      for (const auto& worker : group.server->workers()) worker->Poll(now);
      group.server->member()->Poll(MachineBootTime());
      // A worker does so before it answers. Here no client waits for an answer.
      const ServerContext& context = group.server->context();
      context.writes.Publish(context.changes.safe());
    }
  }
  template <class Done>
  bool StepUntil(Done done) {
    const int64_t give_up_ns = MonotonicNs() + kPatientNs;
    while (!done() && MonotonicNs() < give_up_ns) Step();
    return done();
  }
  bool Serves(size_t i) { return groups_[i].server->serves(); }
  bool Serves(size_t i, std::string_view key) {
    return groups_[i].server->context().standing->partitions().Serves(key);
  }
  ServerTime Time(size_t i) { return groups_[i].clock.Time(); }
  bool Moved() {
    for (const uint16_t partition : kMoves) {
      if (map_.owner(partition) != "g2" || map_.closed(partition)) return false;
    }
    return true;
  }
  // Does what a worker does for a client: some change of a key, where that is served.
  void ChangeSomething(std::mt19937_64& random) {
    const std::string& key = keys_[random() % keys_.size()];
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (!Serves(i, key)) continue;
      Writes& writes = groups_[i].server->writes();
      if (random() % 5 == 0) {
        writes.Delete(key, {}, Time(i));
        wanted_[key] = "";
        return;
      }
      const size_t bytes = random() % 20 == 0 ? 300'000 : random() % 200;
      const std::string value(bytes, static_cast<char>('a' + random() % 26));
      const auto flags = static_cast<uint32_t>(random() % 100);
      const uint64_t expiry_ms = random() % 4 == 0 ? (Time(i) + kHourMs).ms() : 0;
      const auto put = writes.Put(key, value, {flags, Expiry::FromMs(expiry_ms)}, {}, Time(i));
      ASSERT_EQ(put.outcome.status, ReplyStatus::kOk);
      EXPECT_GT(put.outcome.version, versions_[key]) << key;
      versions_[key] = put.outcome.version;
      wanted_[key] = ItemText(put.outcome.version, {flags, Expiry::FromMs(expiry_ms)}, value);
      return;
    }
  }
  // An expiry changes when the item moves.
  static std::string ItemText(uint64_t version, const ItemAttributes& attributes,
                              const std::string& value) {
    return absl::StrCat(version, " ", attributes.flags, attributes.expiry.never() ? "" : " expires",
                        " ", value);
  }
  ReadOutcome Read(size_t i, std::string_view key, std::span<char> value = {}) {
    return groups_[i].server->store().Get(key, std::as_writable_bytes(value), Time(i));
  }
  // The item as `wanted_` has it; empty: there is none.
  std::string ItemAt(size_t i, const std::string& key) {
    std::string value(1 << 20, '\0');
    const ReadOutcome read = Read(i, key, value);
    if (read.status != ReplyStatus::kOk) return "";
    value.resize(read.value_bytes);
    return ItemText(read.version, read.attributes, value);
  }
  void MakeKeys() {
    std::map<uint32_t, int> of_partition;
    for (int i = 0; keys_.size() < 60; ++i) {
      std::string key = absl::StrCat("key", i);
      const uint32_t partition = PartitionOf(key);
      const bool moves = std::ranges::find(kMoves, partition) != std::end(kMoves);
      if ((moves || partition == 7) && of_partition[partition]++ < 15) keys_.push_back(key);
    }
  }

  struct Group {
    std::optional<SharedRegister> shared;
    std::unique_ptr<MapDirectory> store;
    ServerClock clock = ServerClock::Start(MachineClocks());
    std::unique_ptr<Server> server;
  };
  FakeMap map_;
  std::array<std::string, 2> addresses_;
  std::array<std::string, 2> auth_files_;  // empty: nobody is authenticated
  std::array<uint64_t, 2> clock_ahead_ms_{};
  std::array<Group, 2> groups_;
  std::vector<std::string> keys_;
  std::map<std::string, std::string> wanted_;
  std::map<std::string, uint64_t> versions_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MOVE_MOVE_SERVERS_H_
