// A group of three real processes whose flags are not those of the group.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/common/etcd/etcd_caller.h"
#include "tests/integration/group_of_processes.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

TEST(GroupTermsTest, MembersDoWhenTheyAreFullWhatTheirGroupDoes) {
  GroupOfProcesses group(600, {}, {"--on_full=evict", "--silence_ms=4000"},
                         R"({"format":1,"on_full":"reject","silence_ms":"3000","shards":"3"})");
  const int primary = group.AwaitAllInSync().primary;
  EXPECT_THAT(group.Log(primary), HasSubstr("--on_full=evict does not count: group g1 has "
                                            "on_full=reject"));
  EXPECT_THAT(group.Log(primary), HasSubstr("--silence_ms=4000 does not count"));
  EXPECT_THAT(group.Log(primary), HasSubstr("group g1 has shards=3, which this version"));
  auto client = Client::Connect({group.Endpoint()});
  ASSERT_TRUE(client.ok()) << client.status();
  const std::vector<ServerReport> reports = (*client)->Stats();
  ASSERT_EQ(reports.size(), 1u);
  ASSERT_TRUE(reports[0].stats.ok()) << reports[0].stats.status();
  EXPECT_EQ(reports[0].stats->eviction_watermark, 0u) << "it evicts";
}

TEST(GroupTermsTest, TheGroupHasWhatItsFounderDoes) {
  GroupOfProcesses group(600, [](int i) { return "--silence_ms=" + std::to_string(3001 + i); });
  const int founder = group.AwaitAllInSync().primary;
  const int other = (founder + 1) % GroupOfProcesses::kMembers;
  const std::string own = std::to_string(3001 + founder);
  EXPECT_THAT(group.Log(other), HasSubstr("does not count: group g1 has silence_ms=" + own));
  // What an operator sets counts from the next start on, and a member that runs says so.
  EtcdCaller caller({group.EtcdUrl()});
  caller.Put("/gannet/c/policies/g1", R"({"format":1,"silence_ms":"2000"})");
  EXPECT_TRUE(group.member(founder).process().AwaitStderr(
      "the group has silence_ms=2000, and this process was started with " + own + ": restart it"));
}

}  // namespace
}  // namespace gannet
