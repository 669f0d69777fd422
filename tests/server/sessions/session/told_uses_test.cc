#include "server/sessions/session/told_uses.h"

#include "gtest/gtest.h"

namespace gannet {
namespace {

TEST(ToldUsesTest, AUseStandsForAsManyAsWereNotTold) {
  ToldUses uses;
  EXPECT_EQ(uses.each(), 1u);
  uses.OnTold(ToldUses::kWindow);
  uses.OnHits(9 * ToldUses::kWindow);
  EXPECT_EQ(uses.each(), 9u);
  uses.OnTold(2 * ToldUses::kWindow);
  uses.OnHits(3 * ToldUses::kWindow);
  EXPECT_EQ(uses.each(), 2u) << "the former window counts no more";
}

TEST(ToldUsesTest, FewTellNothing) {
  ToldUses uses;
  uses.OnTold(ToldUses::kWindow - 1);
  uses.OnHits(100 * ToldUses::kWindow);
  EXPECT_EQ(uses.each(), 1u);
  uses.OnTold(3 * ToldUses::kWindow + 1);
  uses.OnHits(0);
  EXPECT_EQ(uses.each(), 25u) << "they belong to the window";
}

TEST(ToldUsesTest, ItIsNeitherLessThanOneNorWhateverIsClaimed) {
  ToldUses uses;
  uses.OnTold(ToldUses::kWindow);
  uses.OnHits(1);
  EXPECT_EQ(uses.each(), 1u);
  uses.OnTold(ToldUses::kWindow);
  uses.OnHits(uint64_t{1} << 40);
  EXPECT_EQ(uses.each(), ToldUses::kEachMost);
}

}  // namespace
}  // namespace gannet
