#include "common/rdma/port.h"

#include "gtest/gtest.h"

namespace gannet {
namespace {

TEST(PortTest, LinksCarryWhatTheirLanesDo) {
  EXPECT_EQ(LinkMbitPerSecond(/*active_speed=*/32, /*active_width=*/2), 100'000u) << "EDR 4x";
  EXPECT_EQ(LinkMbitPerSecond(128, 2), 400'000u) << "NDR 4x";
  EXPECT_EQ(LinkMbitPerSecond(64, 16), 100'000u) << "HDR 2x";
  EXPECT_EQ(LinkMbitPerSecond(4, 1), 8'000u) << "QDR 1x";
}

TEST(PortTest, WhatIsUnknownIsZero) {
  EXPECT_EQ(LinkMbitPerSecond(0, 2), 0u);
  EXPECT_EQ(LinkMbitPerSecond(32, 0), 0u);
  EXPECT_EQ(LinkMbitPerSecond(3, 3), 0u);
}

}  // namespace
}  // namespace gannet
