#include "server/group/replica/membership.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/server/group/replica/group_times.h"
#include "tests/server/group/replica/scripted_config_store.h"

namespace gannet {
namespace {

const GroupMember kFounder = {.node = "n1", .incarnation = 1};
const GroupMember kFirst = {.node = "n2", .incarnation = 2};
const GroupMember kSecond = {.node = "n3", .incarnation = 3};
const GroupMember kJoiner = {.node = "n4", .incarnation = 4};

class MembershipTest : public testing::Test {
 protected:
  explicit MembershipTest(std::vector<GroupMember> in_sync = {kFounder, kFirst, kSecond})
      : store_({.revision = 7,
                .configuration = {.epoch = 3, .primary = kFounder, .in_sync = std::move(in_sync)}}),
        membership_(&store_, &lease_, &commit_, kFounder, store_.now(), Boot(0)) {}

  // A beacon that these answer at once.
  void Beacon(int64_t now, std::vector<GroupMember> answering) {
    const uint64_t beacon = lease_.OnSend(Boot(now));
    for (const GroupMember& member : answering)
      lease_.OnAnswer(member.incarnation, beacon, Boot(now));
  }
  const GroupConfiguration& Now() const { return store_.now().configuration; }

  PrimaryLease lease_{kTimes};
  Commit commit_{0};
  ScriptedConfigStore store_;
  Membership membership_;
};

TEST_F(MembershipTest, CountsAllInSyncAndSendsNothingWhileAllAreHeard) {
  membership_.Poll(Boot(0));
  EXPECT_FALSE(lease_.Valid(Boot(0)));
  Beacon(0, {kFirst});
  EXPECT_FALSE(lease_.Valid(Boot(0))) << "the other one counts, too";
  Beacon(0, {kFirst, kSecond});
  EXPECT_TRUE(lease_.Valid(Boot(0)));
  membership_.Poll(Boot(kL / 4));
  EXPECT_FALSE(store_.sent().has_value());
}

// What is committed meanwhile may be in no more of those in sync.
TEST_F(MembershipTest, ACopyMayBeGoneFromWhenARemovalIsSent) {
  EXPECT_EQ(membership_.copies(), 3u);
  Beacon(0, {kFirst, kSecond});
  Beacon(kL / 2, {kFirst});
  membership_.Poll(Boot(kL / 2));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(membership_.copies(), 2u);
  store_.Execute();
  membership_.Poll(Boot(kL / 2));
  EXPECT_EQ(membership_.copies(), 2u);
}

TEST_F(MembershipTest, ARemovedMemberCountsUntilItsRemovalIsKnownToHaveWon) {
  Beacon(0, {kFirst, kSecond});
  Beacon(kL / 2, {kFirst});
  membership_.Poll(Boot(kL / 2));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration.in_sync, (std::vector{kFounder, kFirst}));
  EXPECT_EQ(store_.sent()->configuration.epoch, 3u);
  EXPECT_TRUE(membership_.Counts(kSecond.incarnation));
  store_.Execute();
  EXPECT_TRUE(membership_.Counts(kSecond.incarnation)) << "it has won, but nobody knows";
  EXPECT_EQ(membership_.removed(), 0u);
  membership_.Poll(Boot(kL / 2));
  EXPECT_FALSE(membership_.Counts(kSecond.incarnation));
  EXPECT_EQ(membership_.removed(), 1u);
  EXPECT_TRUE(lease_.Valid(Boot(kL / 2))) << "it needs no answers of the removed one";
  commit_.OnCompleted(kFirst.incarnation, 80);
  EXPECT_EQ(commit_.Advance(80, lease_, Boot(kL / 2)), 80u);
  EXPECT_FALSE(store_.sent().has_value());
}

TEST_F(MembershipTest, AJoinerCountsFirstAndIsAddedOnceItHasAllThatIsCommitted) {
  Beacon(0, {kFirst, kSecond});
  for (const GroupMember& member : {kFirst, kSecond}) commit_.OnCompleted(member.incarnation, 240);
  EXPECT_EQ(commit_.Advance(240, lease_, Boot(1)), 240u);
  membership_.Join(kJoiner, 160, Boot(1));
  EXPECT_FALSE(lease_.Valid(Boot(1))) << "the lease needs its answer";
  Beacon(1, {kFirst, kSecond, kJoiner});
  membership_.Poll(Boot(1));
  EXPECT_FALSE(store_.sent().has_value());
  commit_.OnCompleted(kJoiner.incarnation, 240);
  membership_.Poll(Boot(1));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration.in_sync,
            (std::vector{kFounder, kFirst, kSecond, kJoiner}));
  store_.Execute();
  membership_.Poll(Boot(1));
  EXPECT_TRUE(membership_.Counts(kJoiner.incarnation));
  EXPECT_TRUE(membership_.known().configuration.IsInSync(kJoiner));
}

