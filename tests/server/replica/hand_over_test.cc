#include "server/replica/hand_over.h"

#include <gtest/gtest.h>

#include "tests/server/replica/scripted_config_store.h"

namespace gannet {
namespace {

constexpr GroupTimes kTimes = {.lease_ns = 600'000'000};
constexpr int64_t kL = kTimes.lease_ns;
const GroupMember kSelf = {.node = "n1", .incarnation = 1};
const GroupMember kBackup = {.node = "n2", .incarnation = 2};

class HandOverTest : public testing::Test {
 protected:
  HandOverTest()
      : store_({.revision = 7,
                .configuration = {.epoch = 3, .primary = kSelf, .in_sync = {kSelf, kBackup}}}),
        membership_(&store_, &lease_, &commit_, kSelf, store_.now(), 0),
        hand_over_(kTimes, &membership_) {}

  void Poll(int64_t now) {
    lease_.OnAnswer(kBackup.incarnation, lease_.OnSend(now), now);
    hand_over_.Poll(now);
    membership_.Poll(now);
  }

  PrimaryLease lease_{kTimes};
  Commit commit_{0};
  ScriptedConfigStore store_;
  Membership membership_;
  HandOver hand_over_;
};

TEST_F(HandOverTest, StopsAndWaitsForALeaseBeforeItNamesTheSuccessor) {
  Poll(0);
  EXPECT_FALSE(hand_over_.stopped());
  hand_over_.Begin(kBackup, 5);
  EXPECT_TRUE(hand_over_.stopped());
  Poll(5 + kL - 1);
  EXPECT_FALSE(store_.sent().has_value());
  EXPECT_TRUE(membership_.MayCommit()) << "what was taken before is still committed";
  Poll(5 + kL);
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration.primary, kBackup);
  EXPECT_FALSE(membership_.MayCommit());
  store_.Execute();
  Poll(6 + kL);
  EXPECT_TRUE(membership_.deposed());
  EXPECT_TRUE(hand_over_.stopped());
}

TEST_F(HandOverTest, StaysStoppedWhileTheResultIsUnknownAndGoesOnOnceItCannotWin) {
  hand_over_.Begin(kBackup, 0);
  Poll(kL);
  ASSERT_TRUE(store_.sent().has_value());
  store_.Forget();
  store_.Show();
  membership_.OnBroken(kBackup, kL);
  // It hears nobody, so it does not remove the backup yet. It sends one that changes nothing.
  hand_over_.Poll(kL + 1);
  membership_.Poll(kL + 1);
  EXPECT_TRUE(hand_over_.stopped());
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, store_.now().configuration);
  hand_over_.Poll(kL + 2);
  EXPECT_TRUE(hand_over_.stopped());
  store_.Execute();
  membership_.Poll(kL + 3);
  hand_over_.Poll(kL + 3);
  EXPECT_FALSE(hand_over_.stopped());
  EXPECT_TRUE(membership_.MayCommit());
}

TEST_F(HandOverTest, GoesOnIfTheSuccessorIsNotInSync) {
  hand_over_.Begin({.node = "n9", .incarnation = 9}, 0);
  Poll(kL);
  EXPECT_FALSE(store_.sent().has_value());
  Poll(kL + 1);
  EXPECT_FALSE(hand_over_.stopped());
}

}  // namespace
}  // namespace gannet
