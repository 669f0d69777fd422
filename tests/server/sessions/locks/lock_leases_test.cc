#include "server/sessions/locks/lock_leases.h"

#include <vector>

#include "common/base/boot_time.h"
#include "gtest/gtest.h"
#include "tests/common/base/boot_at.h"

namespace gannet {
namespace {

class LockLeasesTest : public testing::Test {
 protected:
  static constexpr size_t kWords = LockLeases::kLeasesMax + 1;
  using Lease = LockLeases::Lease;

  std::vector<uint64_t> words_ = std::vector<uint64_t>(kWords);
  LockWordTable table_{words_};
  LockLeases leases_{table_, /*workers=*/2};
};

TEST_F(LockLeasesTest, EndsAtItsTimeWithTheWorkerThatGaveIt) {
  ASSERT_TRUE(leases_.Set(1, {7, 70}, BootAt(100)));
  ASSERT_TRUE(leases_.Set(1, {8, 80}, BootAt(50)));
  EXPECT_EQ(leases_.Next(0), BootTime::Never());
  EXPECT_EQ(leases_.Next(1), BootAt(50));
  EXPECT_FALSE(leases_.TakeDue(0, BootAt(1000)).has_value());
  EXPECT_FALSE(leases_.TakeDue(1, BootAt(49)).has_value());
  EXPECT_EQ(leases_.TakeDue(1, BootAt(100))->word, 80u);
  EXPECT_EQ(leases_.TakeDue(1, BootAt(100))->word, 70u);
  EXPECT_FALSE(leases_.TakeDue(1, BootAt(100)).has_value());
}

TEST_F(LockLeasesTest, IsNotRenewedWhileItIsBeingBroken) {
  ASSERT_TRUE(leases_.Set(0, {7, 70}, BootAt(100)));
  const auto due = leases_.TakeDue(0, BootAt(100));
  EXPECT_FALSE(leases_.Set(0, {7, 70}, BootAt(500)));
  leases_.PutBack(*due);
  EXPECT_EQ(leases_.Next(0), BootAt(100));
  EXPECT_TRUE(leases_.Set(0, {7, 70}, BootAt(500))) << "it could not be broken";
  EXPECT_EQ(leases_.Deadline({7, 70}), BootAt(500));
}

TEST_F(LockLeasesTest, EndOfAnEarlierAcquisitionLeavesTheLaterOne) {
  ASSERT_TRUE(leases_.Set(0, {7, 70}, BootAt(100)));
  ASSERT_TRUE(leases_.TakeDue(0, BootAt(100)).has_value());
  ASSERT_TRUE(leases_.Set(1, {7, 71}, BootAt(500))) << "by the next holder";
  leases_.Drop({7, 70});
  EXPECT_EQ(leases_.Deadline({7, 70}), BootTime::Never());
  EXPECT_EQ(leases_.Deadline({7, 71}), BootAt(500));
}

TEST_F(LockLeasesTest, FullTableDropsThoseOfLocksThatAreGone) {
  for (size_t i = 0; i < LockLeases::kLeasesMax; ++i) {
    words_[i] = i + 1;
    ASSERT_TRUE(leases_.Set(0, {i, i + 1}, BootAt(1'000'000)));
  }
  const Lease one_more{kWords - 1, 1};
  EXPECT_FALSE(leases_.HasRoom(one_more, BootAt(0)));
  EXPECT_TRUE(leases_.HasRoom({0, 1}, BootAt(0))) << "it is renewed";
  words_[3] = 0;
  EXPECT_TRUE(leases_.HasRoom(one_more, BootAt(kNsPerSecond)));
  EXPECT_EQ(leases_.size(), LockLeases::kLeasesMax - 1);
}

TEST_F(LockLeasesTest, SaysWhenTheLastOneIsOverAndForgetsAll) {
  EXPECT_EQ(leases_.Last(), BootTime());
  ASSERT_TRUE(leases_.Set(0, {7, 70}, BootAt(100)));
  ASSERT_TRUE(leases_.Set(1, {8, 80}, BootAt(300)));
  ASSERT_TRUE(leases_.Set(0, {9, 90}, BootAt(200)));
  ASSERT_TRUE(leases_.TakeDue(1, BootAt(300)).has_value());
  EXPECT_EQ(leases_.Last(), BootAt(300)) << "it is being broken, and not yet";
  leases_.Clear();
  EXPECT_EQ(leases_.Last(), BootTime());
  EXPECT_EQ(leases_.Next(0), BootTime::Never());
}

TEST_F(LockLeasesTest, LooksAtTheWordsWhereTheyAreNow) {
  words_[7] = 70;
  ASSERT_TRUE(leases_.Set(0, {7, 70}, BootAt(1'000'000'000)));
  for (size_t i = 0; i < LockLeases::kLeasesMax; ++i) {
    if (i == 7) continue;
    words_[i] = i + 1;
    ASSERT_TRUE(leases_.Set(0, {i, i + 1}, BootAt(1'000'000'000)));
  }
  EXPECT_FALSE(leases_.HasRoom({LockLeases::kLeasesMax, 1}, BootAt(1))) << "all are held";
  const std::vector<uint64_t> moved(kWords);
  table_.MoveTo(moved);
  EXPECT_TRUE(leases_.HasRoom({LockLeases::kLeasesMax, 1}, BootAt(1'000'000'000)));
}

}  // namespace
}  // namespace gannet
