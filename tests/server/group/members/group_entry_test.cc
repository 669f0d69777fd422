#include "server/group/members/group_entry.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "common/base/clocks.h"
#include "tests/server/group/members/still_directory.h"

namespace gannet {
namespace {

// Says what the test lets it answer, and counts what it is asked.
struct AskedStore final : ConfigStore {
  void Read() override { ++reads; }
  void Txn(uint64_t revision, const GroupConfiguration& to) override {
    wanted = {.revision = revision, .configuration = to};
  }
  std::optional<Answer> Poll() override { return std::exchange(answer, std::nullopt); }
  std::optional<GroupRegister> Seen() const override { return seen; }

  int reads = 0;
  std::optional<GroupRegister> wanted;
  std::optional<Answer> answer;
  std::optional<GroupRegister> seen;
};

class GroupEntryTest : public testing::Test {
 protected:
  // The register is read.
  void Read(uint64_t revision, const GroupConfiguration& configuration) {
    entry_.AskIfDue(now_);
    store_.answer = {.result = ConfigStore::Result::kRead,
                     .now = {.revision = revision, .configuration = configuration}};
  }

  const BootTime now_ = BootTime() + kNsPerSecond;
  AskedStore store_;
  StillDirectory directory_;
  GroupContext context_{.group = {.config_store = &store_, .directory = &directory_},
                        .self = kSelf,
                        .clocks = MachineClocks()};
  LineLog log_;
  GroupEntry entry_{context_, &log_};
};

TEST_F(GroupEntryTest, FoundsAGroupThatNobodyHasFounded) {
  Read(7, {});
  ASSERT_TRUE(entry_.Poll());
  EXPECT_TRUE(entry_.TryToLead(now_));
  ASSERT_TRUE(store_.wanted);
  EXPECT_EQ(store_.wanted->revision, 7U);
  EXPECT_EQ(store_.wanted->configuration,
            (GroupConfiguration{.epoch = 1, .primary = kSelf, .in_sync = {kSelf}}));
}

TEST_F(GroupEntryTest, FoundsNothingWhileAnotherNodeHasTheGroupsItems) {
  directory_.with_items = {"a"};
  Read(7, {});
  ASSERT_TRUE(entry_.Poll());
  EXPECT_TRUE(entry_.TryToLead(now_)) << "there is nobody to join";
  EXPECT_FALSE(store_.wanted);
}

TEST_F(GroupEntryTest, JoinsThePrimaryThatIsNamed) {
  Read(7, {.epoch = 3, .primary = kOther, .in_sync = {kOther}});
  ASSERT_TRUE(entry_.Poll());
  EXPECT_FALSE(entry_.TryToLead(now_));
  EXPECT_FALSE(store_.wanted);
  EXPECT_EQ(entry_.known().configuration.primary, kOther);
}

TEST_F(GroupEntryTest, AnAnswerToWhatWasAskedBeforeALinkIsKnownAndDecidesNothing) {
  entry_.AskIfDue(now_);
  entry_.OnLink();
  Read(7, {.epoch = 3, .primary = kOther, .in_sync = {kOther}});
  EXPECT_FALSE(entry_.Poll());
  EXPECT_EQ(entry_.known().revision, 7U);
}

TEST_F(GroupEntryTest, AnUnknownResultSaysNothing) {
  entry_.AskIfDue(now_);
  store_.answer = {.result = ConfigStore::Result::kUnknown, .now = {.revision = 9}};
  EXPECT_FALSE(entry_.Poll());
  EXPECT_EQ(entry_.known().revision, 0U);
  entry_.AskIfDue(now_);
  EXPECT_EQ(store_.reads, 2) << "it is not asked again";
}

TEST_F(GroupEntryTest, KnowsWhatWasSeenIfThatIsNewer) {
  store_.seen = {.revision = 8, .configuration = {.epoch = 4}};
  Read(7, {.epoch = 3, .primary = kOther, .in_sync = {kOther}});
  EXPECT_TRUE(entry_.Poll());
  EXPECT_EQ(entry_.known().configuration.epoch, 4U);
}

TEST_F(GroupEntryTest, AsksForOneThingAtATimeAndRests) {
  entry_.AskIfDue(now_);
  entry_.AskIfDue(now_);
  EXPECT_EQ(store_.reads, 1);
  Read(7, {.epoch = 3, .primary = kOther, .in_sync = {kOther}});
  ASSERT_TRUE(entry_.Poll());
  entry_.Rest(now_ + 1);
  entry_.AskIfDue(now_);
  EXPECT_EQ(store_.reads, 1);
  entry_.AskIfDue(now_ + 1);
  EXPECT_EQ(store_.reads, 2);
}

}  // namespace
}  // namespace gannet