TEST_F(MembershipTest, AJoinerIsNotAddedBesideItsNodesFormerProcess) {
  const GroupMember again = {.node = kSecond.node, .incarnation = 5};
  membership_.Join(again, 0, Boot(0));
  Beacon(0, {kFirst, again});
  membership_.Poll(Boot(kL / 4));
  EXPECT_FALSE(store_.sent().has_value()) << "the former one still has time to connect";
  Beacon(kL, {kFirst, again});
  membership_.Poll(Boot(kL));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration.in_sync, (std::vector{kFounder, kFirst}));
  store_.Execute();
  membership_.Poll(Boot(kL));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration.in_sync, (std::vector{kFounder, kFirst, again}));
}

// Between its answer and its being ready it was stopped, or this primary was, which served
// meanwhile: the joiner's clock for expiries is older than a lease.
TEST_F(MembershipTest, AJoinerIsAddedOnlyWhileTheLeaseWithItsAnswersIsValid) {
  Beacon(0, {kFirst, kSecond});
  const uint64_t old_beacon = lease_.OnSend(Boot(0));
  Beacon(kL, {kFirst, kSecond});
  membership_.Join(kJoiner, 0, Boot(kL));
  lease_.OnAnswer(kJoiner.incarnation, old_beacon, Boot(kL));
  membership_.Poll(Boot(kL));
  EXPECT_FALSE(store_.sent().has_value());
  Beacon(kL + 1, {kFirst, kSecond, kJoiner});
  membership_.Poll(Boot(kL + 1));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_TRUE(store_.sent()->configuration.IsInSync(kJoiner));
}

TEST_F(MembershipTest, AJoinerThatLeavesIsNotCountedUnlessATransactionMayStillAddIt) {
  membership_.Join(kJoiner, 0, Boot(0));
  Beacon(0, {kFirst, kSecond, kJoiner});
  membership_.OnBroken(kJoiner, Boot(1));
  EXPECT_FALSE(membership_.Counts(kJoiner.incarnation));
  membership_.Join(kJoiner, 0, Boot(1));
  Beacon(1, {kFirst, kSecond, kJoiner});
  membership_.Poll(Boot(1));
  ASSERT_TRUE(store_.sent().has_value());
  membership_.OnBroken(kJoiner, Boot(2));
  EXPECT_TRUE(membership_.Counts(kJoiner.incarnation));
  store_.Execute();
  membership_.Poll(Boot(2));
  EXPECT_TRUE(membership_.Counts(kJoiner.incarnation)) << "it is in sync now";
  Beacon(2, {kFirst, kSecond});
  membership_.Poll(Boot(2));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_FALSE(store_.sent()->configuration.IsInSync(kJoiner)) << "and silent";
}

TEST_F(MembershipTest, AnUnknownResultIsSettledByATransactionOfItsOwnThatWins) {
  membership_.Join(kJoiner, 0, Boot(0));
  Beacon(0, {kFirst, kSecond, kJoiner});
  membership_.Poll(Boot(0));
  const GroupRegister forgotten = store_.Forget();
  membership_.OnBroken(kJoiner, Boot(1));
  store_.Show();  // the register has not changed, which says nothing
  membership_.Poll(Boot(1));
  EXPECT_TRUE(membership_.Counts(kJoiner.incarnation));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, Now()) << "it changes nothing";
  store_.Execute();
  store_.ExecuteLate(forgotten);
  EXPECT_FALSE(Now().IsInSync(kJoiner));
  membership_.Poll(Boot(2));
  EXPECT_FALSE(membership_.Counts(kJoiner.incarnation));
}

