#include "server/group/replica/hand_over.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tests/server/group/replica/group_times.h"
#include "tests/server/group/replica/scripted_config_store.h"

namespace gannet {
namespace {

constexpr int64_t kShort = HandOver::kShortNs;
constexpr int64_t kEnd = kL + kShort;  // of the wait, if it begins at kL
const GroupMember kSelf = {.node = "n1", .incarnation = 1};
const GroupMember kBackup = {.node = "n2", .incarnation = 2};

class HandOverTest : public testing::Test {
 protected:
  HandOverTest()
      : store_({.revision = 7,
                .configuration = {.epoch = 3, .primary = kSelf, .in_sync = {kSelf, kBackup}}}),
        membership_(&store_, &lease_, &commit_, kSelf, store_.now(), Boot(0)),
        hand_over_(kTimes, &membership_) {}

  // Begins, and polls once when no long lease is left.
  void Stop(const GroupMember& successor = kBackup) {
    hand_over_.Begin(successor, Boot(0));
    Poll(kL);
  }
  void Poll(int64_t now) {
    lease_.OnAnswer(kBackup.incarnation, lease_.OnSend(Boot(now)), Boot(now));
    hand_over_.Poll(Boot(now));
    membership_.Poll(Boot(now));
  }

  PrimaryLease lease_{kTimes};
  Commit commit_{0};
  ScriptedConfigStore store_;
  Membership membership_;
  HandOver hand_over_;
};

TEST(HandOverPhaseTest, TakesNoStepButThoseOfThePicture) {
  using enum HandOverPhase;
  const std::set<std::pair<HandOverPhase, HandOverPhase>> picture = {
      {kNone, kShortLeases}, {kShortLeases, kStops}, {kStops, kWaits},
      {kWaits, kNamed},      {kNamed, kNone},
  };
  for (int i = 0; i <= static_cast<int>(kNamed); ++i) {
    for (int j = 0; j <= static_cast<int>(kNamed); ++j) {
      const auto from = static_cast<HandOverPhase>(i);
      const auto to = static_cast<HandOverPhase>(j);
      EXPECT_EQ(MayFollow(from, to), picture.contains({from, to})) << i << " to " << j;
    }
  }
}

TEST_F(HandOverTest, GrantsShortLeasesForALeaseAndStopsUntilTheseAreOver) {
  Poll(0);
  EXPECT_EQ(hand_over_.LeaseNsMax(), kL);
  hand_over_.Begin(kBackup, Boot(5));
  Poll(5 + kL - 1);
  EXPECT_FALSE(hand_over_.stopped());
  EXPECT_EQ(hand_over_.LeaseNsMax(), kShort);
  EXPECT_EQ(hand_over_.next_at(), Boot(5 + kL));
  Poll(5 + kL);
  EXPECT_TRUE(hand_over_.stopped());
  EXPECT_EQ(hand_over_.LeaseNsMax(), 0);
  EXPECT_TRUE(membership_.MayCommit()) << "what was taken before is still committed";
}

// The caller may have told clients of a short lease until just before the second Poll.
TEST_F(HandOverTest, WaitsFromTheFirstPollAfterClientsWereToldOfNoLease) {
  Stop();
  const int64_t late = kL + 7 * kShort;
  Poll(late);
  Poll(late + kShort - 1);
  EXPECT_FALSE(store_.sent().has_value());
  EXPECT_EQ(hand_over_.next_at(), Boot(late + kShort));
  EXPECT_FALSE(hand_over_.ended()) << "a client may believe it still";
  Poll(late + kShort);
  EXPECT_TRUE(hand_over_.ended()) << "backups may be told the last of its clock";
  EXPECT_FALSE(store_.sent().has_value()) << "the successor has not answered that yet";
  Poll(late + kShort + 1);
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration.primary, kBackup);
  EXPECT_FALSE(membership_.MayCommit());
  store_.Execute();
  Poll(late + kShort + 2);
  EXPECT_TRUE(membership_.deposed());
  EXPECT_TRUE(hand_over_.stopped());
}

TEST_F(HandOverTest, StaysStoppedWhileTheResultIsUnknownAndGoesOnOnceItCannotWin) {
  Stop();
  Poll(kL);
  Poll(kEnd);
  Poll(kEnd + 1);
  ASSERT_TRUE(store_.sent().has_value());
  store_.Forget();
  store_.Show();
  membership_.OnBroken(kBackup, Boot(kEnd));
  // It hears nobody, so it does not remove the backup yet. It sends one that changes nothing.
  hand_over_.Poll(Boot(kEnd + 1));
  membership_.Poll(Boot(kEnd + 1));
  EXPECT_TRUE(hand_over_.stopped());
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, store_.now().configuration);
  hand_over_.Poll(Boot(kEnd + 2));
  EXPECT_TRUE(hand_over_.stopped());
  store_.Execute();
  membership_.Poll(Boot(kEnd + 3));
  hand_over_.Poll(Boot(kEnd + 3));
  EXPECT_FALSE(hand_over_.stopped());
  EXPECT_TRUE(membership_.MayCommit());
}

// Its answers are to beacons from before the end. So it may not know the last of the clock.
TEST_F(HandOverTest, NamesNobodyWhoHasNotAnsweredABeaconFromBehindTheEnd) {
  Stop();
  Poll(kL);
  const uint64_t before = lease_.OnSend(Boot(kEnd));
  hand_over_.Poll(Boot(kEnd));
  membership_.Poll(Boot(kEnd));
  const uint64_t behind = lease_.OnSend(Boot(kEnd + 1));
  lease_.OnAnswer(kBackup.incarnation, before, Boot(kEnd + 5));
  hand_over_.Poll(Boot(kEnd + 5));
  membership_.Poll(Boot(kEnd + 5));
  EXPECT_FALSE(store_.sent().has_value());
  EXPECT_TRUE(hand_over_.stopped());
  EXPECT_TRUE(membership_.MayCommit());
  lease_.OnAnswer(kBackup.incarnation, behind, Boot(kEnd + 6));
  membership_.Poll(Boot(kEnd + 6));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration.primary, kBackup);
}

TEST_F(HandOverTest, GoesOnIfTheSuccessorIsNotInSync) {
  Stop({.node = "n9", .incarnation = 9});
  Poll(kL);
  Poll(kEnd);
  EXPECT_FALSE(store_.sent().has_value());
  Poll(kEnd + 1);
  EXPECT_FALSE(hand_over_.begun());
}

}  // namespace
}  // namespace gannet
