#include "tools/kvload/loss_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gannet::kvload {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBrokenNs = 7 * kNsPerSecond;

std::vector<ServerInfo> Servers(bool connected, uint64_t incarnation = 1) {
  return {{.endpoint = "other:1", .connected = true, .incarnation = 5},
          {.endpoint = "host:2", .connected = connected, .incarnation = incarnation}};
}

class LossWatchTest : public ::testing::Test {
 protected:
  LossWatchTest() {
    watch_.Begin(Servers(true));
    forgiving_.Begin(Servers(true));
    for (LossWatch* watch : {&watch_, &forgiving_}) {
      watch->Log(LogLevel::kWarning, "host:2: the connection broke", kBrokenNs);
      watch->Log(LogLevel::kInfo, "cannot reach host:2: nobody listens", kBrokenNs + 1);
    }
  }
  LossWatch watch_{false};
  LossWatch forgiving_{true};
};

TEST_F(LossWatchTest, LinesThatWarnOfNothingAreNoTrouble) {
  LossWatch watch(false);
  watch.Log(LogLevel::kInfo, "queue pair 3 could not join", 1);
  EXPECT_FALSE(watch.troubled());
}

TEST_F(LossWatchTest, AServerThatStaysAwayIsLostWithTheLastReason) {
  EXPECT_TRUE(watch_.troubled());
  watch_.Look(Servers(false), kBrokenNs + LossWatch::kAwayNs - 1);
  EXPECT_EQ(watch_.lost(), "");
  watch_.Look(Servers(false), kBrokenNs + LossWatch::kAwayNs);
  EXPECT_EQ(watch_.lost(), "cannot reach host:2: nobody listens");
}

TEST_F(LossWatchTest, AServerThatCannotBeReachedIsAwayAndLostAtOnce) {
  std::vector<ServerInfo> servers = Servers(false);
  servers[1].unreachable = true;
  watch_.Look(servers, kBrokenNs + 2);
  EXPECT_TRUE(watch_.away());
  EXPECT_EQ(watch_.lost(), "cannot reach host:2: nobody listens");
  forgiving_.Look(servers, kBrokenNs + 2);
  EXPECT_TRUE(forgiving_.away());
  forgiving_.Look(Servers(true), kBrokenNs + 3);
  EXPECT_FALSE(forgiving_.away());
  EXPECT_EQ(forgiving_.lost(), "");
}

TEST_F(LossWatchTest, AConnectionThatComesBackIsNotLost) {
  watch_.Look(Servers(true), kBrokenNs + 10);
  EXPECT_FALSE(watch_.troubled());
  EXPECT_EQ(watch_.lost(), "");
}

TEST_F(LossWatchTest, AnotherRunOfTheServerIsLostAtOnceAndForGood) {
  watch_.Look(Servers(true, 2), kBrokenNs + 10);
  EXPECT_THAT(std::string(watch_.lost()), HasSubstr("host:2 was restarted and lost its data"));
  watch_.Look(Servers(true, 2), kBrokenNs + 20);
  EXPECT_NE(watch_.lost(), "");
}

// A group's new primary has another incarnation and the same history.
TEST_F(LossWatchTest, AGroupThatFailsOverIsNotLostAndIsCounted) {
  std::vector<ServerInfo> servers = Servers(true);
  servers[1].history = 9;
  watch_.Begin(servers);
  EXPECT_EQ(watch_.fail_overs(), 0u);
  for (uint64_t incarnation = 2; incarnation <= 3; ++incarnation) {
    watch_.Log(LogLevel::kWarning, "host:2: the connection broke", kBrokenNs);
    servers[1].connected = false;
    watch_.Look(servers, kBrokenNs + 5);
    EXPECT_TRUE(watch_.troubled());
    servers[1].connected = true;
    servers[1].incarnation = incarnation;
    watch_.Look(servers, kBrokenNs + 10);
    EXPECT_EQ(watch_.lost(), "");
    EXPECT_FALSE(watch_.troubled());
    EXPECT_EQ(watch_.fail_overs(), incarnation - 1);
  }
}

TEST_F(LossWatchTest, AGroupGetsTheTimeOfAFailOver) {
  std::vector<ServerInfo> servers = Servers(true);
  servers[1].history = 9;
  watch_.Begin(servers);
  watch_.Log(LogLevel::kWarning, "host:2: the connection broke", kBrokenNs);
  servers[1].connected = false;
  watch_.Look(servers, kBrokenNs + LossWatch::kGroupAwayNs - 1);
  EXPECT_EQ(watch_.lost(), "");
  watch_.Look(servers, kBrokenNs + LossWatch::kGroupAwayNs);
  EXPECT_EQ(watch_.lost(), "host:2: the connection broke");
}

TEST_F(LossWatchTest, AnotherHistoryIsALossThoughItIsAGroups) {
  std::vector<ServerInfo> servers = Servers(true);
  servers[1].history = 9;
  watch_.Begin(servers);
  servers[1].incarnation = 2;
  servers[1].history = 10;
  watch_.Look(servers, kBrokenNs + 10);
  EXPECT_THAT(std::string(watch_.lost()), HasSubstr("host:2 was restarted and lost its data"));
  EXPECT_EQ(watch_.fail_overs(), 0u);
}

TEST_F(LossWatchTest, WhoForgivesTakesAnotherRun) {
  forgiving_.Look(Servers(false), kBrokenNs + LossWatch::kAwayNs);
  EXPECT_NE(forgiving_.lost(), "");
  forgiving_.Look(Servers(true, 2), kBrokenNs + LossWatch::kAwayNs + 1);
  EXPECT_EQ(forgiving_.lost(), "");
  EXPECT_FALSE(forgiving_.troubled());
}

}  // namespace
}  // namespace gannet::kvload
