#include "server/memory/index/bucket_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace gannet {
namespace {

constexpr uint64_t kIncarnation = 17;

class BucketTableTest : public testing::Test {
 protected:
  BucketTableTest()
      : geometry_(GeometryForSlots(1000, 256, 3)),
        memory_((geometry_.offset + geometry_.bytes()) / 8),
        table_(std::as_writable_bytes(std::span(memory_)), geometry_, kIncarnation) {
    table_.Initialise(0, geometry_.buckets());
  }

  Bucket Copy(uint64_t bucket) const {
    Bucket copy;
    std::memcpy(&copy, memory_.data() + geometry_.BucketOffset(bucket) / 8, sizeof(copy));
    return copy;
  }
  bool Valid(uint64_t bucket) const {
    return BucketValid(Copy(bucket), BucketSeed(kIncarnation, 3, bucket));
  }

  IndexGeometry geometry_;
  std::vector<uint64_t> memory_;
  BucketTable table_;
};

TEST_F(BucketTableTest, StartsEmptyAndValid) {
  for (uint64_t b = 0; b < geometry_.buckets(); ++b) {
    EXPECT_TRUE(Valid(b));
    EXPECT_EQ(Copy(b).meta, 0u);
  }
  EXPECT_EQ(memory_[0], 0u);  // nothing before its offset
}

TEST_F(BucketTableTest, APublicationChangesWhatItNamesAndTheVersion) {
  const Slot slot = Slot::Of(5, 6, 4096);
  BucketChange(table_, 7).SetSlot(3, slot).Publish();
  EXPECT_TRUE(Valid(7));
  EXPECT_EQ(table_.LoadSlot(7, 3), slot);
  EXPECT_EQ(table_.LoadMeta(7), BucketMeta().WithNextVersion());
  for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    EXPECT_EQ(table_.LoadSlot(7, i).empty(), i != 3);
  }
  EXPECT_EQ(Copy(6).meta, 0u);
  EXPECT_EQ(Copy(8).meta, 0u);
}

TEST_F(BucketTableTest, CountersAndTagsArePartOfThePublication) {
  BucketChange(table_, 7).BumpMovesNext().SetStashTags(0x41).Publish();
  BucketChange(table_, 7).BumpMovesPrev().BumpMovesNext().Publish();
  const BucketMeta meta = table_.LoadMeta(7);
  EXPECT_EQ(meta.version(), 2u);
  EXPECT_EQ(meta.moves_next(), 2u);
  EXPECT_EQ(meta.moves_prev(), 1u);
  EXPECT_EQ(meta.stash_tags(), 0x41u);
  EXPECT_TRUE(Valid(7));
}

TEST_F(BucketTableTest, NoMixtureOfTwoStatesIsValid) {
  BucketChange(table_, 7).SetSlot(0, Slot::Of(1, 1, 16)).Publish();
  const Bucket before = Copy(7);
  BucketChange(table_, 7).SetSlot(0, Slot()).SetSlot(5, Slot::Of(2, 2, 32)).Publish();
  const Bucket after = Copy(7);
  const uint64_t seed = BucketSeed(kIncarnation, 3, 7);
  // The words that differ: checksum, meta, slots 0 and 5; every choice of old or new for each.
  const size_t words[] = {0, 1, 2, 7};
  for (int mix = 0; mix < 16; ++mix) {
    Bucket copy = before;
    for (int i = 0; i < 4; ++i) {
      const size_t at = words[i] * 8;
      if (mix >> i & 1) {
        std::memcpy(reinterpret_cast<char*>(&copy) + at, reinterpret_cast<const char*>(&after) + at,
                    8);
      }
    }
    EXPECT_EQ(BucketValid(copy, seed), mix == 0 || mix == 15) << mix;
  }
}

}  // namespace
}  // namespace gannet
