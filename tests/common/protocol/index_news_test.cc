#include "common/protocol/index_news.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr uint64_t kRegionBytes = 1 << 30;
constexpr IndexNews kGrowing = {{3, 4096, 1000, 20}, {4, 1 << 20, 2000, 40}};

TEST(IndexNewsTest, IsToldToThoseWhoDoNotKnowItOrDoNotAcknowledgeIt) {
  EXPECT_FALSE(kGrowing.IsNewsTo({3, 4}));
  EXPECT_TRUE(kGrowing.IsNewsTo({3, 3}));
  EXPECT_TRUE(kGrowing.IsNewsTo({2, 4}));
  EXPECT_TRUE(kGrowing.IsNewsTo({0, 0}));
  constexpr IndexNews kGrown = {{4, 1 << 20, 2000, 40}, {}};
  EXPECT_TRUE(kGrown.IsNewsTo({3, 4}));
  EXPECT_FALSE(kGrown.IsNewsTo({4, 4}));
}

TEST(IndexNewsTest, DecodesWhatWasSentAndNothingOutsideOfTheRegion) {
  const auto decode = [](const IndexNews& news, uint64_t region_bytes = kRegionBytes) {
    return IndexNews::Decode(news.bytes(), region_bytes);
  };
  ASSERT_TRUE(decode(kGrowing));
  EXPECT_EQ(decode(kGrowing)->next, kGrowing.next);
  EXPECT_TRUE(decode({kGrowing.index, {}}));
  EXPECT_FALSE(decode(kGrowing, 100'000));
  EXPECT_FALSE(decode(kGrowing, kGrowing.next.offset + kGrowing.next.bytes() - 1));
  EXPECT_FALSE(decode({{}, kGrowing.next}));
  EXPECT_FALSE(decode({kGrowing.index, {5, 1 << 20, 2000, 40}}));  // skips a generation
  EXPECT_FALSE(IndexNews::Decode(kGrowing.bytes().substr(1), kRegionBytes));
}

}  // namespace
}  // namespace gannet
