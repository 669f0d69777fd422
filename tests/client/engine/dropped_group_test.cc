// A client whose cluster loses a group.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/engine/engine.h"
#include "client/engine/wake_fd.h"
#include "common/base/client_clock.h"
#include "tests/client/engine/moves_fixture.h"

namespace gannet {
namespace {

// Counts how often the client looks at the time, as who waits does.
class CountedClock : public ClientClock {
 public:
  explicit CountedClock(const TestClock* clock) : clock_(clock) {}
  int64_t MonotonicNs() const override {
    ++looks;
    return clock_->now_ns;
  }
  mutable uint64_t looks = 0;

 private:
  const TestClock* const clock_;
};

class DroppedGroupTest : public MovesTest {};

// The server is to hear the last counts, and its queue pairs are to be flushed.
TEST_F(DroppedGroupTest, WhoDropsAGroupDoesNotWaitForIt) {
  CountedClock clock(&clock_);
  for (FakeServer* server : groups_) server->grant().features |= kGrantTakesReports;
  PutItem(1, KeyOfHalf(1), "value");
  Connect(8, [&](Engine::Settings& settings) {
    settings.endpoints = {absl::StrCat("cluster:", Of(0).endpoint())};
    settings.clock = clock;
  });
  Settle();
  const uint64_t get = BeginKey(OpType::kGet, KeyOfHalf(1));
  Settle();
  ASSERT_EQ(ended_[get].outcome, Outcome::kOk);
  for (uint16_t& group : map_.partitions) group = 0;
  map_.groups.pop_back();
  Change(KeyOfHalf(1));
  map_.changed.assign(kPartitions, map_.revision);
  Tell();
  const uint32_t heartbeats = Of(1).heartbeats();
  uint64_t looks_most = 0;
  for (int i = 0; i < 50 * 20; ++i) {
    if (i % 20 == 0) clock_.now_ns += 100 * kNsPerMs;
    softverbs_step();
    server_->Step();
    StepOthers();
    const uint64_t before = clock.looks;
    PollOnce();
    looks_most = std::max(looks_most, clock.looks - before);
  }
  EXPECT_EQ(engine_->servers().size(), 1u);
  EXPECT_LT(looks_most, 100u) << "it waits within a Poll";
  EXPECT_GT(Of(1).heartbeats(), heartbeats) << "the server has the last counts";
  engine_.reset();  // before its clock
}

// The others have other numbers then, and one that comes at the same time may not be connected yet.
TEST_F(DroppedGroupTest, WhatWokeTheClientBeforeIsNotTakenForAnotherServers) {
  const std::unique_ptr<WakeFd> wake = WakeFd::Create().value();
  const auto fall_asleep = [&] {
    for (int tries = 0; tries < 100 && wake->Arm(*engine_, clock_.now_ns); ++tries) PollOnce();
  };
  ConnectToCluster();
  fall_asleep();
  const uint64_t put = BeginPut(KeyOfHalf(1), "v");
  fall_asleep();
  map_.groups[0] = {"g3", {"192.0.2.2:7471"}};  // nobody is there
  std::swap(map_.groups[0], map_.groups[1]);
  map_.partitions.assign(kPartitions, 0);
  map_.changed.assign(kPartitions, ++map_.revision);
  map_.closed.assign(kPartitions, false);
  Tell();
  engine_->WantMap(map_.revision);
  for (int i = 0; i < 1000 && engine_->servers().Info()[0].name != "g2"; ++i) {
    clock_.now_ns += kNsPerMs;
    softverbs_step();
    server_->Step();
    other_.Step();
    PollOnce();
  }
  ASSERT_EQ(engine_->servers().Info()[0].name, "g2");
  ASSERT_EQ(engine_->servers().size(), 2u);
  EXPECT_TRUE(HasEnded(put));
  EXPECT_TRUE(wake->Arm(*engine_, clock_.now_ns));
  fall_asleep();
  const uint64_t again = BeginPut(KeyOfHalf(1), "v");
  Settle();
  EXPECT_EQ(ended_[again].outcome, Outcome::kOk);
}

}  // namespace
}  // namespace gannet
