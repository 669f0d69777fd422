#include "server/memory/store/item_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/memory/store/at.h"

namespace gannet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kIncarnation = 7;
constexpr uint32_t kWords = 4;
constexpr uint32_t kLeaseMs = 20;
constexpr uint64_t kNow = 1'000'000;
constexpr uint64_t kBarMs = 10 * kLeaseMs;

class ItemLeasesTest : public testing::Test {
 protected:
  ItemLeasesTest() { leases_.Start(kIncarnation); }

  // What a client READs.
  ItemLeaseHeader Header() const {
    ItemLeaseHeader header;
    std::memcpy(&header, memory_.data(), sizeof(header));
    EXPECT_TRUE(ItemLeaseValid(header, kIncarnation));
    return header;
  }
  std::vector<uint64_t> Words() const {
    std::vector<uint64_t> words;
    for (size_t i = sizeof(ItemLeaseHeader) / 8; i < memory_.size(); ++i) {
      if (memory_[i] != 0) words.push_back(memory_[i]);
    }
    return words;
  }
  bool Begin(uint64_t key, uint64_t word, uint64_t now_ms = kNow) {
    return leases_.Begin(KeyHash(key), word, 100, At(now_ms));
  }
  std::optional<uint64_t> Change(uint64_t key, uint64_t now_ms = kNow) {
    if (!leases_.IsMarked(KeyHash(key))) return std::nullopt;
    EXPECT_TRUE(leases_.MayHave(KeyHash(key)));
    return leases_.Change(KeyHash(key), At(now_ms));
  }

  std::vector<uint64_t> memory_ = std::vector<uint64_t>(ItemLeaseBytes(kWords) / 8);
  ItemLeases leases_{{.memory = std::as_writable_bytes(std::span(memory_)), .lease_ms = kLeaseMs}};
};

TEST_F(ItemLeasesTest, ItLeasesNothingAtFirst) {
  EXPECT_EQ(Header().end_ms, 0u);
  EXPECT_FALSE(leases_.Renew(At(kNow)));
  EXPECT_EQ(Header().end_ms, 0u);
  EXPECT_EQ(Change(1), std::nullopt);
}

TEST_F(ItemLeasesTest, AChangeWaitsForTheEndThatWasPromised) {
  ASSERT_TRUE(Begin(1, 0xa));
  ASSERT_TRUE(Begin(2, 0xb));
  ASSERT_TRUE(leases_.Renew(At(kNow)));
  EXPECT_EQ(Header().end_ms, kNow + kLeaseMs);
  EXPECT_THAT(Words(), ElementsAre(0xa, 0xb));
  const uint64_t generation = Header().generation;
  EXPECT_EQ(Change(1, kNow + 5), kLeaseMs - 5);
  EXPECT_THAT(Words(), ElementsAre(0xb));
  EXPECT_EQ(Header().end_ms, kNow + kLeaseMs) << "a write stores nothing to the header";
  // The other key's lease goes on, in another generation.
  ASSERT_TRUE(leases_.Renew(At(kNow + 10)));
  EXPECT_EQ(Header().generation, generation + 1);
  EXPECT_EQ(Header().end_ms, kNow + 10 + kLeaseMs);
  EXPECT_EQ(Change(1, kNow + 12), kLeaseMs - 12) << "the end of when the word went";
  EXPECT_EQ(Change(1, kNow + kLeaseMs), 0u);
  EXPECT_EQ(Change(1, kNow + kLeaseMs), std::nullopt) << "it has no mark any more";
  EXPECT_EQ(leases_.counts().changes, 1u);
}

TEST_F(ItemLeasesTest, AChangeWaitsForNothingThatIsOver) {
  ASSERT_TRUE(Begin(1, 0xa));
  EXPECT_EQ(Change(1), 0u) << "no client was told of an end";
  ASSERT_TRUE(Begin(2, 0xb));
  leases_.Renew(At(kNow));
  EXPECT_EQ(Change(2, kNow + kLeaseMs), 0u);
  EXPECT_EQ(leases_.counts().changes, 0u);
}

