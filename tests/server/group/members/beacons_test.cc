#include <gtest/gtest.h>

#include "server/group/replica/unanswered_beacons.h"
#include "tests/server/group/members/group_fixture.h"

namespace gannet {
namespace {

TEST(UnansweredBeaconsTest, CountsWhatWasSentAndNotHowFarTheSequencesAre) {
  UnansweredBeacons beacons(2);
  beacons.OnSend(1);
  EXPECT_TRUE(beacons.MaySend());
  beacons.OnSend(2);
  EXPECT_FALSE(beacons.MaySend());
  beacons.OnAnswer(1);
  ASSERT_TRUE(beacons.MaySend());
  beacons.OnSend(90);
  EXPECT_FALSE(beacons.MaySend());
  beacons.OnAnswer(90);  // and 2, before it
  beacons.OnSend(91);
  EXPECT_TRUE(beacons.MaySend());
}

using BeaconsTest = GroupPutTest;

// While its ring is half full, the primary wants to know every millisecond what the backup freed.
TEST_F(BeaconsTest, ABackupThatWasBusyForLongIsSentBeaconsAgain) {
  StartGroup(1);
  ASSERT_FALSE(HasFatalFailure());
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const std::string value(1000, 'v');
  const auto fill = [&] {
    for (int i = 0; primary().backups[0].behind_bytes <= 9 << 20; ++i) {
      ASSERT_EQ(peer.Put(Key(i % 1000), value), ReplyStatus::kOk);
    }
  };
  FollowApart();
  for (int round = 0; round < 2; ++round) {
    fill();
    ASSERT_FALSE(HasFatalFailure());
    // The backup is busy, and the primary asks more often than it may.
    for (int i = 0; i < 100; ++i) server().member()->Poll(MachineBootTime() + i * kNsPerMs);
    ASSERT_TRUE(StepUntil([&] {
      backup(0).member()->Poll(MachineBootTime());
      return primary().backups[0].behind_bytes == 0;
    })) << "round "
        << round;
  }
}

}  // namespace
}  // namespace gannet
