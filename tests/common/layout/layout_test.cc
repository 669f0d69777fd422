#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "common/layout/superblock.h"
#include "common/layout/version.h"

namespace gannet {
namespace {

TEST(SizeClassTest, EveryClassHoldsWhatItSays) {
  EXPECT_EQ(SizeClassBytes(0), 0u);
  for (uint32_t c = 1; c <= kSizeClassMax; ++c) {
    EXPECT_GT(SizeClassBytes(c), SizeClassBytes(c - 1));
    EXPECT_EQ(SizeClassBytes(c) % kItemAlignment, 0u);
    EXPECT_EQ(SizeClassFor(SizeClassBytes(c)), c);
    EXPECT_EQ(SizeClassFor(SizeClassBytes(c - 1) + 1), c);
  }
}

TEST(SizeClassTest, WhatDoesNotExistHasNoBytes) {
  for (uint32_t c = kSizeClassMax + 1; c < 128; ++c) EXPECT_EQ(SizeClassBytes(c), 0u);
  EXPECT_EQ(SizeClassFor(0), kSizeClassNone);
  EXPECT_EQ(SizeClassFor((80 << 20) + 1), kSizeClassNone);
  EXPECT_EQ(SizeClassFor(~0ull), kSizeClassNone);
}

TEST(SizeClassTest, WastesAtMostAFifthAboveTheSmallest) {
  for (uint64_t bytes = 129; bytes < 100'000; ++bytes) {
    EXPECT_LE(SizeClassBytes(SizeClassFor(bytes)) * 4, bytes * 5) << bytes;
  }
}

TEST(BucketMetaTest, FieldsDoNotTouchEachOtherWhenTheyWrap) {
  BucketMeta meta(0x7fffffffffffffff);
  EXPECT_EQ(meta.WithNextVersion().word(), 0x7fffffffff000000u);
  EXPECT_EQ(meta.WithMovesNextBumped().word(), 0x7fffff0000ffffffu);
  EXPECT_EQ(meta.WithMovesPrevBumped().word(), 0x7f0000ffffffffffu);
  EXPECT_EQ(meta.WithStashTags(0).word(), 0x00ffffffffffffffu);
  EXPECT_FALSE(meta.migrated());
  EXPECT_TRUE(BucketMeta(1ull << 63).migrated());
}

TEST(BucketTest, ZeroesAreNotABucket) {
  const Bucket zeroes{};
  EXPECT_FALSE(BucketValid(zeroes, BucketSeed(1, 1, 0)));
}

TEST(BucketTest, ABucketIsOnlyValidInItsPlace) {
  Bucket bucket{};
  bucket.checksum = BucketChecksum(bucket, BucketSeed(1, 2, 3));
  EXPECT_TRUE(BucketValid(bucket, BucketSeed(1, 2, 3)));
  EXPECT_FALSE(BucketValid(bucket, BucketSeed(1, 2, 4)));
  EXPECT_FALSE(BucketValid(bucket, BucketSeed(1, 3, 3)));
  EXPECT_FALSE(BucketValid(bucket, BucketSeed(2, 2, 3)));
}

TEST(BucketTest, SeedsDiffer) {
  std::set<uint64_t> seeds;
  for (uint64_t incarnation : {1, 2, 3}) {
    for (uint64_t generation : {1, 2, 3}) {
      for (uint64_t bucket = 0; bucket < 1000; ++bucket) {
        seeds.insert(BucketSeed(incarnation, generation, bucket));
      }
    }
  }
  EXPECT_EQ(seeds.size(), 9000u);
}

TEST(KeyHashTest, EveryPartStaysInItsRange) {
  std::vector<int> stash_tags(kStashTagBits);
  for (uint64_t i = 0; i < 100'000; ++i) {
    const KeyHash hash(Mix64(i));
    EXPECT_LT(hash.Home(1000), 1000u);
    EXPECT_LT(hash.StashHome(20), 20u);
    EXPECT_LT(hash.Tag(), 1u << kTagBits);
    EXPECT_LT(hash.LockTag(), 1u << 12);
    EXPECT_LT(hash.LockIndex(777), 777u);
    ASSERT_EQ(std::popcount(hash.StashTag()), 1);
    ++stash_tags[std::countr_zero(hash.StashTag())];
  }
  for (int n : stash_tags) EXPECT_NEAR(n, 100'000 / 7, 1000);
}

TEST(IndexGeometryTest, HasTheSlotsAskedForAndAFiftiethInTheStash) {
  for (uint64_t slots : {1, 14, 57, 1000, 65'536, 1'000'003}) {
    const IndexGeometry geometry = GeometryForSlots(slots, 4096, 1);
    EXPECT_GE(geometry.slots(), slots);
    EXPECT_LE(geometry.slots(), slots + 56);
    EXPECT_EQ(geometry.bytes(), geometry.slots() / 14 * 128);
    EXPECT_TRUE(geometry.ValidWithin(4096 + geometry.bytes()));
    EXPECT_FALSE(geometry.ValidWithin(4096 + geometry.bytes() - 1));
    if (slots >= 65'536) {
      EXPECT_NEAR(geometry.stash_homes + 1, geometry.buckets() / 50.0, 1);
    }
  }
}

TEST(IndexGeometryTest, HostileGeometryIsNotValid) {
  const uint64_t region = 1 << 30;
  const IndexGeometry good = GeometryForSlots(1000, 4096, 1);
  ASSERT_TRUE(good.ValidWithin(region));
  for (uint64_t bad : {0ull, ~0ull, 1ull << 57, 1ull << 40}) {
    IndexGeometry geometry = good;
    geometry.homes = bad;
    EXPECT_FALSE(geometry.ValidWithin(region));
    geometry = good;
    geometry.stash_homes = bad;
    EXPECT_FALSE(geometry.ValidWithin(region));
  }
  for (uint64_t bad : {4097ull, ~0ull, ~127ull, region + 0ull}) {
    IndexGeometry geometry = good;
    geometry.offset = bad;
    EXPECT_FALSE(geometry.ValidWithin(region));
  }
}

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kDayNs = 86'400 * kSecondNs;

TEST(VersionTest, ARunBeginsAboveAllThatAnEarlierOneCanHaveGiven) {
  // 20 versions a nanosecond, far more than a machine can count.
  for (const int64_t start_ns : {int64_t{1}, kSecondNs, 300 * kDayNs, 6600 * kDayNs}) {
    const uint64_t first = FirstVersionAt(kVersionClockStartNs + start_ns).value();
    for (const int64_t ran_ns : {int64_t{1}, int64_t{1000}, kSecondNs, 30 * kDayNs}) {
      const uint64_t last = first + 20 * static_cast<uint64_t>(ran_ns);
      EXPECT_GT(FirstVersionAt(kVersionClockStartNs + start_ns + ran_ns), last);
    }
  }
}

TEST(VersionTest, TheUpperTwentyBitsAreTheEpoch) {
  const auto epoch_at = [](int64_t ns) {
    return FirstVersionAt(kVersionClockStartNs + ns).value() >> 44;
  };
  EXPECT_EQ(epoch_at(1), 0u);
  EXPECT_EQ(epoch_at((1ll << 39) - 1), 0u);
  EXPECT_EQ(epoch_at(1ll << 39), 1u);
  EXPECT_EQ(epoch_at((1ll << 59) - 1), (1u << 20) - 1);
}

TEST(VersionTest, AClockThatIsNotSetGivesNone) {
  EXPECT_FALSE(FirstVersionAt(0));
  EXPECT_FALSE(FirstVersionAt(-1));
  EXPECT_FALSE(FirstVersionAt(kVersionClockStartNs));  // 0 is the version of what is absent
  EXPECT_EQ(FirstVersionAt(kVersionClockStartNs + 1), 32u);
  EXPECT_FALSE(FirstVersionAt(kVersionClockStartNs + (1ll << 59)));
}

TEST(SuperblockTest, AnyFlippedBitMakesItInvalid) {
  Superblock good{};
  good.magic = kSuperblockMagic;
  good.layout_version = kLayoutVersion;
  good.struct_bytes = sizeof(good);
  good.region_bytes = 1 << 20;
  good.index = GeometryForSlots(1000, 4096, 1);
  good.checksum = SuperblockChecksum(good);
  ASSERT_TRUE(SuperblockValid(good));
  for (size_t bit = 0; bit < 8 * sizeof(good); ++bit) {
    Superblock bad = good;
    reinterpret_cast<uint8_t*>(&bad)[bit / 8] ^= 1 << bit % 8;
    EXPECT_FALSE(SuperblockValid(bad)) << bit;
  }
  Superblock outside = good;
  outside.index.offset = 1 << 20;
  outside.checksum = SuperblockChecksum(outside);
  EXPECT_FALSE(SuperblockValid(outside));
}

}  // namespace
}  // namespace gannet
