#include "server/memory/index/displacement.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

enum class Homes { kOwn, kPrevious, kHalf };

void FillBucket(Occupancy& occupancy, uint64_t bucket, Homes homes) {
  for (uint32_t slot = 0; slot < kSlotsPerBucket; ++slot) {
    const bool from_previous = homes == Homes::kPrevious || (homes == Homes::kHalf && slot % 2);
    occupancy.Take(bucket, slot, from_previous);
  }
}

TEST(DisplacementTest, TakesTheShorterDirection) {
  Occupancy occupancy(100);
  for (uint64_t bucket = 10; bucket <= 20; ++bucket) FillBucket(occupancy, bucket, Homes::kHalf);
  const auto left = FindChain(occupancy, 12);
  ASSERT_TRUE(left);
  EXPECT_FALSE(left->to_next);
  EXPECT_EQ(left->start, 12u);
  EXPECT_EQ(left->moves, 3u);  // 12 -> 11 -> 10 -> 9
  const auto right = FindChain(occupancy, 18);
  ASSERT_TRUE(right);
  EXPECT_TRUE(right->to_next);
  EXPECT_EQ(right->start, 19u);
  EXPECT_EQ(right->moves, 2u);  // 19 -> 20 -> 21
}

TEST(DisplacementTest, EveryBucketOfAChainNeedsAKeyThatMayMove) {
  Occupancy occupancy(100);
  FillBucket(occupancy, 9, Homes::kOwn);  // cannot give a key to 8
  FillBucket(occupancy, 10, Homes::kHalf);
  FillBucket(occupancy, 11, Homes::kHalf);
  FillBucket(occupancy, 12, Homes::kPrevious);  // cannot give a key to 13
  EXPECT_FALSE(FindChain(occupancy, 10));
}

TEST(DisplacementTest, IsBounded) {
  Occupancy occupancy(200);
  for (uint64_t bucket = 10; bucket < 150; ++bucket) FillBucket(occupancy, bucket, Homes::kHalf);
  EXPECT_FALSE(FindChain(occupancy, 80));
  EXPECT_EQ(FindChain(occupancy, 10 + kChainMovesMax - 1)->moves, kChainMovesMax);
  EXPECT_FALSE(FindChain(occupancy, 10 + kChainMovesMax));
}

TEST(DisplacementTest, StaysInsideTheTable) {
  Occupancy occupancy(4);  // homes 0..2
  FillBucket(occupancy, 0, Homes::kOwn);
  FillBucket(occupancy, 1, Homes::kHalf);
  FillBucket(occupancy, 2, Homes::kHalf);
  FillBucket(occupancy, 3, Homes::kPrevious);
  for (uint64_t home = 0; home < 3; ++home) EXPECT_FALSE(FindChain(occupancy, home)) << home;
}

}  // namespace
}  // namespace gannet
