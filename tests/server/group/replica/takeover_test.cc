#include "server/group/replica/takeover.h"

#include <gtest/gtest.h>

#include "common/base/server_time.h"
#include "tests/server/group/replica/group_times.h"
#include "tests/server/group/replica/scripted_config_store.h"

namespace gannet {
namespace {

using Step = Takeover::Step;

const GroupMember kPrimary = {.node = "n1", .incarnation = 1};
const GroupMember kSuccessor = {.node = "n2", .incarnation = 2};
const GroupMember kOther = {.node = "n3", .incarnation = 3};

// As many copies as the group wants.
constexpr uint32_t kCopies = 1;
constexpr uint32_t kAllCopies = 3;

class TakeoverStepsTest : public testing::Test {
 protected:
  TakeoverStepsTest()
      : store_({.revision = 7,
                .configuration = {.epoch = 3,
                                  .primary = kPrimary,
                                  .in_sync = {kPrimary, kSuccessor, kOther}}}),
        takeover_(kTimes, &store_, kSuccessor, store_.now(), 3, Boot(0), Boot(0)) {}

  // Until its transaction is under way.
  void Stand() {
    EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kFence);
    takeover_.OnFenced();
    EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
    ASSERT_TRUE(store_.sent().has_value());
    EXPECT_EQ(store_.sent()->configuration, Now().Under(kSuccessor));
  }
  const GroupConfiguration& Now() const { return store_.now().configuration; }

  ScriptedConfigStore store_;
  Takeover takeover_;
};

TEST_F(TakeoverStepsTest, FollowsWhileItHearsThePrimary) {
  EXPECT_EQ(takeover_.Poll(Boot(kG - 1)), Step::kFollow);
  EXPECT_TRUE(takeover_.OnBeacon(Boot(kG - 1)));
  EXPECT_EQ(takeover_.Poll(Boot(2 * kG - 2)), Step::kFollow);
  EXPECT_EQ(takeover_.Poll(Boot(2 * kG - 1)), Step::kFence);
}

// Its Poll began at 0, and was stopped. When it went on, it answered a beacon at 5'000, and then
// learned that it is in sync. By that answer the primary has a lease until 5'000 + L.
TEST_F(TakeoverStepsTest, AJoinerThatLearnsLateWaitsFromTheLastBeaconThatItAnswered) {
  Takeover late(kTimes, &store_, kSuccessor, store_.now(), 3, /*answered=*/Boot(5'000),
                /*now=*/Boot(0));
  EXPECT_EQ(late.Poll(Boot(5'000 + kG - 1)), Step::kFollow);
  EXPECT_EQ(late.Poll(Boot(5'000 + kG)), Step::kFence);
}

TEST_F(TakeoverStepsTest, FencesBeforeItSendsItsTransactionAndHearsNothingFromThen) {
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kFence);
  EXPECT_FALSE(takeover_.OnBeacon(Boot(kG)));
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kFence);
  EXPECT_FALSE(store_.sent().has_value());
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
  EXPECT_TRUE(store_.sent().has_value());
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kLead);
  EXPECT_EQ(takeover_.known().configuration.epoch, 4u);
  EXPECT_FALSE(takeover_.known().configuration.IsInSync(kPrimary));
}

TEST_F(TakeoverStepsTest, GoesOnIfAnEarlierTryWon) {
  Stand();
  const GroupRegister forgotten = store_.Forget();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
  ASSERT_TRUE(store_.sent().has_value()) << "it tries again";
  store_.ExecuteLate(forgotten);
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kLead);
}

TEST_F(TakeoverStepsTest, TriesAgainIfItLostInTheSameEpoch) {
  Stand();
  store_.Change(Now().Without(kOther));
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, Now().Under(kSuccessor));
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kLead);
}

// This copy may be the only one.
TEST_F(TakeoverStepsTest, TriesAgainIfItLostToWhatItHasSeenAlready) {
  Stand();
  store_.Change(Now().Without(kOther));
  store_.Show();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
  ASSERT_TRUE(store_.sent().has_value());
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kLead);
}

TEST_F(TakeoverStepsTest, SurvivesIfAnotherOneTookOverAndItIsInSync) {
  Stand();
  store_.Change(Now().Under(kOther));
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kConnect);
  takeover_.OnHello();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kFollow);
  EXPECT_TRUE(takeover_.OnBeacon(Boot(kG + 5)));
  EXPECT_EQ(takeover_.Poll(Boot(2 * kG + 4)), Step::kFollow);
  EXPECT_EQ(takeover_.Poll(Boot(2 * kG + 5)), Step::kFence) << "that one is over, too";
}

TEST_F(TakeoverStepsTest, ALinkThatMayBeWrittenToIsNotReplacedByAnother) {
  Stand();
  store_.Change(Now().Under(kOther));
  store_.Execute();
  ASSERT_EQ(takeover_.Poll(Boot(kG)), Step::kConnect);
  takeover_.OnHello();
  EXPECT_DEATH(takeover_.OnHello(), "the former link is not fenced");
}

