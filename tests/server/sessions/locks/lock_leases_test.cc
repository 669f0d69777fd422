#include "server/sessions/locks/lock_leases.h"

#include <vector>

#include "gtest/gtest.h"

namespace gannet {
namespace {

class LockLeasesTest : public testing::Test {
 protected:
  static constexpr size_t kWords = LockLeases::kLeasesMax + 1;
  using Lease = LockLeases::Lease;

  std::vector<uint64_t> words_ = std::vector<uint64_t>(kWords);
  LockLeases leases_{words_, /*workers=*/2};
};

TEST_F(LockLeasesTest, EndsAtItsTimeWithTheWorkerThatGaveIt) {
  ASSERT_TRUE(leases_.Set(1, {7, 70}, 100));
  ASSERT_TRUE(leases_.Set(1, {8, 80}, 50));
  EXPECT_EQ(leases_.NextNs(0), LockLeases::kNever);
  EXPECT_EQ(leases_.NextNs(1), 50);
  EXPECT_FALSE(leases_.TakeDue(0, 1000).has_value());
  EXPECT_FALSE(leases_.TakeDue(1, 49).has_value());
  EXPECT_EQ(leases_.TakeDue(1, 100)->word, 80u);
  EXPECT_EQ(leases_.TakeDue(1, 100)->word, 70u);
  EXPECT_FALSE(leases_.TakeDue(1, 100).has_value());
}

TEST_F(LockLeasesTest, IsNotRenewedWhileItIsBeingBroken) {
  ASSERT_TRUE(leases_.Set(0, {7, 70}, 100));
  const auto due = leases_.TakeDue(0, 100);
  EXPECT_FALSE(leases_.Set(0, {7, 70}, 500));
  leases_.PutBack(*due);
  EXPECT_EQ(leases_.NextNs(0), 100);
  EXPECT_TRUE(leases_.Set(0, {7, 70}, 500)) << "it could not be broken";
  EXPECT_EQ(leases_.DeadlineNs({7, 70}), 500);
}

TEST_F(LockLeasesTest, EndOfAnEarlierAcquisitionLeavesTheLaterOne) {
  ASSERT_TRUE(leases_.Set(0, {7, 70}, 100));
  ASSERT_TRUE(leases_.TakeDue(0, 100).has_value());
  ASSERT_TRUE(leases_.Set(1, {7, 71}, 500)) << "by the next holder";
  leases_.Drop({7, 70});
  EXPECT_EQ(leases_.DeadlineNs({7, 70}), LockLeases::kNever);
  EXPECT_EQ(leases_.DeadlineNs({7, 71}), 500);
}

TEST_F(LockLeasesTest, FullTableDropsThoseOfLocksThatAreGone) {
  for (size_t i = 0; i < LockLeases::kLeasesMax; ++i) {
    words_[i] = i + 1;
    ASSERT_TRUE(leases_.Set(0, {i, i + 1}, 1'000'000));
  }
  const Lease one_more{kWords - 1, 1};
  EXPECT_FALSE(leases_.HasRoom(one_more, 0));
  EXPECT_TRUE(leases_.HasRoom({0, 1}, 0)) << "it is renewed";
  words_[3] = 0;
  EXPECT_TRUE(leases_.HasRoom(one_more, kNsPerSecond));
  EXPECT_EQ(leases_.size(), LockLeases::kLeasesMax - 1);
}

}  // namespace
}  // namespace gannet
