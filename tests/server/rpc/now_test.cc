#include "server/rpc/now.h"

#include "gtest/gtest.h"

namespace gannet {
namespace {

uint64_t g_wall_ms = 0;
int64_t g_monotonic_ns = 0;

ServerClock StartAt(uint64_t wall_ms, int64_t monotonic_ns) {
  g_wall_ms = wall_ms;
  g_monotonic_ns = monotonic_ns;
  return ServerClock::Start({.wall_ms = [] { return g_wall_ms; },  //
                             .monotonic_ns = [] { return g_monotonic_ns; }});
}

TEST(ServerClockTest, IsTheWallClockAtItsStartPlusMonotonicTime) {
  const ServerClock clock = StartAt(1'763'650'000'000, 77);
  EXPECT_EQ(clock.Read().wall_ms, 1'763'650'000'000u);
  EXPECT_EQ(clock.Read().monotonic_ns, 77);
  g_monotonic_ns += 1500 * kNsPerMs;
  EXPECT_EQ(clock.Read().wall_ms, 1'763'650'001'500u);
}

TEST(ServerClockTest, StepsOfTheWallClockChangeNothing) {
  constexpr uint64_t kStart = 1'763'650'000'000, kHour = 3'600'000;
  const ServerClock clock = StartAt(kStart, 0);
  for (uint64_t wall_ms : {kStart + kHour, kStart - kHour, uint64_t{0}}) {
    g_wall_ms = wall_ms;
    EXPECT_EQ(clock.Read().wall_ms, kStart) << wall_ms;
  }
  g_monotonic_ns = 10 * kNsPerMs;
  EXPECT_EQ(clock.Read().wall_ms, kStart + 10);
}

}  // namespace
}  // namespace gannet
