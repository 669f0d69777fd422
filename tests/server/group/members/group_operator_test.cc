// What operators change while a group runs: keys and terms.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/base/server_list.h"
#include "softverbs/tests/support/key_file.h"
#include "tests/server/group/members/three_servers.h"

namespace gannet {
namespace {

GroupTerms ShortTerms() { return {.history = 77, .lease_ms = 2000, .members = {"n1", "n2", "n3"}}; }

// The primary hears nobody else then, and removes it all the same: without its link it would take
// over.
TEST(GroupOperatorTest, ABackupWhoseKeyIsWithdrawnIsABackupNoMore) {
  constexpr char kKept[] = "2 101112131415161718191a1b1c1d1e1f replica\n";
  constexpr char kWithdrawn[] = "3 202122232425262728292a2b2c2d2e2f replica\n";
  test_support::KeyFile primarys(std::string(kKept) + kWithdrawn);
  test_support::KeyFile backups(std::string(kWithdrawn) + kKept);
  ThreeServers group(ShortTerms());
  group.auth_files = {primarys.path(), backups.path(), ""};
  group.Start(0);
  ASSERT_TRUE(group.AwaitInSync(1));
  group.Start(1);
  ASSERT_TRUE(group.AwaitInSync(2));
  const Member& backup = *group.nodes[1].threads->server().member();
  ASSERT_TRUE(ThreeServers::Await([&] { return backup.Look().role == Member::Role::kBackup; }));
  primarys.Write(kKept);
  ASSERT_TRUE(group.AwaitInSync(1));
  EXPECT_EQ(group.shared.now().configuration.epoch, 1) << "nobody took over";
  const Member& primary = *group.nodes[0].threads->server().member();
  EXPECT_TRUE(ThreeServers::Await([&] { return primary.Look().as_primary.backups.empty(); }));
  // It cannot connect again with that key, and can with another one.
  EXPECT_FALSE(backup.ended());
  backups.Write(kKept);
  EXPECT_TRUE(ThreeServers::Await([&] { return backup.ended(); })) << "it found a primary to join";
}

// Clients begin anew then, and count their requests from 1. Sessions of before would take these for
// requests that were answered long ago.
TEST(GroupOperatorTest, AGroupThatIsForcedKnowsNoSessionsOfBefore) {
  ThreeServers group(ShortTerms());
  group.Start(0);
  ASSERT_TRUE(group.AwaitInSync(1));
  group.Start(1);
  ASSERT_TRUE(group.AwaitInSync(2));
  const std::string members =
      std::string(kGroupPrefix) + group.nodes[0].address + "," + group.nodes[1].address;
  auto connected = Client::Connect({members});
  ASSERT_TRUE(connected.ok()) << connected.status();
  Client* const client = connected->get();
  constexpr int kMany = 100;  // more than there are credits
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(client->Put("a", std::to_string(i)).ok());
  group.shared.Force("n2", 78);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 1; }));
  ASSERT_TRUE(ThreeServers::Await([&] { return client->Get("a").ok(); }));
  for (int i = 0; i < kMany; ++i) {
    const absl::Status put = client->Put("b", std::to_string(i)).status();
    ASSERT_TRUE(put.ok()) << put;
    ASSERT_EQ(client->Get("b")->value().data, std::to_string(i));
  }
}

// They were started with the history of before.
TEST(GroupOperatorTest, WhoWaitedWhenTheGroupWasForcedFollowsItsNextPrimary) {
  ThreeServers group(ShortTerms());
  group.Start(0);
  ASSERT_TRUE(group.AwaitInSync(1));
  group.Stop(0);
  for (size_t i = 0; i < 3; ++i) group.Start(i);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.shared.NodeOf("n2").has_value(); }));
  group.shared.Force("n2", 78);
  ASSERT_TRUE(group.AwaitInSync(3));
  const GroupConfiguration before = group.shared.now().configuration;
  group.Stop(1);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary().has_value(); }));
  const GroupConfiguration after = group.shared.now().configuration;
  EXPECT_EQ(after.in_sync.size(), 2u);
  for (const GroupMember& member : after.in_sync) EXPECT_TRUE(before.IsInSync(member));
}

TEST(GroupOperatorTest, TakesWritesByTheTermsThatOperatorsHaveSetSince) {
  ThreeServers group(ShortTerms());
  group.Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 0; }));
  auto connected = Client::Connect({group.nodes[0].address});
  ASSERT_TRUE(connected.ok()) << connected.status();
  Client* const client = connected->get();
  ASSERT_TRUE(client->Put("a", "1").ok());
  const auto set = [&](uint32_t copies) {
    group.shared.SetTerms([copies](GroupTerms* terms) { terms->min_copies = copies; });
  };
  set(2);
  ASSERT_TRUE(ThreeServers::Await([&] {
    const absl::Status put = client->Put("a", "2").status();
    return absl::IsUnavailable(put) && put.message().find("min_copies") != std::string_view::npos;
  }));
  set(1);
  EXPECT_TRUE(ThreeServers::Await([&] { return client->Put("a", "3").ok(); }));
}

}  // namespace
}  // namespace gannet