TEST_F(TakeoverStepsTest, ExecutesAgainOnlyIfItIsNotInSync) {
  Stand();
  store_.Change(Now().Without(kSuccessor));
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kEnd);
}

TEST_F(TakeoverStepsTest, LeavesByATransactionAndEndsOnceThatHasWon) {
  takeover_.Leave(kCopies);
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, Now().Without(kSuccessor));
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kFollow) << "until then it is in sync";
  EXPECT_TRUE(takeover_.OnBeacon(Boot(1))) << "and the primary's lease counts on it";
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(2)), Step::kEnd);
}

// The primary learns of it later than the register. Until then it would count as a copy what is in
// sync no more.
TEST_F(TakeoverStepsTest, LeavesTooFewCopiesOnlyOnceThePrimarysLeaseIsOver) {
  takeover_.Leave(kAllCopies);
  EXPECT_FALSE(takeover_.OnBeacon(Boot(kG - 1))) << "the lease must not go on";
  takeover_.Leave(kAllCopies);
  EXPECT_EQ(takeover_.Poll(Boot(kG - 1)), Step::kFollow);
  EXPECT_FALSE(store_.sent().has_value());
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kFence);
  EXPECT_FALSE(store_.sent().has_value());
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, Now().Without(kSuccessor));
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kEnd);
}

// This copy may be the only one.
TEST_F(TakeoverStepsTest, TakesOverInsteadOfLeavingIfThePrimaryIsGoneMeanwhile) {
  takeover_.Leave(kAllCopies);
  EXPECT_FALSE(takeover_.OnBeacon(Boot(kG - kTimes.silence_ns())));
  Stand();
}

TEST_F(TakeoverStepsTest, TakesOverIfItIsUnknownWhetherItHasLeft) {
  takeover_.Leave(kAllCopies);
  EXPECT_FALSE(takeover_.OnBeacon(Boot(kG - 1)));
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kFence);
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
  store_.Forget();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, Now().Under(kSuccessor));
}

TEST_F(TakeoverStepsTest, SurvivesThoughItLeavesIfAnotherOneTookOver) {
  takeover_.Leave(kAllCopies);
  store_.Change(Now().Under(kOther));
  store_.Show();
  EXPECT_EQ(takeover_.Poll(Boot(2)), Step::kFence);
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(3)), Step::kConnect);
  takeover_.OnHello();
  EXPECT_EQ(takeover_.Poll(Boot(4)), Step::kFollow);
  EXPECT_TRUE(takeover_.OnBeacon(Boot(5)));
  EXPECT_EQ(takeover_.Poll(Boot(kG + 4)), Step::kFollow);
  EXPECT_FALSE(store_.sent().has_value());
}

// Both that are told to stop find the same register. Who loses looks again: it may be the last.
TEST_F(TakeoverStepsTest, TheSecondThatLeavesSeesWhatTheFirstOneDid) {
  takeover_.Leave(kCopies);
  store_.Change(Now().Without(kOther));
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kFollow);
  takeover_.Leave(kCopies);
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration.in_sync, std::vector<GroupMember>{kPrimary});
}

TEST_F(TakeoverStepsTest, DoesNotLeaveWhomAHandOverNames) {
  takeover_.Leave(kCopies);
  store_.Change(Now().Under(kSuccessor));
  store_.Execute();
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kFence);
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kLead) << "nobody else has the items now";
  takeover_.Leave(kCopies);
  EXPECT_FALSE(store_.sent().has_value());
}

TEST_F(TakeoverStepsTest, DoesNotLeaveAPrimaryThatItDoesNotFollow) {
  store_.Change(Now().Under(kOther));
  store_.Show();
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kFence);
  takeover_.Leave(kCopies);
  EXPECT_FALSE(store_.sent().has_value()) << "the next primary may need its tail";
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(kG + 1)), Step::kWait) << "a takeover";
}

TEST_F(TakeoverStepsTest, ASurvivorFencesTheFormerPrimaryBeforeItConnects) {
  store_.Change(Now().Under(kOther));
  store_.Show();
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kFence);
  EXPECT_FALSE(takeover_.OnBeacon(Boot(1))) << "it is the former primary's";
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(2)), Step::kConnect);
  EXPECT_FALSE(takeover_.OnBeacon(Boot(2)));
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kConnect)
      << "its time began when it learned of the epoch";
  EXPECT_EQ(takeover_.Poll(Boot(1 + kG)), Step::kWait) << "nothing is to be fenced";
  EXPECT_TRUE(store_.sent().has_value());
}

TEST_F(TakeoverStepsTest, ALinkThatIsMadeAnewIsFencedFirstAndGoesOnInTheSameEpoch) {
  takeover_.MakeLinkAnew();
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kFence);
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kConnect);
  EXPECT_FALSE(takeover_.OnBeacon(Boot(1))) << "there is no link";
  takeover_.OnHello();
  EXPECT_EQ(takeover_.Poll(Boot(2)), Step::kFollow);
  EXPECT_TRUE(takeover_.OnBeacon(Boot(kG - 1)));
  EXPECT_EQ(takeover_.Poll(Boot(2 * kG - 2)), Step::kFollow);
}

