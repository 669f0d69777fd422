#include "server/rpc/now.h"

#include "common/base/clocks.h"
#include "gtest/gtest.h"
#include "tests/server/memory/store/at.h"

namespace gannet {
namespace {

uint64_t g_wall_ms = 0;
int64_t g_boot_ns = 0;

ServerClock StartAt(uint64_t wall_ms, int64_t boot_ns) {
  g_wall_ms = wall_ms;
  g_boot_ns = boot_ns;
  return ServerClock::Start(
      {.wall = [] { return WallTime::FromNs(static_cast<int64_t>(g_wall_ms) * kNsPerMs); },
       .boot = [] { return BootTime::FromNs(g_boot_ns); }});
}

TEST(ServerClockTest, IsTheWallClockAtItsStartPlusBootTime) {
  const ServerClock clock = StartAt(1'763'650'000'000, 77);
  EXPECT_EQ(clock.Read().server_time.ms(), 1'763'650'000'000u);
  EXPECT_EQ(clock.Read().boot, BootTime::FromNs(77));
  g_boot_ns += 1500 * kNsPerMs;
  EXPECT_EQ(clock.Read().server_time.ms(), 1'763'650'001'500u);
}

TEST(ServerClockTest, StepsOfTheWallClockChangeNothing) {
  constexpr uint64_t kStart = 1'763'650'000'000, kHour = 3'600'000;
  const ServerClock clock = StartAt(kStart, 0);
  for (uint64_t wall_ms : {kStart + kHour, kStart - kHour, uint64_t{0}}) {
    g_wall_ms = wall_ms;
    EXPECT_EQ(clock.Read().server_time.ms(), kStart) << wall_ms;
  }
  g_boot_ns = 10 * kNsPerMs;
  EXPECT_EQ(clock.Read().server_time.ms(), kStart + 10);
}

constexpr uint64_t kStartMs = 1'763'650'000'000;
constexpr int64_t kSecond = kNsPerSecond;

// Reads the clock each tenth of a second, and checks that it never goes back, and never slower than
// by 1/8192. Returns what it says in the end.
uint64_t Let(const ServerClock& clock, int64_t pass_ns) {
  const int64_t from_ns = g_boot_ns;
  const uint64_t from_ms = clock.Time().ms();
  uint64_t last_ms = from_ms;
  while (g_boot_ns < from_ns + pass_ns) {
    g_boot_ns += kSecond / 10;
    const uint64_t now_ms = clock.Time().ms();
    EXPECT_GE(now_ms, last_ms);
    last_ms = now_ms;
    const int64_t passed_ns = g_boot_ns - from_ns;
    const int64_t least_ms = (passed_ns - passed_ns / 8192) / kNsPerMs - 1;
    EXPECT_GE(static_cast<int64_t>(now_ms - from_ms), least_ms);
  }
  return last_ms;
}

TEST(ServerClockTest, IsSlewedBackToItsOwnIfATakeoverPutItAhead) {
  ServerClock clock = StartAt(kStartMs, 0);
  clock.Follow(At(kStartMs + 500));
  g_boot_ns = 10 * kSecond;
  EXPECT_EQ(clock.Time().ms(), kStartMs + 500) << "it stands still while it follows";
  clock.GoOnFrom(At(kStartMs + 10'000 + 600));
  EXPECT_EQ(clock.Time().ms(), kStartMs + 10'600) << "it does not jump";
  EXPECT_EQ(Let(clock, 8192 * kSecond / 10), kStartMs + 10'600 + 819'200 - 100);
  // After 600 ms times 8192 it is its own again, and no slower than that any more.
  Let(clock, 8192 * kSecond);
  EXPECT_EQ(clock.Time().ms(), kStartMs + static_cast<uint64_t>(g_boot_ns / kNsPerMs));
}

TEST(ServerClockTest, IsNotPutAheadIfItsPrimarysIsBehind) {
  ServerClock clock = StartAt(kStartMs, 0);
  clock.Follow(At(kStartMs - 5'000));
  clock.GoOnFrom(At(kStartMs - 4'000));
  EXPECT_EQ(Let(clock, 100 * kSecond), kStartMs - 4'000 + 100'000);
}

TEST(ServerClockTest, ATimeThatCannotBeOverflowsNothing) {
  for (const uint64_t ms : {UINT64_MAX, UINT64_MAX / 2, uint64_t{0}}) {
    ServerClock clock = StartAt(kStartMs, 0);
    clock.GoOnFrom(At(ms));
    EXPECT_EQ(clock.Time().ms(), ms);
  }
}

}  // namespace
}  // namespace gannet
