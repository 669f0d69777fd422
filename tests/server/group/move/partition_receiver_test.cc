// A receiver of partitions, between a giver and a register that the test sets.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "tests/server/group/move/receiver_fixture.h"

namespace gannet {
namespace {

TEST_F(PartitionReceiverTest, BringsAPartition) {
  store_.writes().Put(Key(), "of an earlier try", {}, {}, At(1'000));
  Publish();
  map_.Wish(kPartition);
  map_.Wish(6, "g3");
  ASSERT_TRUE(Until([&] { return giver_.made == 1; }));
  EXPECT_EQ(store_.Get(Key(), 1'000), std::nullopt) << "it begins empty";
  EXPECT_TRUE(receiver_->taking().test(kPartition));
  EXPECT_EQ(receiver_->taking().count(), 1u);
  EXPECT_TRUE(receiver_->intake()->Wants(Key()));
  EXPECT_EQ(Take(Key(1), 20), ReplyStatus::kOk);
  EXPECT_FALSE(Until([&] { return giver_.told_closing > 0; }, 1)) << "the walk goes on";
  giver_.copied = true;
  giver_.behind = 1 << 20;
  ASSERT_TRUE(Until([&] { return giver_.told_closing > 0; }));
  const BootTime told = now_;
  EXPECT_FALSE(Until([&] { return map_.closed(kPartition); }, 1)) << "much is to be taken";
  giver_.behind = 1 << 10;
  ASSERT_TRUE(Until([&] { return map_.closed(kPartition); }));
  EXPECT_GE(now_ - told, FakeSource::kLeaseNs) << "leases were long";
  EXPECT_EQ(map_.owner(kPartition), "g1");
  End();
  ASSERT_TRUE(Until([&] { return Has(); }));
  EXPECT_EQ(map_.sent_->group, map_.group_);
  EXPECT_EQ(store_.Get(Key(1), 1'000), "value");
  ASSERT_TRUE(Until([&] { return !map_.wishes_.contains(kPartition); })) << "the move has ended";
  EXPECT_TRUE(map_.wishes_.contains(6));
  Turn();
  EXPECT_TRUE(receiver_->taking().none());
  EXPECT_EQ(giver_.alive, 0);
  MoveProgress progress;
  receiver_->Tell(&progress);
  EXPECT_EQ(progress.moved, 1u);
  EXPECT_EQ(progress.step, "");
}

// At the pace of the walk so far, the giver's long leases are over when the walk is.
TEST_F(PartitionReceiverTest, LeasesBecomeShortWhileTheWalkEnds) {
  map_.Wish(kPartition);
  ASSERT_TRUE(Until([&] { return giver_.made == 1; }));
  constexpr int kTurns = 10'000;
  int told_after = 0;
  for (int i = 1; i < kTurns; ++i) {
    giver_.walked = static_cast<double>(i) / kTurns;
    Turn();
    if (told_after == 0 && giver_.told_closing > 0) told_after = i;
  }
  EXPECT_NEAR((kTurns - told_after) * kNsPerMs, FakeSource::kLeaseNs, 5 * kNsPerMs);
  giver_.copied = true;
  EXPECT_FALSE(map_.closed(kPartition));
  for (int i = 0; i < 10; ++i) Turn();
  EXPECT_TRUE(map_.closed(kPartition)) << "it need not wait any more";
}

// A short walk is over before the leases are.
TEST_F(PartitionReceiverTest, ClosesOnceLeasesAreShort) {
  map_.Wish(kPartition);
  ASSERT_TRUE(Until([&] { return giver_.made == 1; }));
  giver_.walked = 0.5;
  Turn();
  ASSERT_EQ(giver_.told_closing, 1);
  const BootTime told = now_;
  giver_.copied = true;
  ASSERT_TRUE(Until([&] { return map_.closed(kPartition); }));
  EXPECT_GE(now_ - told, FakeSource::kLeaseNs);
  EXPECT_LE(now_ - told, FakeSource::kLeaseNs + 5 * kNsPerMs);
}

TEST_F(PartitionReceiverTest, AsksForThePartitionOnlyWhenAllIsCommittedInItsOwnGroup) {
  map_.Wish(kPartition);
  CloseAll();
  commits_ = false;
  EXPECT_EQ(Take(Key(), 20), ReplyStatus::kOk);
  End();
  EXPECT_FALSE(Until([&] { return Has(); }, 1));
  commits_ = true;
  EXPECT_TRUE(Until([&] { return Has(); }));
}

TEST_F(PartitionReceiverTest, AsksForThePartitionOnlyWhenItHasAllOfTheStream) {
  map_.Wish(kPartition);
  CloseAll();
  End(50);
  giver_.taken = 49;
  EXPECT_FALSE(Until([&] { return Has(); }, 1));
  giver_.taken = 50;
  EXPECT_TRUE(Until([&] { return Has(); }));
}

// The giver deletes what it has when the partition has another owner, and it may know that first.
TEST_F(PartitionReceiverTest, TakesNothingBehindTheEnd) {
  map_.Wish(kPartition);
  CloseAll();
  EXPECT_EQ(giver_.stop_at, std::nullopt);
  End(50);
  giver_.taken = 49;
  for (int i = 0; i < 100; ++i) Turn();
  EXPECT_EQ(giver_.stop_at, 50u);
}

// The giver told that of what was closed before.
TEST_F(PartitionReceiverTest, AnOldEndDoesNotCount) {
  map_.Wish(kPartition);
  CloseAll();
  End();
  --giver_.ended->revision;
  EXPECT_FALSE(Until([&] { return Has(); }, 1));
  ++giver_.ended->revision;
  EXPECT_TRUE(Until([&] { return Has(); }));
}

TEST_F(PartitionReceiverTest, VersionsThatItsGroupGivesAreAboveThoseOfTheGiver) {
  map_.Wish(kPartition);
  CloseAll();
  stream_.refuses = true;
  End(50, 9'000);
  EXPECT_FALSE(Until([&] { return Has(); }, 1)) << "its backups do not know of the versions";
  stream_.refuses = false;
  ASSERT_TRUE(Until([&] { return Has(); }));
  EXPECT_EQ(stream_.last_version, 9'000u);
  EXPECT_EQ(stream_.last_kind, Change::Kind::kDelete);
  EXPECT_GT(store_->NextVersion(), 9'000u);
}

TEST_F(PartitionReceiverTest, ATransactionOfUnknownResultIsSentAgain) {
  map_.Wish(kPartition);
  map_.fate_ = FakeMap::Fate::kLostAndUnknown;
  CloseAll();
  EXPECT_EQ(map_.txns_, 2);
  EXPECT_EQ(Take(Key(), 20), ReplyStatus::kOk);
  map_.fate_ = FakeMap::Fate::kLostAndUnknown;
  End();
  ASSERT_TRUE(Until([&] { return map_.txns_ == 3; }));
  const std::optional<MapTxn> give = map_.sent_;
  // It may be executed yet. So nothing is dropped, and nothing else is asked for, whatever happens
  // to the link and to the wish.
  giver_.status = absl::UnavailableError("broken");
  map_.Forget(kPartition);
  ASSERT_TRUE(Until([&] { return Has(); }));
  EXPECT_EQ(map_.txns_, 4);
  EXPECT_EQ(map_.sent_->map_revision, give->map_revision);
  EXPECT_EQ(map_.sent_->wanted, give->wanted);
  EXPECT_EQ(giver_.made, 1);
  EXPECT_EQ(store_.Get(Key(), 1'000), "value");
}

TEST_F(PartitionReceiverTest, ATransactionThatWonAlthoughItsResultIsUnknownIsNotSentAgain) {
  map_.Wish(kPartition);
  map_.fate_ = FakeMap::Fate::kExecutedAndUnknown;
  CloseAll();
  map_.fate_ = FakeMap::Fate::kExecutedAndUnknown;
  End();
  ASSERT_TRUE(Until([&] { return Has(); }));
  for (int i = 0; i < 100; ++i) Turn();
  EXPECT_EQ(map_.txns_, 3) << "the wish is ended, too";
  EXPECT_TRUE(receiver_->taking().none());
}

TEST_F(PartitionReceiverTest, AsksAgainIfItsGroupsRegisterHasChanged) {
  map_.Wish(kPartition);
  CloseAll();
  End();
  // Somebody else may be primary now: it knows an older register.
  const uint64_t known = map_.group_++;
  for (int i = 0; i < 100; ++i) {
    now_ = now_ + kNsPerMs;
    receiver_->Poll(now_, {.revision = known, .configuration = {}});
  }
  EXPECT_FALSE(Has());
  EXPECT_GT(map_.txns_, 1);
  EXPECT_TRUE(Until([&] { return Has(); }));
}

TEST_F(PartitionReceiverTest, BeginsAgainWithAnEmptyPartitionIfTheLinkBreaks) {
  map_.Wish(kPartition);
  ASSERT_TRUE(Until([&] { return giver_.made == 1; }));
  EXPECT_EQ(Take(Key(), 20), ReplyStatus::kOk);
  giver_.status = absl::UnavailableError("broken");
  Turn();
  giver_.status = absl::OkStatus();
  ASSERT_TRUE(Until([&] { return giver_.made == 2; }));
  EXPECT_EQ(store_.Get(Key(), 1'000), std::nullopt);
  EXPECT_EQ(giver_.alive, 1);
  MoveProgress progress;
  receiver_->Tell(&progress);
  EXPECT_EQ(progress.trouble, "broken");
  CloseAll();
  // Clients need not wait until all is copied again.
  giver_.status = absl::UnavailableError("broken again");
  ASSERT_TRUE(Until([&] { return !map_.closed(kPartition); }));
  EXPECT_EQ(map_.owner(kPartition), "g1");
  giver_ = {.made = giver_.made, .alive = giver_.alive};
  ASSERT_TRUE(Until([&] { return giver_.made == 3; }));
  EXPECT_FALSE(map_.closed(kPartition));
  CloseAll();
  End();
  EXPECT_TRUE(Until([&] { return Has(); }));
}

// What it has is whole, whatever becomes of the giver.
TEST_F(PartitionReceiverTest, GivesWhatItHasAllOfAlthoughTheLinkBreaks) {
  map_.Wish(kPartition);
  CloseAll();
  commits_ = false;
  EXPECT_EQ(Take(Key(), 20), ReplyStatus::kOk);
  End();
  EXPECT_FALSE(Until([&] { return Has(); }, 1));
  giver_.status = absl::UnavailableError("broken");
  for (int i = 0; i < 100; ++i) Turn();
  EXPECT_TRUE(map_.closed(kPartition));
  commits_ = true;
  EXPECT_TRUE(Until([&] { return Has(); }));
  EXPECT_EQ(giver_.made, 1);
  EXPECT_EQ(store_.Get(Key(), 1'000), "value");
}

TEST_F(PartitionReceiverTest, OpensWhatTheGiverDoesNotEnd) {
  map_.Wish(kPartition);
  CloseAll();
  EXPECT_TRUE(Until([&] { return !map_.closed(kPartition); }, 10));
  EXPECT_EQ(map_.owner(kPartition), "g1");
  giver_.copied = false;
  EXPECT_TRUE(Until([&] { return giver_.made == 2; })) << "it begins again";
}

TEST_F(PartitionReceiverTest, OneWalkIsForAllThatComesFromAGiver) {
  for (uint16_t i = 0; i < 300; ++i) map_.Wish(i);
  ASSERT_TRUE(Until([&] { return giver_.made == 1; }));
  EXPECT_EQ(receiver_->taking().count(), 300u);
  giver_.copied = true;
  size_t closed_max = 0;
  ASSERT_TRUE(Until(
      [&] {
        closed_max = std::max(closed_max, map_.map_.config.closed.size());
        // What was ended before does not count for what is closed now.
        if (map_.map_.config.closed.empty()) return map_.wishes_.empty();
        if (giver_.ended && giver_.ended->revision == map_.map_.config.revision) return false;
        End(giver_.taken + 10);
        return false;
      },
      60));
  EXPECT_EQ(closed_max, 300u) << "clients wait once";
  EXPECT_EQ(giver_.made, 1);
  for (uint16_t i = 0; i < 300; ++i) ASSERT_EQ(map_.owner(i), "g2") << i;
  EXPECT_EQ(map_.txns_, 2 + 3) << "no more than 100 wishes are ended by one";
}

TEST_F(PartitionReceiverTest, TheNextPrimaryOpensWhatIsClosedAndBeginsAgain) {
  map_.Wish(kPartition);
  CloseAll();
  EXPECT_EQ(Take(Key(), 20), ReplyStatus::kOk);
  giver_.copied = false;
  Start();
  ASSERT_TRUE(Until([&] { return !map_.closed(kPartition); }, 1));
  EXPECT_EQ(map_.owner(kPartition), "g1");
  ASSERT_TRUE(Until([&] { return giver_.made == 2; }));
  EXPECT_EQ(store_.Get(Key(), 1'000), std::nullopt) << "it begins empty";
  EXPECT_TRUE(receiver_->taking().test(kPartition));
  CloseAll();
  End();
  ASSERT_TRUE(Until([&] { return Has(); }));
}

// An operator wishes many by several transactions.
TEST_F(PartitionReceiverTest, WaitsForMoreWishes) {
  map_.Wish(kPartition);
  for (int i = 0; i < 200; ++i) Turn();
  map_.Wish(6);
  for (int i = 0; i < 200; ++i) Turn();
  EXPECT_EQ(giver_.made, 0);
  ASSERT_TRUE(Until([&] { return giver_.made == 1; }, 1));
  EXPECT_EQ(receiver_->taking().count(), 2u);
}

// All of an operator's wishes are there by then.
TEST_F(PartitionReceiverTest, DoesNotWaitForMoreWishesBeforeTheNextGiver) {
  map_.map_.config.groups = {"g1", "g2", "g3"};
  map_.map_.config.partitions[6] = 2;
  map_.Wish(kPartition);
  map_.Wish(6);
  CloseAll();
  End();
  ASSERT_TRUE(Until([&] { return Has(); }));
  for (int i = 0; i < 20; ++i) Turn();
  EXPECT_EQ(giver_.made, 2);
  EXPECT_EQ(receiver_->taking().count(), 1u);
  EXPECT_TRUE(receiver_->taking().test(6));
}

TEST_F(PartitionReceiverTest, AWishThatIsStoppedEnds) {
  map_.Wish(kPartition);
  ASSERT_TRUE(Until([&] { return giver_.made == 1; }));
  map_.Wish(kPartition, "g2", /*stop=*/true);
  ASSERT_TRUE(Until([&] { return map_.wishes_.empty(); }));
  Turn();
  EXPECT_TRUE(receiver_->taking().none());
  EXPECT_FALSE(map_.closed(kPartition));
  EXPECT_EQ(map_.owner(kPartition), "g1");
}

TEST_F(PartitionReceiverTest, APartitionWhoseMoveIsStoppedOpensAgain) {
  map_.Wish(kPartition);
  map_.Wish(6);
  CloseAll();
  map_.Wish(kPartition, "g2", /*stop=*/true);
  ASSERT_TRUE(Until([&] { return !map_.closed(kPartition); }));
  EXPECT_EQ(map_.owner(kPartition), "g1");
  EXPECT_FALSE(map_.wishes_.contains(kPartition));
  EXPECT_TRUE(map_.closed(6)) << "the other one goes on";
  End();
  ASSERT_TRUE(Until([&] { return map_.owner(6) == "g2"; }));
  EXPECT_EQ(map_.owner(kPartition), "g1");
}

TEST_F(PartitionReceiverTest, APartitionWhoseWishIsGoneOpensAgain) {
  map_.Wish(kPartition);
  CloseAll();
  map_.Forget(kPartition);
  ASSERT_TRUE(Until([&] { return !map_.closed(kPartition); }));
  EXPECT_EQ(map_.owner(kPartition), "g1");
}

// The transaction that gives was sent, and is executed after the operator has changed his mind.
TEST_F(PartitionReceiverTest, AStopAndAGiftAreNotBothExecuted) {
  map_.Wish(kPartition);
  CloseAll();
  map_.fate_ = FakeMap::Fate::kLostAndUnknown;
  End();
  ASSERT_TRUE(Until([&] { return map_.txns_ == 2; }));
  map_.Wish(kPartition, "g2", /*stop=*/true);
  ASSERT_TRUE(Until([&] { return map_.wishes_.empty(); }));
  EXPECT_FALSE(map_.closed(kPartition));
  EXPECT_EQ(map_.owner(kPartition), "g1");
}

TEST_F(PartitionReceiverTest, WithoutRoomItTriesAgainMuchLater) {
  map_.Wish(kPartition);
  ASSERT_TRUE(Until([&] { return giver_.made == 1; }));
  giver_.status = absl::ResourceExhaustedError("no room");
  Turn();
  giver_.status = absl::OkStatus();
  EXPECT_FALSE(Until([&] { return giver_.made == 2; }, 4));
  EXPECT_TRUE(Until([&] { return giver_.made == 2; }, 2));
}

TEST_F(PartitionReceiverTest, AWishForWhatItHasEnds) {
  auto closed = ClosePartitions(map_.map_.config, "g1", std::vector<uint16_t>{kPartition});
  auto given = GivePartitions(*closed, "g2", std::vector<uint16_t>{kPartition}, closed->revision);
  map_.Change(*given);
  map_.Wish(kPartition);
  EXPECT_TRUE(Until([&] { return map_.wishes_.empty(); }));
  EXPECT_TRUE(Has());
  EXPECT_EQ(giver_.made, 0);
}

}  // namespace
}  // namespace gannet
