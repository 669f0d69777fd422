// What a change of primary and of the group's lease do to whole servers: the clock by which items
// expire, and how long a backup waits.

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/server/group/members/group_fixture.h"

namespace gannet {
namespace {

class HandOverClockTest : public GroupPutTest {
 protected:
  // The primary hands over to its backup, in a lease's time. Nothing else makes the clock go on.
  void HandOver() {
    ASSERT_TRUE(StepUntil([&] { return primary().backups.at(0).in_sync; }));
    shared().WantSuccessor("n2");
    ASSERT_TRUE(StepUntil([&] { return primary().hands_over; }));
    SkipLeaseTime((kLeaseMs - 1) * kNsPerMs);
    ASSERT_TRUE(StepUntil([&] {
      skipped_ns_ += kNsPerMs;
      return shared().now().configuration.epoch == 2 && backup(0).serves();
    }));
  }
};

TEST_F(HandOverClockTest, AHandOverDoesNotMoveTheClockAhead) {
  StartGroup(1);
  ASSERT_FALSE(HasFatalFailure());
  HandOver();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_LT(BackupAheadMs(0), kLeaseMs / 2);
}

using LeaseTermsTest = GroupPutTest;

// The group's lease is shorter by now. The primary has the one that it began with.
TEST_F(LeaseTermsTest, ABackupWaitsForTheLeaseOfThePrimaryThatItFollows) {
  StartGroup(0);
  ASSERT_FALSE(HasFatalFailure());
  shared().SetTerms([](GroupTerms* terms) { terms->lease_ms = 200; });
  StartBackup(0);
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(StepUntil([&] { return shared().now().configuration.in_sync.size() == 2; }));
  Member& member = *backup(0).member();
  ASSERT_TRUE(StepUntil([&] { return member.Look().role == Member::Role::kBackup; }));
  const auto polls = [&](int64_t passed_ms) {
    skipped_ns_ += passed_ms * kNsPerMs;
    for (int i = 0; i < 100; ++i) member.Poll(lease_now());
  };
  polls(kLeaseMs / 2);
  EXPECT_EQ(member.Look().role, Member::Role::kBackup);
  EXPECT_EQ(shared().now().configuration.epoch, 1u) << "the primary's lease is valid still";
  for (int i = 0; i < 1000 && shared().now().configuration.epoch == 1; ++i) polls(kLeaseMs / 50);
  EXPECT_EQ(shared().now().configuration.epoch, 2u) << "it is over";
}

}  // namespace
}  // namespace gannet
