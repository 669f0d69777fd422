// Members of a group that are told to stop.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/server/group/members/three_servers.h"

namespace gannet {
namespace {

class LeaveTest : public testing::Test {
 protected:
  // So long that nobody gives up before the test ends.
  LeaveTest() { group_.stop_wait_ns = 600 * kNsPerSecond; }
  // Nobody waits for others if there are none.
  ~LeaveTest() override {
    group_.shared.SetMembers({});
    for (size_t i = 0; i < ThreeServers::kServers; ++i) group_.Stop(i);
  }

  void Start(size_t servers) {
    for (size_t i = 0; i < servers; ++i) group_.Start(i);
    ASSERT_TRUE(group_.AwaitInSync(servers));
    auto client = Client::Connect({group_.nodes[*group_.Primary()].address});
    ASSERT_TRUE(client.ok()) << client.status();
    ASSERT_TRUE((*client)->Put("key", "value").ok());
  }
  void RequestStop(size_t i) { group_.nodes[i].threads->RequestStop(); }
  void AwaitStopped(size_t i) {
    EXPECT_TRUE(group_.nodes[i].threads->Wait().ok());
    group_.Stop(i);
  }
  bool Ended(size_t i) { return group_.nodes[i].threads->server().member()->ended(); }

  // All are told to stop at once. None may rely on another one that does.
  void StopAllOf(size_t servers) {
    ASSERT_NO_FATAL_FAILURE(Start(servers));
    for (size_t i = 0; i < servers; ++i) RequestStop(i);
    ASSERT_TRUE(ThreeServers::Await([&] {
      size_t ended = 0;
      for (size_t i = 0; i < servers; ++i) ended += Ended(i);
      return ended == servers - 1;
    }));
    size_t last = 0;
    while (Ended(last)) ++last;
    for (size_t i = 0; i < servers; ++i) {
      if (i != last) AwaitStopped(i);
    }
    ASSERT_EQ(group_.Primary(), last) << "it serves while it waits";
    ASSERT_TRUE(group_.AwaitInSync(1));
    const size_t joiner = (last + 1) % servers;
    group_.Start(joiner);
    AwaitStopped(last);
    ASSERT_TRUE(ThreeServers::Await([&] { return group_.Primary() == joiner; }));
    EXPECT_TRUE(group_.Has(joiner, "key", "value"));
  }

  ThreeServers group_{{.history = 77, .lease_ms = 2000, .members = {"n1", "n2", "n3"}}};
};

// Otherwise who stops next may take it for one that has the items.
TEST_F(LeaveTest, ABackupThatHasStoppedIsNotInSyncAnyMore) {
  ASSERT_NO_FATAL_FAILURE(Start(3));
  const size_t primary = *group_.Primary();
  const size_t backup = (primary + 1) % 3;
  RequestStop(backup);
  AwaitStopped(backup);
  const GroupConfiguration now = group_.shared.now().configuration;
  EXPECT_EQ(now.in_sync.size(), 2u);
  EXPECT_TRUE(std::ranges::none_of(
      now.in_sync, [&](const auto& it) { return it.node == ThreeServers::NameOf(backup); }));
  EXPECT_EQ(now.epoch, 1u);
  EXPECT_EQ(group_.Primary(), primary);
}

// It waits until the primary's lease is over, and does not take over.
TEST_F(LeaveTest, ABackupThatLeavesTooFewCopiesStopsToo) {
  ASSERT_NO_FATAL_FAILURE(Start(2));
  group_.shared.SetTerms([](GroupTerms* terms) { terms->min_copies = 2; });
  const size_t primary = *group_.Primary();
  RequestStop(1 - primary);
  AwaitStopped(1 - primary);
  const GroupConfiguration now = group_.shared.now().configuration;
  EXPECT_EQ(now.epoch, 1u);
  ASSERT_EQ(now.in_sync.size(), 1u);
  EXPECT_EQ(now.in_sync.front().node, ThreeServers::NameOf(primary));
  auto client = Client::Connect({group_.nodes[primary].address});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->Get("key").ok());
  EXPECT_FALSE((*client)->Put("key", "one copy").ok());
}

TEST_F(LeaveTest, OfTwoThatStopAtOnceTheLastOneWaitsForAJoiner) { StopAllOf(2); }
TEST_F(LeaveTest, OfThreeThatStopAtOnceTheLastOneWaitsForAJoiner) { StopAllOf(3); }

// What has left keeps its copy until it has seen a primary: that may have died meanwhile.
TEST_F(LeaveTest, ABackupThatHasLeftStopsOnceAPrimaryLives) {
  ASSERT_NO_FATAL_FAILURE(Start(2));
  const size_t backup = 1 - *group_.Primary();
  // Executed late, after the primary's death: its last copy is this backup's.
  group_.shared.TakeOver({.node = "n3", .incarnation = 1});
  RequestStop(backup);
  const Member& member = *group_.nodes[backup].threads->server().member();
  ASSERT_TRUE(ThreeServers::Await([&] { return member.Look().role != Member::Role::kBackup; }));
  EXPECT_FALSE(member.ended());
  group_.shared.Force(ThreeServers::NameOf(backup), 99);
  ASSERT_TRUE(ThreeServers::Await([&] { return group_.Primary() == backup; }));
  group_.Start(2);
  AwaitStopped(backup);
  ASSERT_TRUE(ThreeServers::Await([&] { return group_.Primary() == 2; }));
  EXPECT_TRUE(group_.Has(2, "key", "value"));
}

TEST_F(LeaveTest, NobodyWaitsWhereThereAreNoOthers) {
  group_.shared.SetMembers({"n1"});
  group_.Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group_.Primary() == 0; }));
  RequestStop(0);
  AwaitStopped(0);
}

TEST_F(LeaveTest, OneThatJoinsStopsAtOnce) {
  group_.shared.TakeOver({.node = "n3", .incarnation = 1});  // who is not there
  group_.Start(0);
  RequestStop(0);
  AwaitStopped(0);
}

// As when its disk fails later: the group's items are in memory. Who starts it is told of wrong
// flags.
TEST(LostPlaceTest, AMemberThatLostItsPlaceJoinsWithoutADiskThatFails) {
  ThreeServers group({.history = 77, .lease_ms = 2000, .members = {"n1", "n2"}});
  group.Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 0; }));
  group.data[1] = "/nonexistent/gannet";
  EXPECT_TRUE(absl::IsNotFound(group.TryStart(1)));
  group.lost_its_place = true;
  group.sync = Journal::Sync::kAlways;
  EXPECT_TRUE(absl::IsNotFound(group.TryStart(1))) << "nobody may count on its disk then";
  group.sync = Journal::Sync::kInterval;
  group.Start(1);
  EXPECT_TRUE(group.AwaitInSync(2));
}

}  // namespace
}  // namespace gannet
