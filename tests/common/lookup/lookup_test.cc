#include "common/lookup/lookup.h"

#include <gtest/gtest.h>

#include <random>

#include "softverbs/tests/support/test_seed.h"
#include "tests/common/lookup/hand_made_region.h"

namespace gannet {
namespace {

using Step = Lookup::Step;
constexpr std::string_view kKey = "the key";

class LookupTest : public ::testing::Test {
 protected:
  uint64_t home() const { return region_.HomeOf(kKey); }
  uint64_t stash() const { return region_.StashOf(kKey); }
  Slot AddHere(std::string_view value = "value") { return region_.AddItem(kKey, value); }
  // Adds another key's item whose slot has kKey's tag.
  Slot AddCollision() { return region_.AddItem("another key", "x", kKey); }
  void SetStashTag() { region_.SetStashTags(home(), region_.HashOf(kKey).StashTag()); }

  HandMadeRegion region_;
  LookupRun run_{region_, kKey};
};

TEST_F(LookupTest, FindsAnItemOfItsHomeBucketInTwoReads) {
  const Slot slot = AddHere();
  region_.SetSlot(home(), 3, slot);
  ASSERT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.lookup().item().value, "value");
  EXPECT_EQ(run_.lookup().item().header.flags, 7u);
  EXPECT_EQ(run_.lookup().slot(), slot);
  EXPECT_FALSE(run_.lookup().from_cached());
  ASSERT_EQ(run_.reads.size(), 2u);
  EXPECT_EQ(run_.reads[0].bytes, kWindowBytes);
  EXPECT_EQ(run_.reads[1].bytes, slot.read_bytes());
}

TEST_F(LookupTest, FindsAnItemOfTheNextBucket) {
  region_.SetSlot(home() + 1, 13, AddHere());
  EXPECT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.reads.size(), 2u);
}

TEST_F(LookupTest, FindsTheCachedLocationInOneRead) {
  const Slot slot = AddHere();
  EXPECT_EQ(run_.Run(slot), Step::kHit);
  EXPECT_TRUE(run_.lookup().from_cached());
  EXPECT_EQ(run_.reads.size(), 1u);
}

TEST_F(LookupTest, AHitNeedsNoChecksumOfTheWindow) {
  region_.SetSlot(home(), 0, AddHere());
  region_.bucket(home()).checksum ^= 1;
  EXPECT_EQ(run_.Run(), Step::kHit);
}

TEST_F(LookupTest, GoesOnBehindATagCollision) {
  region_.SetSlot(home(), 0, AddCollision());
  region_.SetSlot(home(), 1, AddHere());
  EXPECT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.reads.size(), 3u);
}

TEST_F(LookupTest, ADeadCachedItemSendsItToTheWindow) {
  const Slot stale = AddHere("old");
  region_.Kill(stale);
  region_.SetSlot(home(), 0, AddHere("new"));
  ASSERT_EQ(run_.Run(stale), Step::kHit);
  EXPECT_EQ(run_.lookup().item().value, "new");
  EXPECT_FALSE(run_.lookup().from_cached());
  EXPECT_EQ(run_.reads.size(), 3u);
}

TEST_F(LookupTest, ACachedLocationThatHoldsAnotherKeySendsItToTheWindow) {
  const Slot stale = AddCollision();
  EXPECT_EQ(run_.Run(stale), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 2u);
}

TEST_F(LookupTest, ACachedLocationOutsideTheRegionIsNotRead) {
  const Slot outside = Slot::Of(region_.HashOf(kKey).Tag(), 5, HandMadeRegion::kBytes - 16);
  EXPECT_EQ(run_.Run(outside), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 1u);
}

// Rule W1.
TEST_F(LookupTest, BelievesAMissInOneRead) {
  EXPECT_EQ(run_.Run(), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 1u);
}

TEST_F(LookupTest, BelievesNoMissWhenTheHomeChecksumIsWrong) {
  region_.bucket(home()).checksum ^= 1ull << 40;
  run_.before_read = [&](int n, const auto&) {
    if (n == 2) region_.Seal(home());
  };
  EXPECT_EQ(run_.Run(), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 3u);
}

TEST_F(LookupTest, BelievesNoMissWhenTheNextBucketsChecksumIsWrong) {
  region_.bucket(home() + 1).slots[4] = 99;  // stored, not yet published
  run_.before_read = [&](int n, const auto&) {
    if (n == 1) region_.Seal(home() + 1);
  };
  EXPECT_EQ(run_.Run(), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 2u);
}

