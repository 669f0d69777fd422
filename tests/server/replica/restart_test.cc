#include "server/replica/restart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kHistory = 0x11;
constexpr uint64_t kEpoch = 4;

// A group whose members' processes are gone: n1 was primary, n2 its backup; n3 was out. Processes 1
// were in sync, and processes 2 have come back.
class RestartTest : public testing::Test {
 protected:
  RestartTest() {
    for (const char* const node : {"n1", "n2", "n3"}) {
      seen_[node] = {.incarnation = 2,
                     .applied = 100,
                     .kept = KeptRun{.process = 1, .history = kHistory, .lsn = 100},
                     .stream_version = 0};
    }
  }
  RestartPlan Plan() const {
    const GroupConfiguration now = {
        .epoch = kEpoch, .primary = {"n1", 1}, .in_sync = {{"n1", 1}, {"n2", 1}}};
    const GroupTerms terms = {.history = kHistory, .members = {"n1", "n2", "n3"}};
    return PlanRestart(now, terms, [this](std::string_view node) -> std::optional<NodeSeen> {
      const auto it = seen_.find(std::string(node));
      if (it == seen_.end()) return std::nullopt;
      return it->second;
    });
  }
  void ExpectAwaits(const std::string& what) const {
    EXPECT_FALSE(Plan().leader);
    EXPECT_THAT(Plan().awaits, HasSubstr(what));
  }
  KeptRun* Kept(const std::string& node) { return &*seen_[node].kept; }

  std::map<std::string, NodeSeen> seen_;
};

TEST_F(RestartTest, TheFormerPrimaryLeadsIfNobodyHasMore) {
  EXPECT_EQ(Plan().leader, (GroupMember{"n1", 2}));
  EXPECT_THAT(Plan().others, ElementsAre(GroupMember{"n2", 2}));
  EXPECT_EQ(Plan().awaits, "");
}

TEST_F(RestartTest, TheOneWithTheMostLeads) {
  Kept("n2")->lsn = seen_["n2"].applied = 101;
  EXPECT_EQ(Plan().leader, (GroupMember{"n2", 2}));
  EXPECT_THAT(Plan().others, ElementsAre(GroupMember{"n1", 2}));
}

TEST_F(RestartTest, AllWhoWereInSyncHaveToComeBack) {
  seen_["n2"].incarnation = 1;
  ExpectAwaits("n2 has not come back");
  seen_.erase("n2");
  ExpectAwaits("n2 has not come back");
  seen_.erase("n3");
  ExpectAwaits("n2 has not come back");
}

TEST_F(RestartTest, EachWithTheDiskOfTheProcessThatWasInSync) {
  Kept("n2")->process = 7;
  ExpectAwaits("n2 has another run on its disk");
  Kept("n2")->process = 1;
  Kept("n2")->history = kHistory + 1;
  ExpectAwaits("n2 has items of another history");
  seen_["n2"].kept.reset();
  ExpectAwaits("n2 has come back without");
}

// It may be alive, with all of it in memory, as it was taken out of those in sync.
TEST_F(RestartTest, NoOtherMemberMayHaveAnnouncedMore) {
  seen_["n3"] = {.incarnation = 1, .applied = 101, .kept = std::nullopt, .stream_version = 0};
  ExpectAwaits("n3 has announced more");
  seen_["n3"].applied = 100;
  EXPECT_TRUE(Plan().leader);
}

TEST_F(RestartTest, WithSyncAlwaysThePrimaryThatTookClientsLeads) {
  for (const char* const node : {"n1", "n2"}) Kept(node)->always = true;
  Kept("n1")->opened = kEpoch;
  Kept("n2")->lsn = seen_["n2"].applied = 500;  // a note of the LSN may be old
  EXPECT_EQ(Plan().leader, (GroupMember{"n1", 2}));
  EXPECT_THAT(Plan().others, ElementsAre(GroupMember{"n2", 2}));
}

TEST_F(RestartTest, WithSyncAlwaysAFormerPrimaryMayHaveMoreThanOneThatTookNoClients) {
  Kept("n1")->always = true;
  Kept("n1")->opened = kEpoch - 1;
  ExpectAwaits("n1 had not taken clients yet");
}

}  // namespace
}  // namespace gannet
