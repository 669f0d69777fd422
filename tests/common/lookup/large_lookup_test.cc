#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "tests/common/lookup/hand_made_region.h"

namespace gannet {
namespace {

using Step = Lookup::Step;

constexpr const char* kLargeKey = "some key";
const std::string kOld(10'000, 'o'), kNew(10'000, 'n');

class LargeLookupTest : public testing::Test {
 protected:
  uint64_t home() const { return region_.HomeOf(kLargeKey); }
  size_t item_reads() const {
    return std::ranges::count(run_.reads, Lookup::Target::kItem, &Lookup::ReadPlan::target);
  }

  HandMadeRegion region_;
  LookupRun run_{region_, kLargeKey};
};

TEST_F(LargeLookupTest, ReadsTheHeadThenTheValueThenTheCommitWordAgain) {
  region_.SetSlot(home(), 0, region_.AddItem(kLargeKey, kOld));
  ASSERT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.value, kOld);
  ASSERT_EQ(run_.reads.size(), 3u);
  EXPECT_EQ(run_.reads[1].bytes, kLargeHeadBytes);
  EXPECT_EQ(run_.reads[2].bytes, 8u);
  EXPECT_FALSE(run_.lookup().from_cached());
  EXPECT_EQ(run_.lookup().item().header.value_bytes, kOld.size());
}

TEST_F(LargeLookupTest, NeedsNoWindowAtACachedLocation) {
  const Slot slot = region_.AddItem(kLargeKey, kOld);
  ASSERT_EQ(run_.Run(slot), Step::kHit);
  EXPECT_EQ(run_.reads.size(), 2u);
  EXPECT_TRUE(run_.lookup().from_cached());
}

TEST_F(LargeLookupTest, LooksAgainIfTheItemDiedWhileItsValueWasRead) {
  const Slot old_slot = region_.AddItem(kLargeKey, kOld);
  const Slot new_slot = region_.AddItem(kLargeKey, kNew);
  region_.SetSlot(home(), 0, old_slot);
  bool once = true;
  run_.before_value = [&] {
    if (!std::exchange(once, false)) return;
    region_.Kill(old_slot);
    region_.SetSlot(home(), 0, new_slot);
  };
  ASSERT_EQ(run_.Run(), Step::kHit);
  EXPECT_EQ(run_.value, kNew);
  EXPECT_EQ(run_.lookup().slot(), new_slot);
  EXPECT_EQ(item_reads(), 4u);
}

TEST_F(LargeLookupTest, AsksTheServerIfTheItemChangesAgainAndAgain) {
  region_.SetSlot(home(), 0, region_.AddItem(kLargeKey, kOld));
  const Slot slot(region_.bucket(home()).slots[0]);
  uint64_t commit;
  std::memcpy(&commit, region_.at(slot.offset()), 8);
  run_.before_read = [&](int, const Lookup::ReadPlan& plan) {
    const uint64_t now = plan.bytes == 8 ? 0 : commit;  // dead at each second look
    std::memcpy(region_.at(slot.offset()), &now, 8);
  };
  EXPECT_EQ(run_.Run(), Step::kAskServer);
  EXPECT_EQ(item_reads(), 2 * (Lookup::kRetriesMax + 1));
}

TEST_F(LargeLookupTest, AKnownHeadSparesItsRead) {
  const Slot slot = region_.AddItem(kLargeKey, kOld);
  ASSERT_EQ(run_.Run(slot), Step::kHit);
  Lookup lookup;
  const LargeItemHeader head = run_.lookup().large();
  ASSERT_EQ(lookup.StartKnown(&region_.view(), kLargeKey, region_.HashOf(kLargeKey), slot, head),
            Step::kReadValue);
  ASSERT_EQ(lookup.OnValue(), Step::kRead);
  EXPECT_EQ(lookup.plan().bytes, 8u);
  TestClock clock;
  EXPECT_EQ(lookup.OnRead({{nullptr, nullptr}, region_.at(slot.offset())}, 0, clock), Step::kHit);
  EXPECT_TRUE(lookup.from_cached());
  // A stale head leads to the window.
  region_.Kill(slot);
  lookup.StartKnown(&region_.view(), kLargeKey, region_.HashOf(kLargeKey), slot, head);
  lookup.OnValue();
  EXPECT_EQ(lookup.OnRead({{nullptr, nullptr}, region_.at(slot.offset())}, 0, clock), Step::kRead);
  EXPECT_EQ(lookup.plan().target, Lookup::Target::kWindow0);
}

TEST_F(LargeLookupTest, ALargeItemOfAnotherKeyIsNoHit) {
  region_.SetSlot(home(), 0, region_.AddItem("another", kOld, kLargeKey));
  EXPECT_EQ(run_.Run(), Step::kMiss);
  EXPECT_EQ(run_.value, "");
}

// A hostile server: the head says more than its block holds.
TEST_F(LargeLookupTest, ReadsNothingBeyondTheItemsBlock) {
  const Slot slot = region_.AddItem(kLargeKey, kOld);
  const Slot smaller = Slot::Of(slot.tag(), kSealedClassMax + 1, slot.offset());
  region_.SetSlot(home(), 0, smaller);
  EXPECT_EQ(run_.Run(), Step::kAskServer);
  EXPECT_EQ(run_.value, "");
}

}  // namespace
}  // namespace gannet
