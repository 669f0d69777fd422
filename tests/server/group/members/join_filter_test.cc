#include "server/group/members/join_filter.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr Change kDeletion = {.kind = Change::Kind::kDelete};

TEST(JoinFilterTest, KnowsKeysThatTheStoreMayHaveNoItemOfAlthoughTheStreamBroughtThem) {
  JoinFilter filter(10);
  filter.OnApplied(kDeletion, KeyHash(1));
  filter.OnApplied({.kind = Change::Kind::kPut, .expiry = Expiry::FromMs(5)}, KeyHash(2));
  filter.OnApplied({.kind = Change::Kind::kPut}, KeyHash(3));
  EXPECT_TRUE(filter.Has(KeyHash(1)));
  EXPECT_TRUE(filter.Has(KeyHash(2)));
  EXPECT_FALSE(filter.Has(KeyHash(3)));
}

TEST(JoinFilterTest, KnowsAllKeysIfTheStoreMayLoseThemByItself) {
  JoinFilter filter(10, /*notes_all=*/true);
  filter.OnApplied({.kind = Change::Kind::kPut}, KeyHash(3));
  EXPECT_TRUE(filter.Has(KeyHash(3)));
}

// The stream deleted the key and then put it. The item that the walk has is older than the put.
TEST(JoinFilterTest, StillKnowsAKeyThatWasPutAgain) {
  JoinFilter filter(10);
  filter.OnApplied(kDeletion, KeyHash(1));
  filter.OnApplied({.kind = Change::Kind::kPut}, KeyHash(1));
  EXPECT_TRUE(filter.Has(KeyHash(1)));
}

TEST(JoinFilterTest, IsFullOnlyWhenAHashFindsNoRoom) {
  JoinFilter filter(2);
  filter.OnApplied(kDeletion, KeyHash(1));
  filter.OnApplied(kDeletion, KeyHash(2));
  filter.OnApplied(kDeletion, KeyHash(2));
  EXPECT_FALSE(filter.full());
  filter.OnApplied(kDeletion, KeyHash(3));
  EXPECT_TRUE(filter.full());
}

}  // namespace
}  // namespace gannet