TEST_F(MembershipTest, AnUnknownResultThatWasAWinIsFoundByLosing) {
  membership_.Join(kJoiner, 0, Boot(0));
  Beacon(0, {kFirst, kSecond, kJoiner});
  membership_.Poll(Boot(0));
  const GroupRegister forgotten = store_.Forget();
  membership_.Poll(Boot(1));
  ASSERT_TRUE(store_.sent().has_value()) << "the same once more";
  store_.ExecuteLate(forgotten);
  store_.Execute();
  membership_.Poll(Boot(2));
  EXPECT_FALSE(membership_.deposed()) << "it lost to itself";
  EXPECT_TRUE(membership_.known().configuration.IsInSync(kJoiner));
  EXPECT_FALSE(store_.sent().has_value());
}

TEST_F(MembershipTest, IsDeposedOnceSomebodyElseIsPrimary) {
  store_.Change(Now().Under(kFirst));
  membership_.Poll(Boot(0));
  EXPECT_FALSE(membership_.deposed()) << "it has not seen it";
  store_.Show();
  membership_.Poll(Boot(0));
  EXPECT_TRUE(membership_.deposed());
  EXPECT_FALSE(membership_.MayCommit());
}

TEST_F(MembershipTest, CommitsNothingFromWhenASuccessorIsNamedUntilThatIsKnownToHaveFailed) {
  Beacon(0, {kFirst, kSecond});
  membership_.Name(kSecond, Boot(-1));
  EXPECT_TRUE(membership_.MayCommit());
  membership_.Poll(Boot(1));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, Now().Under(kSecond));
  EXPECT_EQ(store_.sent()->configuration.epoch, 4u);
  EXPECT_FALSE(store_.sent()->configuration.IsInSync(kFounder));
  EXPECT_FALSE(membership_.MayCommit());
  store_.Forget();
  membership_.OnBroken(kSecond, Boot(2));
  membership_.Poll(Boot(2));
  EXPECT_FALSE(membership_.MayCommit());
  ASSERT_TRUE(store_.sent().has_value()) << "it removes the successor, which is silent";
  store_.Execute();
  membership_.Poll(Boot(3));
  EXPECT_TRUE(membership_.MayCommit()) << "the transaction cannot win any more";
  EXPECT_FALSE(membership_.naming());
}

// The register takes no successor whose node has a newer process.
TEST_F(MembershipTest, GoesOnAfterARefusalOfItsSuccessorOnceThatIsSilent) {
  Beacon(0, {kFirst, kSecond});
  membership_.Name(kSecond, Boot(-1));
  membership_.Poll(Boot(1));
  store_.Refuse();
  membership_.Poll(Boot(2));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, Now().Under(kSecond)) << "it tries again";
  EXPECT_FALSE(membership_.MayCommit());
  store_.Refuse();
  membership_.OnBroken(kSecond, Boot(3));
  membership_.Poll(Boot(3));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, Now().Without(kSecond));
  store_.Execute();
  membership_.Poll(Boot(4));
  EXPECT_FALSE(membership_.naming());
  EXPECT_TRUE(membership_.MayCommit());
}

TEST_F(MembershipTest, NamesNobodyWhoIsNotInSync) {
  Beacon(0, {kFirst, kSecond});
  membership_.Name(kJoiner, Boot(-1));
  EXPECT_TRUE(membership_.naming());
  membership_.Poll(Boot(1));
  EXPECT_FALSE(store_.sent().has_value());
  EXPECT_FALSE(membership_.naming());
}

// Its key was taken out of the file. So nobody need be heard for that, and the lease goes on.
TEST_F(MembershipTest, RemovesOneThatIsExpelledAtOnceWhoeverElseIsHeard) {
  Beacon(0, {kFirst, kSecond});
  for (const GroupMember& member : {kFirst, kSecond}) membership_.Expel(member);
  membership_.Poll(Boot(1));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration.in_sync, std::vector{kFounder});
  EXPECT_TRUE(membership_.Counts(kFirst.incarnation)) << "until that is known to have won";
  store_.Execute();
  membership_.Poll(Boot(2));
  EXPECT_FALSE(membership_.Counts(kFirst.incarnation));
}

