#include "tools/kvcli/top_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace gannet::kvcli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ConnectedClient Session(uint32_t session, uint64_t hits, uint64_t requests = 0) {
  ConnectedClient client;
  client.session_id = session;
  client.connection_id = session + 100;
  client.hits = hits;
  client.reads = 2 * hits;
  client.requests = requests;
  return client;
}

ServerLook LookAt(seconds taken, std::vector<ConnectedClient> connections,
                  uint64_t incarnation = 1) {
  ServerLook look;
  look.endpoint = "host:1";
  look.taken = seconds(1000) + taken;
  look.incarnation = incarnation;
  look.connections = std::move(connections);
  return look;
}

class TopHistoryTest : public ::testing::Test {
 protected:
  TopHistory history_{seconds(5)};
};

TEST_F(TopHistoryTest, TheFirstLookHasNoRates) {
  const ServerChange change = history_.Take(LookAt(seconds(0), {Session(1, 500)}));
  EXPECT_EQ(change.seconds, 0);
  EXPECT_EQ(change.done, Counts{});
  ASSERT_EQ(change.clients.size(), 1u);
  EXPECT_FALSE(change.clients[0].is_new);
  EXPECT_EQ(change.PerSecond(7), 0);
}

TEST_F(TopHistoryTest, ShowsWhatEachSessionDidTheBusiestFirst) {
  history_.Take(LookAt(seconds(0), {Session(1, 500, 10), Session(2, 100, 10)}));
  const ServerChange change =
      history_.Take(LookAt(seconds(2), {Session(1, 520, 14), Session(2, 400, 10)}));
  EXPECT_EQ(change.seconds, 2);
  ASSERT_EQ(change.clients.size(), 2u);
  EXPECT_EQ(change.clients[0].now.session_id, 2u);
  EXPECT_EQ(change.clients[0].done, (Counts{.requests = 0, .hits = 300, .reads = 600}));
  EXPECT_EQ(change.clients[1].done, (Counts{.requests = 4, .hits = 20, .reads = 40}));
  EXPECT_EQ(change.done, (Counts{.requests = 4, .hits = 320, .reads = 640}));
  EXPECT_EQ(change.PerSecond(change.done.gets()), 160);
}

TEST_F(TopHistoryTest, CountsTheServersOwnWork) {
  ServerLook look = LookAt(seconds(0), {});
  look.stats.cpu_us = 1'000'000;
  look.stats.rpcs = 50;
  look.stats.items_evicted = 5;
  history_.Take(look);
  look.taken += seconds(4);
  look.stats.cpu_us += 2'000'000;
  look.stats.rpcs += 8;
  look.stats.items_evicted += 3;
  look.stats.items_expired += 2;
  const ServerChange change = history_.Take(look);
  EXPECT_EQ(change.cores, 0.5);
  EXPECT_EQ(change.requests, 8u);
  EXPECT_EQ(change.evicted, 3u);
  EXPECT_EQ(change.expired, 2u);
}

TEST_F(TopHistoryTest, ANewClientCountsFromNothing) {
  history_.Take(LookAt(seconds(0), {Session(1, 500)}));
  const ServerChange change = history_.Take(LookAt(seconds(1), {Session(1, 500), Session(2, 30)}));
  EXPECT_EQ(change.arrived, 1u);
  EXPECT_EQ(change.went, 0u);
  EXPECT_TRUE(change.clients[0].is_new);
  EXPECT_EQ(change.clients[0].done.hits, 30u);
}

TEST_F(TopHistoryTest, AClientThatWentIsCountedAndTakesNothingAway) {
  history_.Take(LookAt(seconds(0), {Session(1, 500), Session(2, 30)}));
  const ServerChange change = history_.Take(LookAt(seconds(1), {Session(2, 31)}));
  EXPECT_EQ(change.went, 1u);
  EXPECT_EQ(change.done.hits, 1u);
  ASSERT_EQ(change.clients.size(), 1u);
}

TEST_F(TopHistoryTest, ASessionThatComesBackGoesOnCounting) {
  history_.Take(LookAt(seconds(0), {Session(1, 500)}));
  for (int i = 1; i < 20; ++i) history_.Take(LookAt(seconds(i), {}));
  const ServerChange change = history_.Take(LookAt(seconds(20), {Session(1, 510)}));
  EXPECT_EQ(change.done.hits, 10u);
}

TEST_F(TopHistoryTest, ASessionThatIsAnotherOneOfTheSameNumberCountsFromNothing) {
  history_.Take(LookAt(seconds(0), {Session(1, 500)}));
  const ServerChange change = history_.Take(LookAt(seconds(1), {Session(1, 20)}));
  EXPECT_EQ(change.done.hits, 20u);
}

