#include "server/group/replica/restart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "server/group/replica/group_directory.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kHistory = 0x11;
constexpr uint64_t kEpoch = 4;

// A group whose members' processes are gone: n1 was primary, n2 its backup; n3 was out. Processes 1
// were in sync, and processes 2 have come back.
class RestartTest : public testing::Test, private GroupDirectory {
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
    return PlanRestart(now, terms(), *this);
  }
  void ExpectAwaits(const std::string& what) const {
    EXPECT_FALSE(Plan().leader);
    EXPECT_THAT(Plan().awaits, HasSubstr(what));
  }
  KeptRun* Kept(const std::string& node) { return &*seen_[node].kept; }

  std::map<std::string, NodeSeen> seen_;

 private:
  GroupTerms terms() const override { return {.history = kHistory, .members = {"n1", "n2", "n3"}}; }
  std::optional<NodeSeen> NodeOf(std::string_view node) const override {
    const auto it = seen_.find(std::string(node));
    return it == seen_.end() ? std::nullopt : std::optional(it->second);
  }
  void Announce(const GroupMember&, std::string_view, uint64_t) override {}
  std::optional<std::string> AddressOf(const GroupMember&) const override { return std::nullopt; }
  std::optional<std::string> WantedSuccessor() const override { return std::nullopt; }
  void ForgetWantedSuccessor() override {}
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

// n1 took over from n3, and was killed before it took clients. n3 was taken out by that.
TEST_F(RestartTest, WithSyncAlwaysAFormerPrimaryLeadsIfItsSuccessorTookNoClients) {
  for (const char* const node : {"n1", "n2", "n3"}) Kept(node)->always = true;
  Kept("n1")->lsn = 500;
  Kept("n3")->opened = kEpoch - 1;
  EXPECT_EQ(Plan().leader, (GroupMember{"n3", 2}));
  EXPECT_THAT(Plan().others, ElementsAre(GroupMember{"n1", 2}, GroupMember{"n2", 2}));
  EXPECT_EQ(Plan().best, "n3");
  seen_["n2"].incarnation = 1;
  ExpectAwaits("n2 has not come back");
  EXPECT_EQ(Plan().best, "n3") << "the one to force, whoever asks";
}

// Whoever was primary in between may have taken clients. It may be any member.
TEST_F(RestartTest, WithSyncAlwaysAnEarlierPrimaryLeadsWhenAllMembersAreBack) {
  for (const char* const node : {"n1", "n2", "n3"}) Kept(node)->always = true;
  Kept("n2")->opened = kEpoch - 2;
  EXPECT_EQ(Plan().leader, (GroupMember{"n2", 2}));
  EXPECT_THAT(Plan().others, ElementsAre(GroupMember{"n1", 2}, GroupMember{"n3", 2}));
  Kept("n3")->always = false;
  ExpectAwaits("n3 may have taken clients after epoch 2");
  seen_["n3"].kept.reset();
  ExpectAwaits("n3 may have taken clients after epoch 2");
  EXPECT_EQ(Plan().best, "n2");
}

TEST_F(RestartTest, WithSyncAlwaysNobodyLeadsWhileNoDiskHasOpenedAnEpoch) {
  for (const char* const node : {"n1", "n2", "n3"}) Kept(node)->always = true;
  ExpectAwaits("no disk says in which epoch clients were taken");
  Kept("n3")->opened = kEpoch;  // it was not primary then
  ExpectAwaits("no disk says in which epoch clients were taken");
}

TEST_F(RestartTest, SaysWhichDiskIsBestOfThoseThatAreKnown) {
  seen_["n1"].incarnation = 1;
  Kept("n3")->lsn = 101;
  EXPECT_EQ(Plan().best, "n3");
  Kept("n2")->opened = 1;
  EXPECT_EQ(Plan().best, "n2") << "it took clients";
  for (auto& [node, seen] : seen_) seen.kept.reset();
  EXPECT_EQ(Plan().best, "");
}

}  // namespace
}  // namespace gannet