TEST_F(LookupTest, AllZeroesIsNotABucket) {
  std::memset(region_.at(region_.view().index.BucketOffset(home())), 0, kWindowBytes);
  EXPECT_EQ(run_.Run(), Step::kAskServer);
  EXPECT_EQ(run_.reads.size(), 1u + Lookup::kRetriesMax);
}

TEST_F(LookupTest, ABucketOfAnotherServerRunIsNotBelieved) {
  region_.view().incarnation += 1;
  EXPECT_EQ(run_.Run(), Step::kAskServer);
}

TEST_F(LookupTest, BelievesNoMissBetweenTheTwoSidesOfAMove) {
  Bucket& b = region_.bucket(home());
  b.meta = BucketMeta(b.meta).WithMovesNextBumped().word();
  region_.Publish(home());
  run_.before_read = [&](int n, const auto&) {
    if (n != 1) return;
    Bucket& next = region_.bucket(home() + 1);
    next.meta = BucketMeta(next.meta).WithMovesPrevBumped().word();
    next.slots[0] = AddHere().word();
    region_.Publish(home() + 1);
  };
  EXPECT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.reads.size(), 3u);
}

TEST_F(LookupTest, BelievesNoMissOfAReadThatTookAMillisecond) {
  run_.before_read = [&](int n, const auto&) {
    if (n < 3) run_.clock.now_ns += Lookup::kMissReadNsMax;
  };
  EXPECT_EQ(run_.Run(), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 4u);
}

TEST_F(LookupTest, AsksTheServerWhenEveryReadIsSlow) {
  run_.before_read = [&](int, const auto&) { run_.clock.now_ns += 2 * Lookup::kMissReadNsMax; };
  EXPECT_EQ(run_.Run(), Step::kAskServer);
}

// Rule W2: the home's stash tags.
TEST_F(LookupTest, FindsAnItemOfTheStashInThreeReads) {
  region_.SetSlot(stash(), 2, AddHere());
  SetStashTag();
  EXPECT_EQ(run_.Run(), Step::kHit);
  ASSERT_EQ(run_.reads.size(), 3u);
  EXPECT_EQ(run_.reads[1].offset, region_.view().index.BucketOffset(stash()));
}

TEST_F(LookupTest, LooksIntoTheStashOnlyForItsOwnTag) {
  region_.SetStashTags(home(), 0x7f & ~region_.HashOf(kKey).StashTag());
  EXPECT_EQ(run_.Run(), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 1u);
}

TEST_F(LookupTest, BelievesNoMissOfAStashWhoseChecksumIsWrong) {
  SetStashTag();
  region_.bucket(stash() + 1).checksum ^= 1;
  EXPECT_EQ(run_.Run(), Step::kAskServer);
}

// Rule W3.
TEST_F(LookupTest, ConfirmsAMissAfterATagMatched) {
  region_.SetSlot(home(), 0, AddCollision());
  EXPECT_EQ(run_.Run(), Step::kMiss);
  ASSERT_EQ(run_.reads.size(), 3u);
  EXPECT_EQ(run_.reads[2].offset, run_.reads[0].offset);
}

TEST_F(LookupTest, ConfirmsAMissAfterALookIntoTheStash) {
  SetStashTag();
  EXPECT_EQ(run_.Run(), Step::kMiss);
  ASSERT_EQ(run_.reads.size(), 3u);
  EXPECT_EQ(run_.reads[2].offset, run_.reads[0].offset);
}

// The key's item in the stash may have been replaced meanwhile, and its old block reused. The home
// window does not show that.
TEST_F(LookupTest, BelievesNoMissAfterATagMatchedInTheStash) {
  SetStashTag();
  region_.SetSlot(stash(), 0, AddCollision());
  EXPECT_EQ(run_.Run(), Step::kAskServer);
  EXPECT_EQ(run_.reads.size(), 3u);
}

TEST_F(LookupTest, FindsAnItemOfTheStashBehindATagCollision) {
  SetStashTag();
  region_.SetSlot(stash(), 0, AddCollision());
  region_.SetSlot(stash(), 1, AddHere());
  EXPECT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.reads.size(), 4u);
}

TEST_F(LookupTest, AVersionThatMovedMeansThereWasAChange) {
  region_.SetSlot(home(), 0, AddCollision());
  run_.before_read = [&](int n, const auto&) {
    if (n == 2) region_.Publish(home() + 1);  // same slots, next version
  };
  EXPECT_EQ(run_.Run(), Step::kMiss);
  // window, item, changed window, item, identical window
  EXPECT_EQ(run_.reads.size(), 5u);
}

