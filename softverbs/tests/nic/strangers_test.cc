#include "softverbs/nic/strangers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace softverbs {
namespace {

ibv_gid Host(int number) {
  ibv_gid gid{};
  gid.raw[14] = static_cast<uint8_t>(number >> 8);
  gid.raw[15] = static_cast<uint8_t>(number);
  return gid;
}

class StrangersTest : public ::testing::Test {
 protected:
  // Adds strangers of this host. Those that leave are noted in left_, by their number.
  std::vector<Strangers::Id> Add(int host, size_t count) {
    std::vector<Strangers::Id> ids;
    for (size_t i = 0; i < count; ++i) {
      const int number = added_++;
      ids.push_back(
          strangers_.Add(Host(host), now_ns_, [this, number] { left_.push_back(number); }));
    }
    return ids;
  }

  Strangers strangers_{4096};
  int64_t now_ns_ = 0;
  int added_ = 0;
  std::vector<int> left_;
};

TEST_F(StrangersTest, PastItsShareTheOldestOfTheAddressLeavesAfterItsGrace) {
  Add(1, 1);
  Add(2, 1);
  now_ns_ = 1;
  Add(2, Strangers::kOfOneAddressMax - 1);
  now_ns_ = Strangers::kGraceNs - 1;
  EXPECT_EQ(Add(2, 1), (std::vector<Strangers::Id>{0}));
  EXPECT_TRUE(left_.empty());
  now_ns_ = Strangers::kGraceNs;
  EXPECT_NE(Add(2, 1).front(), 0u);
  EXPECT_EQ(Add(2, 1).front(), 0u);
  EXPECT_EQ(left_, (std::vector<int>{1}));
  EXPECT_EQ(strangers_.size(), Strangers::kOfOneAddressMax + 1);
}

TEST_F(StrangersTest, WhenAllPlacesAreTakenTheAddressWithTheMostLosesItsOldest) {
  Add(1, 1);
  Add(2, 3);
  for (int host = 3; strangers_.size() < Strangers::kMax; ++host) Add(host, 1);
  EXPECT_TRUE(left_.empty());
  EXPECT_NE(Add(1, 1).front(), 0u);
  EXPECT_EQ(left_, (std::vector<int>{1}));
  EXPECT_EQ(Add(1, 1).front(), 0u);  // no other has more than host 1 then
  now_ns_ = Strangers::kGraceNs;
  EXPECT_NE(Add(1, 1).front(), 0u);
  EXPECT_EQ(left_, (std::vector<int>{1, 0}));
  EXPECT_EQ(strangers_.size(), Strangers::kMax);
}

TEST_F(StrangersTest, AmongManyAddressesTheOldestLeaves) {
  for (int host = 0; host < 1100; ++host) Add(host, 1);
  ASSERT_EQ(left_.size(), 1100 - Strangers::kMax);
  for (size_t i = 0; i < left_.size(); ++i) ASSERT_EQ(left_[i], static_cast<int>(i));
}

TEST_F(StrangersTest, WhoProvedTheKeyTakesNoPlace) {
  const auto ids = Add(1, Strangers::kOfOneAddressMax);
  strangers_.Remove(ids.front());
  strangers_.Remove(ids.front());
  Add(1, 1);
  EXPECT_TRUE(left_.empty());
  for (const Strangers::Id id : ids) strangers_.Remove(id);
  EXPECT_EQ(strangers_.size(), 1u);
  EXPECT_TRUE(left_.empty());
}

TEST_F(StrangersTest, WhoLeavesMayTakeItselfOut) {
  Strangers::Id id = 0;
  id = strangers_.Add(Host(1), now_ns_, [&] { strangers_.Remove(id); });
  EXPECT_TRUE(strangers_.DropOne());
  EXPECT_EQ(strangers_.size(), 0u);
  EXPECT_FALSE(strangers_.DropOne());
}

TEST_F(StrangersTest, TheyTakeAQuarterOfTheDescriptors) {
  EXPECT_EQ(Strangers(SIZE_MAX).max(), Strangers::kMax);
  EXPECT_EQ(Strangers(SIZE_MAX).of_one_address(), Strangers::kOfOneAddressMax);
  EXPECT_EQ(Strangers(400).max(), 100u);
  EXPECT_EQ(Strangers(400).of_one_address(), 50u);
  EXPECT_EQ(Strangers(16).max(), 8u);
  EXPECT_EQ(Strangers(16).of_one_address(), 4u);
}

}  // namespace
}  // namespace softverbs