TEST_F(ItemLeasesTest, TheEndNeverDecreases) {
  ASSERT_TRUE(Begin(1, 0xa));
  leases_.Renew(At(kNow));
  leases_.Renew(At(kNow - 10));
  EXPECT_EQ(Header().end_ms, kNow + kLeaseMs);
}

TEST_F(ItemLeasesTest, AKeyThatWasChangedIsBarredForLongerAndLonger) {
  ASSERT_TRUE(Begin(1, 0xa));
  leases_.Renew(At(kNow));
  ASSERT_EQ(Change(1), kLeaseMs);
  const uint64_t end = kNow + kLeaseMs;
  EXPECT_FALSE(Begin(1, 0xb, end - 1)) << "its end is not over";
  ASSERT_EQ(Change(1, end), 0u);
  EXPECT_FALSE(Begin(1, 0xb, end + kBarMs - 1));
  EXPECT_TRUE(Begin(2, 0xc, end + kBarMs - 1)) << "another key";
  ASSERT_TRUE(Begin(1, 0xb, end + kBarMs));
  leases_.Renew(At(end + kBarMs));
  const uint64_t again = end + kBarMs + kLeaseMs;
  ASSERT_EQ(Change(1, again), 0u);
  EXPECT_FALSE(Begin(1, 0xd, again + 2 * kBarMs - 1));
  EXPECT_TRUE(Begin(1, 0xd, again + 2 * kBarMs));
}

TEST_F(ItemLeasesTest, ALeaseThatEndsWithoutAChangeKeepsItsMarkUntilItsEnd) {
  ASSERT_TRUE(Begin(1, 0xa));
  ASSERT_TRUE(Begin(2, 0xb));
  leases_.Renew(At(kNow));
  leases_.End(0xa);
  EXPECT_THAT(Words(), ElementsAre(0xb));
  EXPECT_THAT(leases_.Over(At(kNow + kLeaseMs - 1)), IsEmpty());
  EXPECT_FALSE(Begin(1, 0xa));
  EXPECT_EQ(Change(1), kLeaseMs);
  leases_.EndAll();
  EXPECT_THAT(Words(), IsEmpty());
  EXPECT_EQ(leases_.Over(At(kNow + kLeaseMs)).size(), 2u);
  leases_.Drop(KeyHash(2));
  leases_.Drop(KeyHash(2));
  EXPECT_EQ(Change(2), std::nullopt);
}

TEST_F(ItemLeasesTest, AnItemThatMovesKeepsItsLease) {
  ASSERT_TRUE(Begin(1, 0xa));
  leases_.Renew(At(kNow));
  const uint64_t generation = Header().generation;
  leases_.Moved(0xa, 0xe);
  leases_.Moved(0xb, 0xf);
  EXPECT_THAT(Words(), ElementsAre(0xe));
  leases_.Renew(At(kNow));
  EXPECT_EQ(Header().generation, generation);
  EXPECT_EQ(Change(1), kLeaseMs);
  EXPECT_THAT(Words(), IsEmpty());
}

TEST_F(ItemLeasesTest, AnAnnouncedKeyIsFoundAndHasNoMark) {
  ASSERT_TRUE(leases_.Announce(KeyHash(1)));
  EXPECT_TRUE(leases_.MayHave(KeyHash(1)));
  EXPECT_EQ(Change(1), std::nullopt);
  ASSERT_TRUE(Begin(1, 0xa));
  leases_.Retract(KeyHash(1));
  EXPECT_TRUE(leases_.MayHave(KeyHash(1))) << "it is leased";
  EXPECT_EQ(Change(1), 0u);
  EXPECT_FALSE(leases_.MayHave(KeyHash(1)));
}