TEST_F(LookupTest, FindsWhatTheSecondReadOfTheWindowShows) {
  region_.SetSlot(home(), 0, AddCollision());
  run_.before_read = [&](int n, const auto&) {
    if (n == 2) region_.SetSlot(home(), 0, AddHere());
  };
  EXPECT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.reads.size(), 4u);
}

TEST_F(LookupTest, AnIdenticalWindowTooLateProvesNothing) {
  region_.SetSlot(home(), 0, AddCollision());
  run_.before_read = [&](int n, const auto&) {
    if (n == 1) run_.clock.now_ns += Lookup::kConfirmNsMax;  // between, not during a window's READ
  };
  EXPECT_EQ(run_.Run(), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 5u);
}

// A dead or wrong item is never a miss.
TEST_F(LookupTest, ADeadItemIsNoMiss) {
  const Slot slot = AddHere();
  region_.Kill(slot);
  region_.SetSlot(home(), 0, slot);
  run_.before_read = [&](int n, const auto&) {
    if (n == 4) region_.SetSlot(home(), 0, Slot());
  };
  EXPECT_EQ(run_.Run(), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 5u);
}

TEST_F(LookupTest, AsksTheServerAboutAnItemThatStaysTorn) {
  const Slot slot = AddHere();
  *region_.at(slot.offset() + 40) ^= std::byte{1};
  region_.SetSlot(home(), 0, slot);
  EXPECT_EQ(run_.Run(), Step::kAskServer);
  EXPECT_EQ(run_.reads.size(), 2u * (1 + Lookup::kRetriesMax));
}

TEST_F(LookupTest, AHitBehindADeadItemIsAHit) {
  const Slot dead = AddHere("old");
  region_.Kill(dead);
  region_.SetSlot(home(), 0, dead);
  region_.SetSlot(home() + 1, 0, AddHere("new"));
  ASSERT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.lookup().item().value, "new");
}

// The caller judges the expiry.
TEST_F(LookupTest, FindsAnItemWhateverItsExpiry) {
  region_.SetSlot(home(), 0, region_.AddItem(kKey, "v", kKey, 1));
  ASSERT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.lookup().item().header.expiry().ms(), 1u);
}

// Hostile slots.
TEST_F(LookupTest, ReadsNothingForAClassThatDoesNotExist) {
  const uint32_t tag = region_.HashOf(kKey).Tag();
  for (uint32_t size_class : {0u, kSizeClassMax + 1, kSizeClassMarker - 1}) {
    region_.SetSlot(home(), 0, Slot::Of(tag, size_class, HandMadeRegion::kHeap));
    LookupRun run(region_, kKey);
    EXPECT_EQ(run.Run(), Step::kAskServer);
    for (const auto& read : run.reads) EXPECT_EQ(read.target == Lookup::Target::kItem, false);
  }
}

// Nothing is READ at a stub's place, and the window not again.
TEST_F(LookupTest, AsksTheServerAtOnceForAStubWithTheTag) {
  const uint32_t tag = region_.HashOf(kKey).Tag();
  region_.SetSlot(home(), 0, Slot::Of(tag, kSizeClassMarker, HandMadeRegion::kHeap));
  EXPECT_EQ(run_.Run(), Step::kAskServer);
  EXPECT_EQ(run_.reads.size(), 1u);
}

TEST_F(LookupTest, AsksTheServerAtOnceForAStubInTheStash) {
  const uint32_t tag = region_.HashOf(kKey).Tag();
  SetStashTag();
  region_.SetSlot(stash(), 0, Slot::Of(tag, kSizeClassMarker, HandMadeRegion::kHeap));
  EXPECT_EQ(run_.Run(), Step::kAskServer);
  EXPECT_EQ(run_.reads.size(), 2u);
}

// It may be another key's.
TEST_F(LookupTest, FindsAnItemBesideAStubWithItsTag) {
  const uint32_t tag = region_.HashOf(kKey).Tag();
  region_.SetSlot(home(), 0, Slot::Of(tag, kSizeClassMarker, HandMadeRegion::kHeap));
  region_.SetSlot(home() + 1, 0, AddHere());
  EXPECT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.reads.size(), 2u);
}

// The first reply of a stub's key has no slot, but another server's may have one.
TEST_F(LookupTest, ReadsNothingAtACachedStub) {
  EXPECT_EQ(run_.Run(Slot::Of(1, kSizeClassMarker, HandMadeRegion::kHeap)), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 1u);
}

// An index that grows: the key's home was migrated to the next one.
class GrowingLookupTest : public LookupTest {
 protected:
  GrowingLookupTest() {
    region_.MakeNext();
    region_.view().next = HandMadeRegion::kNext;
    region_.SetMigrated(home());
  }
  uint64_t home_in_next() const { return region_.HomeInNext(kKey); }
};

