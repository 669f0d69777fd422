#include "server/sessions/session/connection_ids.h"

#include <limits>

#include "gtest/gtest.h"

namespace gannet {
namespace {

TEST(ConnectionIdsTest, StartsAtOneAndNeverRepeats) {
  ConnectionIds ids;
  EXPECT_EQ(ids.Take(), 1u);
  EXPECT_TRUE(ids.Alive(1));
  ids.Retire(1);
  EXPECT_FALSE(ids.Alive(1));
  EXPECT_EQ(ids.Take(), 2u);
  EXPECT_EQ(ids.alive(), 1u);
}

TEST(ConnectionIdsTest, GivesAnIdAgainOnlyIfNobodyWasToldOfIt) {
  ConnectionIds ids;
  EXPECT_EQ(ids.Take(), 1u);
  EXPECT_EQ(ids.Take(), 2u);
  ids.GiveBack(1);
  EXPECT_FALSE(ids.Alive(1));
  EXPECT_EQ(ids.Take(), 1u);
  ids.Retire(1);
  ids.GiveBack(1);
  EXPECT_EQ(ids.Take(), 3u);
}

TEST(ConnectionIdsTest, KnowsWhoseAnIdIsWhileItIsAlive) {
  ConnectionIds ids;
  const uint32_t id = *ids.Take();
  EXPECT_EQ(ids.HolderOf(id)->session_id, 0u);
  ids.Describe(id, 7, "192.0.2.1:1234");
  EXPECT_EQ(ids.HolderOf(id)->session_id, 7u);
  EXPECT_STREQ(ids.HolderOf(id)->peer.data(), "192.0.2.1:1234");
  ids.Retire(id);
  EXPECT_FALSE(ids.HolderOf(id).has_value());
}

TEST(ConnectionIdsTest, ZeroIsNobody) { EXPECT_FALSE(ConnectionIds().Alive(0)); }

TEST(ConnectionIdsTest, EndsAtTheTopInsteadOfWrapping) {
  constexpr uint32_t kTop = std::numeric_limits<uint32_t>::max();
  ConnectionIds ids(kTop);
  EXPECT_EQ(ids.Take(), kTop);
  EXPECT_EQ(ids.Take(), std::nullopt);
  ids.Retire(kTop);
  EXPECT_EQ(ids.Take(), std::nullopt);
}

}  // namespace
}  // namespace gannet
