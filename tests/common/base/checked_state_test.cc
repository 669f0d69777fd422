#include "common/base/checked_state.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gannet {
namespace {

enum class Door : uint8_t { kShut, kOpen, kGone };

constexpr bool MayFollow(Door from, Door to) {
  return from != to && from != Door::kGone && (from == Door::kShut || to == Door::kShut);
}

TEST(CheckedStateTest, TakesTheStepsOfItsTable) {
  CheckedState<Door> door(Door::kShut);
  EXPECT_EQ(door.now(), Door::kShut);
  door.To(Door::kOpen);
  EXPECT_EQ(door.now(), Door::kOpen);
  door.To(Door::kShut);
  EXPECT_EQ(door.now(), Door::kShut);
}

TEST(CheckedStateTest, EndsTheProcessAtAnyOtherStep) {
  CheckedState<Door> door(Door::kOpen);
  EXPECT_DEATH(door.To(Door::kGone), "there is no such step between states");
  EXPECT_DEATH(door.To(Door::kOpen), "there is no such step between states");
  EXPECT_EQ(door.now(), Door::kOpen);
}

}  // namespace
}  // namespace gannet