class AloneTest : public MembershipTest {
 protected:
  AloneTest() : MembershipTest({kFounder}) {}
};

TEST_F(AloneTest, AJoinerThatFallsSilentDoesNotHoldUpAPrimaryThatIsAloneOtherwise) {
  EXPECT_TRUE(lease_.Valid(Boot(0)));
  membership_.Join(kJoiner, 0, Boot(0));
  EXPECT_FALSE(lease_.Valid(Boot(0)));
  membership_.Poll(Boot(kL - 1));
  EXPECT_TRUE(membership_.Counts(kJoiner.incarnation));
  membership_.Poll(Boot(kL));
  EXPECT_FALSE(membership_.Counts(kJoiner.incarnation));
  EXPECT_TRUE(lease_.Valid(Boot(kL)));
  EXPECT_FALSE(store_.sent().has_value());
}

// The register is lost: whoever is silent cannot be removed, as nobody knows who leads.
TEST_F(MembershipTest, ALostRegisterIsAdoptedOnceAllHaveAnsweredSince) {
  Beacon(0, {kFirst, kSecond});
  store_.SetStanding(ConfigStore::Standing::kUnfounded);
  membership_.Poll(Boot(10));
  EXPECT_FALSE(membership_.MayAdopt()) << "they answered before the loss was seen";
  Beacon(11, {kFirst});
  membership_.Poll(Boot(12));
  EXPECT_FALSE(membership_.MayAdopt()) << "the other one may have taken over before";
  EXPECT_FALSE(store_.sent().has_value());
  Beacon(13, {kFirst, kSecond});
  EXPECT_TRUE(membership_.MayAdopt());
  membership_.Poll(Boot(14));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_TRUE(store_.adopts());
  EXPECT_EQ(store_.sent()->configuration, membership_.known().configuration);
  store_.Execute();
  store_.SetStanding(ConfigStore::Standing::kThere);
  membership_.Poll(Boot(15));
  EXPECT_FALSE(membership_.deposed());
  EXPECT_FALSE(membership_.MayAdopt());
  EXPECT_FALSE(store_.sent().has_value());
}

TEST_F(MembershipTest, NothingIsChangedWhileTheRegisterIsLost) {
  Beacon(0, {kFirst, kSecond});
  store_.SetStanding(ConfigStore::Standing::kLost);
  membership_.Poll(Boot(1));
  Beacon(2, {kFirst, kSecond});
  Beacon(kL, {kFirst});
  membership_.Poll(Boot(kL));
  EXPECT_FALSE(store_.sent().has_value()) << "the silent one stays";
  EXPECT_TRUE(membership_.Counts(kSecond.incarnation));
}

// The successor may have won, and lead.
TEST_F(MembershipTest, WhoMayHaveNamedASuccessorAdoptsNothing) {
  Beacon(0, {kFirst, kSecond});
  membership_.Name(kFirst, Boot(-1));
  membership_.Poll(Boot(1));
  ASSERT_TRUE(store_.sent().has_value());
  store_.Forget();
  store_.SetStanding(ConfigStore::Standing::kUnfounded);
  membership_.Poll(Boot(2));
  Beacon(3, {kFirst, kSecond});
  membership_.Poll(Boot(4));
  EXPECT_FALSE(membership_.MayAdopt());
  EXPECT_FALSE(store_.adopts());
}

TEST_F(MembershipTest, ARegisterThatAMemberDoubtsIsWrittenAgain) {
  Beacon(0, {kFirst, kSecond});
  store_.SetStanding(ConfigStore::Standing::kDoubted);
  membership_.Poll(Boot(1));
  ASSERT_TRUE(store_.sent().has_value());
  EXPECT_EQ(store_.sent()->configuration, Now());
  EXPECT_FALSE(store_.adopts());
}

}  // namespace
}  // namespace gannet