TEST_F(GrowingLookupTest, FindsTheKeyOfAMigratedHomeWithOneReadMore) {
  region_.SetSlotInNext(home_in_next() + 1, 5, AddHere());
  EXPECT_EQ(run_.Run(), Step::kHit);
  ASSERT_EQ(run_.reads.size(), 3u);
  EXPECT_EQ(run_.reads[1].offset, HandMadeRegion::kNext.BucketOffset(home_in_next()));
}

TEST_F(GrowingLookupTest, DoesNotFollowSlotsThatTheHomeLeftBehind) {
  region_.SetSlot(home(), 0, AddHere("old"));
  region_.SetSlotInNext(home_in_next(), 0, AddHere("new"));
  ASSERT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.lookup().item().value, "new");
  EXPECT_EQ(run_.reads.size(), 3u);
}

TEST_F(GrowingLookupTest, BelievesAMissInTheNextIndex) {
  EXPECT_EQ(run_.Run(), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 2u);
}

TEST_F(GrowingLookupTest, BelievesNoFlagWhoseChecksumIsWrong) {
  region_.bucket(home()).checksum ^= 1;
  run_.before_read = [&](int n, const auto&) {
    if (n == 1) region_.Seal(home());
  };
  EXPECT_EQ(run_.Run(), Step::kMiss);
  EXPECT_EQ(run_.reads.size(), 3u);
}

TEST_F(GrowingLookupTest, AsksTheServerIfItDoesNotKnowTheNextIndex) {
  region_.view().next = {};
  EXPECT_EQ(run_.Run(), Step::kAskServer);
  EXPECT_TRUE(run_.lookup().next_index_unknown());
  EXPECT_EQ(run_.reads.size(), 1u);
}

TEST_F(GrowingLookupTest, AsksTheServerIfTheHomeLeftTheNextIndexToo) {
  Bucket& next = region_.bucket(HandMadeRegion::kNext, home_in_next());
  next.meta = BucketMeta(next.meta).WithMigrated().word();
  region_.Seal(HandMadeRegion::kNext, home_in_next());
  EXPECT_EQ(run_.Run(), Step::kAskServer);
  EXPECT_TRUE(run_.lookup().next_index_unknown());
  EXPECT_EQ(run_.reads.size(), 2u);
}

TEST_F(GrowingLookupTest, GoesOnInTheNextIndexIfTheViewBeginsThereMeanwhile) {
  region_.SetSlotInNext(home_in_next(), 0, AddHere());
  run_.before_read = [&](int n, const auto&) {
    if (n != 1) return;
    region_.view().index = HandMadeRegion::kNext;
    region_.view().next = {};
  };
  EXPECT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.reads.size(), 3u);
}

// The window that comes back is of an index where the view does not begin any more.
TEST_F(GrowingLookupTest, BelievesNoMissOfAnIndexThatTheViewLeftMeanwhile) {
  region_.bucket(home()).meta = 0;  // not migrated, and empty
  region_.Seal(home());
  region_.SetSlotInNext(home_in_next(), 0, AddHere());
  run_.before_read = [&](int n, const auto&) {
    if (n != 0) return;
    region_.view().index = HandMadeRegion::kNext;
    region_.view().next = {};
  };
  EXPECT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.reads.size(), 3u);
}

TEST_F(LookupTest, NeverLeavesTheRegionWhateverTheWindowSays) {
  std::mt19937_64 random(test_support::TestSeed());
  const uint32_t tag = region_.HashOf(kKey).Tag();
  int item_reads = 0;
  for (int round = 0; round < 2000; ++round) {
    for (uint64_t b : {home(), home() + 1, stash(), stash() + 1}) {
      for (uint64_t& slot : region_.bucket(b).slots) {
        const uint64_t offset = random() % (2 * HandMadeRegion::kBytes) / 16 * 16;
        slot = random() % 3 == 0 ? Slot::Of(tag, random() % 128, offset).word() : random();
      }
      region_.bucket(b).meta = random() & ~(1ull << 63);
      if (random() % 2) region_.Seal(b);
    }
    LookupRun run(region_, kKey);
    const Step step = run.Run(Slot(random()));
    EXPECT_FALSE(run.left_region);
    EXPECT_NE(step, Step::kHit);
    for (const auto& read : run.reads) item_reads += read.target == Lookup::Target::kItem;
  }
  EXPECT_GT(item_reads, 0);
}

}  // namespace
}  // namespace gannet