TEST_F(TakeoverStepsTest, ALinkThatIsMadeAnewInVainDoesNotMakeGLonger) {
  ASSERT_TRUE(takeover_.OnBeacon(Boot(0)));
  takeover_.MakeLinkAnew();
  EXPECT_EQ(takeover_.Poll(Boot(kG / 2)), Step::kFence);
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(kG - 1)), Step::kConnect);
  takeover_.OnHello();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kFence);
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(kG)), Step::kWait);
  EXPECT_TRUE(store_.sent().has_value());
}

TEST_F(TakeoverStepsTest, OneThatAHandOverNamesFencesAtOnceAndLeads) {
  store_.Change(Now().Under(kSuccessor));
  store_.Show();
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kFence);
  EXPECT_FALSE(takeover_.OnBeacon(Boot(1)));
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kLead);
}

TEST_F(TakeoverStepsTest, ALinkThatIsBegunIsFencedToo) {
  Takeover late(kTimes, &store_, kSuccessor, store_.now(), 2, Boot(0),
                Boot(0));  // as its link is of an older epoch
  EXPECT_EQ(late.Poll(Boot(0)), Step::kFence);
  late.OnFenced();
  EXPECT_EQ(late.Poll(Boot(0)), Step::kConnect);
  late.OnHello();
  EXPECT_EQ(late.Poll(Boot(kG)), Step::kFence);
}

TEST_F(TakeoverStepsTest, TheSecondBackupWaitsForABeaconMore) {
  ScriptedConfigStore store(store_.now());
  Takeover second(kTimes, &store, kOther, store.now(), 3, Boot(0), Boot(0));
  EXPECT_EQ(second.Poll(Boot(kG)), Step::kFollow);
  EXPECT_EQ(second.Poll(Boot(kG + kTimes.beacon_ns())), Step::kFence);
}

// The register says another length by now. The primary that it follows has its own.
TEST_F(TakeoverStepsTest, WaitsForAsLongAsTheLeaseThatThePrimaryWelcomedItWith) {
  constexpr GroupTimes kLonger = {.lease_ns = 3 * kL};
  store_.Change(Now().Under(kOther));
  store_.Show();
  EXPECT_EQ(takeover_.Poll(Boot(1)), Step::kFence);
  takeover_.OnFenced();
  EXPECT_EQ(takeover_.Poll(Boot(2)), Step::kConnect);
  takeover_.OnHello();
  takeover_.OnWelcome(kLonger);
  EXPECT_TRUE(takeover_.OnBeacon(Boot(10)));
  EXPECT_EQ(takeover_.Poll(Boot(10 + kLonger.grace_ns() - 1)), Step::kFollow);
  EXPECT_EQ(takeover_.Poll(Boot(10 + kLonger.grace_ns())), Step::kFence);
}

TEST(ExpiryClockTest, GoesOnFromThePrimarysAndIsAtLeastALeaseBeyond) {
  ExpiryClock clock;
  clock.OnPrimary(ServerTime::FromMs(10'000), Boot(1'000'000'000));
  clock.OnPrimary(ServerTime::FromMs(9'999), Boot(5'000'000'000));
  EXPECT_EQ(clock.AtTakeover(kTimes, Boot(1'000'000'000)).ms(), 10'610u) << "L + L/64, rounded up";
  EXPECT_EQ(clock.AtTakeover(kTimes, Boot(6'000'000'000)).ms(), 15'000u);
}

TEST(ExpiryClockTest, GoesOnWithoutAJumpFromTheLastThatAHandOverTold) {
  ExpiryClock clock;
  clock.OnPrimary(ServerTime::FromMs(10'000), Boot(1'000'000'000));
  clock.OnPrimary(ServerTime::FromMs(10'100), Boot(1'100'000'000), /*last=*/true);
  EXPECT_EQ(clock.AtTakeover(kTimes, Boot(1'103'000'000)).ms(), 10'103u);
  // In the same millisecond.
  clock.OnPrimary(ServerTime::FromMs(10'200), Boot(1'200'000'000));
  clock.OnPrimary(ServerTime::FromMs(10'200), Boot(1'200'500'000), /*last=*/true);
  EXPECT_EQ(clock.AtTakeover(kTimes, Boot(1'203'000'000)).ms(), 10'203u);
  // This machine heard of it long after, though the primary's clock is where it was.
  clock.OnPrimary(ServerTime::FromMs(10'200), Boot(7'200'000'000), /*last=*/true);
  EXPECT_EQ(clock.AtTakeover(kTimes, Boot(7'203'000'000)).ms(), 10'203u);
  // The hand-over failed, and the primary went on.
  clock.OnPrimary(ServerTime::FromMs(10'300), Boot(7'300'000'000));
  EXPECT_EQ(clock.AtTakeover(kTimes, Boot(7'303'000'000)).ms(), 10'910u);
}

}  // namespace
}  // namespace gannet