TEST(MarkedKeysTest, ItKnowsAKeyThatIsTheOnlyOneOfItsBits) {
  constexpr uint64_t kBits = uint64_t{7} << 48;
  const KeyHash first(kBits + 1), second(kBits + 2), third(kBits + 3);
  MarkedKeys keys;
  EXPECT_FALSE(keys.MayHave(first));
  ASSERT_TRUE(keys.Add(first));
  ASSERT_TRUE(keys.Add(first));
  EXPECT_TRUE(keys.MayHave(first));
  EXPECT_FALSE(keys.MayHave(second));
  EXPECT_NE(keys.counts().Of(second.value()), 0);
  EXPECT_EQ(keys.counts().Of(1), 0);
  ASSERT_TRUE(keys.Add(second));
  EXPECT_TRUE(keys.MayHave(second));
  EXPECT_TRUE(keys.MayHave(third)) << "who they are is not known any more";
  keys.Remove(first);
  keys.Remove(first);
  EXPECT_TRUE(keys.MayHave(second));
  keys.Remove(second);
  EXPECT_FALSE(keys.MayHave(second));
  EXPECT_EQ(keys.counts().Of(second.value()), 0);
  ASSERT_TRUE(keys.Add(third));
  EXPECT_TRUE(keys.MayHave(third));
  EXPECT_FALSE(keys.MayHave(second));
}

TEST(MarkedKeysTest, ItCountsNoMoreThanItCan) {
  MarkedKeys keys;
  for (int i = 0; i < 255; ++i) ASSERT_TRUE(keys.Add(KeyHash(1)));
  EXPECT_FALSE(keys.Add(KeyHash(1)));
  EXPECT_TRUE(keys.MayHave(KeyHash(1)));
}

TEST_F(ItemLeasesTest, ItLeasesNoMoreThanThereAreWords) {
  for (uint64_t key = 1; key <= kWords; ++key) EXPECT_TRUE(Begin(key, key));
  EXPECT_FALSE(Begin(9, 9));
  EXPECT_EQ(leases_.counts().leased, kWords);
  EXPECT_EQ(leases_.counts().leased_bytes, kWords * 100u);
  leases_.End(2);
  EXPECT_TRUE(Begin(9, 9));
  EXPECT_TRUE(leases_.IsLeased(9));
  EXPECT_FALSE(leases_.IsLeased(2));
}

TEST(PopularItemsTest, WhatIsReadMostIsChosen) {
  PopularItems popular(2);
  for (int i = 0; i < 4; ++i) {
    popular.Note(100, 1, 255);
    popular.Note(200, 1, 255);
    popular.Note(300, 1, 250);
    popular.Note(400, 1, 249);  // four short of what it takes
  }
  popular.Note(200, 1, 1);
  popular.Note(100, 1, 2);
  EXPECT_THAT(popular.Choose(), ElementsAre(100, 200));
  // It was written, and begins again.
  popular.Note(100, 2, 255);
  EXPECT_THAT(popular.Choose(), ElementsAre(200, 300));
}

TEST(PopularItemsTest, RecentUsesCountMore) {
  PopularItems popular(1);
  for (int i = 0; i < 8; ++i) popular.Note(100, 1, 255);
  popular.Cool();
  popular.Cool();
  EXPECT_THAT(popular.Choose(), ElementsAre(100)) << "popular, as long as it is not written";
  for (int i = 0; i < 4; ++i) popular.Note(200, 1, 255);
  EXPECT_THAT(popular.Choose(), ElementsAre(200));
}

TEST(PopularItemsTest, ItRemembersForAWhileWhatWasTold) {
  PopularItems popular(4);
  EXPECT_FALSE(popular.WasTold(16));
  EXPECT_TRUE(popular.WasTold(16));
  uint64_t others = 0;
  while (others < 1'000'000 && popular.WasTold(16)) popular.WasTold(++others * 112);
  EXPECT_GT(others, 100'000u);
  EXPECT_LT(others, 1'000'000u) << "it never forgets";
}

TEST(PopularItemsTest, ItForgetsWhatIsSeldomRead) {
  PopularItems popular(4);
  for (int i = 0; i < 4; ++i) popular.Note(16, 1, 255);
  for (uint64_t offset = 32; offset < 32'000; offset += 16) popular.Note(offset, 1, 1);
  EXPECT_THAT(popular.Choose(), ElementsAre(16));
}

}  // namespace
}  // namespace gannet