TEST_F(TopHistoryTest, CountsASessionOfManyConnectionsOnce) {
  std::vector<ConnectedClient> connections = {Session(1, 500), Session(1, 0)};
  connections[1].connection_index = 1;
  history_.Take(LookAt(seconds(0), connections));
  connections[0].hits = 505;
  const ServerChange change = history_.Take(LookAt(seconds(1), connections));
  ASSERT_EQ(change.clients.size(), 1u);
  EXPECT_EQ(change.clients[0].connections, 2u);
  EXPECT_EQ(change.done.hits, 5u);
}

TEST_F(TopHistoryTest, AGroupThatFailsOverIsMeasuredAnewAndNotRestarted) {
  ServerLook look = LookAt(seconds(0), {Session(1, 500)});
  look.history = 9;
  EXPECT_EQ(history_.Take(look).fail_overs, 0u);
  // The new primary has run for long, and served nobody.
  look = LookAt(seconds(1), {Session(1, 20)}, 2);
  look.history = 9;
  look.stats.uptime_ms = 3'000'000;
  ServerChange change = history_.Take(look);
  EXPECT_FALSE(change.restarted);
  EXPECT_EQ(change.fail_overs, 1u);
  EXPECT_EQ(change.seconds, 0) << "there is nothing to compare it with";
  look = LookAt(seconds(3), {Session(1, 60)}, 2);
  look.history = 9;
  change = history_.Take(look);
  EXPECT_EQ(change.seconds, 2);
  EXPECT_EQ(change.done.hits, 40u);
  EXPECT_EQ(change.fail_overs, 1u);
}

TEST_F(TopHistoryTest, ARestartedServerCountsFromItsStart) {
  ServerLook look = LookAt(seconds(0), {Session(1, 500)});
  look.stats.rpcs = 10'000;
  history_.Take(look);
  look = LookAt(seconds(1), {Session(1, 600)}, 2);
  look.stats.rpcs = 12'000;
  look.stats.uptime_ms = 400;
  ServerChange change = history_.Take(look);
  EXPECT_TRUE(change.restarted);
  EXPECT_EQ(change.seconds, 0.4);
  EXPECT_EQ(change.requests, 12'000u);
  EXPECT_EQ(change.done.hits, 600u);
  EXPECT_EQ(change.arrived, 1u);
  EXPECT_EQ(change.went, 0u);
  look = LookAt(seconds(7), {Session(1, 650)}, 2);
  look.stats.rpcs = 12'001;
  change = history_.Take(look);
  EXPECT_FALSE(change.restarted);
  EXPECT_EQ(change.seconds, 6);
  EXPECT_EQ(change.requests, 1u);
  EXPECT_EQ(change.done.hits, 50u);
}

// Clients report each half second, so short intervals would show steps.
TEST_F(TopHistoryTest, ComparesWithALookThatIsAWindowOlder) {
  for (int i = 0; i <= 20; ++i) {
    const ServerChange change =
        history_.Take(LookAt(seconds(i), {Session(1, 100 * static_cast<uint64_t>(i))}));
    EXPECT_EQ(change.seconds, std::min(i, 5));
    EXPECT_EQ(change.done.hits, 100u * static_cast<uint64_t>(std::min(i, 5)));
  }
}

TEST_F(TopHistoryTest, ComparesWithTheLookBeforeIfTheIntervalIsLonger) {
  history_.Take(LookAt(seconds(0), {Session(1, 0)}));
  history_.Take(LookAt(seconds(10), {Session(1, 100)}));
  const ServerChange change = history_.Take(LookAt(seconds(20), {Session(1, 300)}));
  EXPECT_EQ(change.seconds, 10);
  EXPECT_EQ(change.done.hits, 200u);
}

TEST_F(TopHistoryTest, AServerThatDidNotAnswerGoesOnWhereItWas) {
  history_.Take(LookAt(seconds(0), {Session(1, 100)}));
  ServerLook lost = LookAt(seconds(1), {});
  lost.problem = "connection refused";
  EXPECT_EQ(history_.Take(lost).now.problem, "connection refused");
  const ServerChange change = history_.Take(LookAt(seconds(2), {Session(1, 150)}));
  EXPECT_EQ(change.seconds, 2);
  EXPECT_EQ(change.done.hits, 50u);
  EXPECT_EQ(change.arrived, 0u);
}

}  // namespace
}  // namespace gannet::kvcli
