#include "server/memory/index/stash.h"

#include <gtest/gtest.h>

#include "common/layout/bucket.h"

namespace gannet {
namespace {

constexpr uint64_t kFirst = 1000;
constexpr uint64_t kHomes = 4;

// Returns a hash with this stash home and stash tag.
KeyHash HashWith(uint64_t stash_home, uint32_t tag, uint64_t skip = 0) {
  for (uint64_t i = 1;; ++i) {
    const KeyHash hash(Mix64(i));
    if (hash.StashHome(kHomes) == stash_home && hash.StashTag() == tag && skip-- == 0) return hash;
  }
}

TEST(StashTest, GivesRoomInTheEmptierOfTwoBuckets) {
  Stash stash(kFirst, kHomes);
  for (uint64_t i = 0; i < 2 * kSlotsPerBucket; ++i) {
    const KeyHash hash = HashWith(2, 1, i);
    const auto room = stash.FindRoom(hash);
    ASSERT_TRUE(room);
    EXPECT_EQ(room->bucket, kFirst + 2 + i % 2);
    EXPECT_EQ(room->slot, i / 2);
    stash.Add(i, *room);
  }
  EXPECT_FALSE(stash.FindRoom(HashWith(2, 1)));
  EXPECT_TRUE(stash.FindRoom(HashWith(0, 1)));
  stash.Remove(5, kFirst + 3, 2);
  const auto room = stash.FindRoom(HashWith(2, 1));
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bucket, kFirst + 3);
  EXPECT_EQ(room->slot, 2u);
}

TEST(StashTest, KnowsWhichTagsAHomeNeeds) {
  Stash stash(kFirst, kHomes);
  EXPECT_EQ(stash.TagsForHome(8), 0u);
  const auto a = *stash.FindRoom(HashWith(0, 4));
  stash.Add(8, a);
  const auto b = *stash.FindRoom(HashWith(0, 4, 1));
  stash.Add(8, b);
  const auto c = *stash.FindRoom(HashWith(1, 16));
  stash.Add(8, c);
  stash.Add(9, *stash.FindRoom(HashWith(1, 2)));
  EXPECT_EQ(stash.TagsForHome(8), 20u);
  EXPECT_EQ(stash.EntriesOfHome(8).size(), 3u);
  stash.Remove(8, a.bucket, a.slot);
  EXPECT_EQ(stash.TagsForHome(8), 20u);  // b needs it still
  stash.Remove(8, b.bucket, b.slot);
  EXPECT_EQ(stash.TagsForHome(8), 16u);
  stash.Remove(8, c.bucket, c.slot);
  EXPECT_EQ(stash.TagsForHome(8), 0u);
  EXPECT_TRUE(stash.EntriesOfHome(8).empty());
  EXPECT_EQ(stash.TagsForHome(9), 2u);
}

}  // namespace
}  // namespace gannet
