#include "common/base/clocks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/server_time.h"

namespace gannet {
namespace {

// A part that is handed no clock does not compile, and a wall clock's time is not taken for
// another.
static_assert(!std::is_default_constructible_v<WallClock>);
static_assert(!std::is_default_constructible_v<BootClock>);
static_assert(!std::is_default_constructible_v<Clocks>);
static_assert(!std::is_constructible_v<WallClock, std::nullptr_t>);
static_assert(!std::is_constructible_v<WallClock, uint64_t (*)()>);
static_assert(!std::is_constructible_v<WallTime, uint64_t>);
static_assert(!std::is_convertible_v<WallTime, uint64_t>);
static_assert(!std::is_convertible_v<WallTime, int64_t>);
// Nothing becomes a time by which items expire, or is made of one, in silence.
static_assert(!std::is_convertible_v<WallTime, ServerTime>);
static_assert(!std::is_constructible_v<ServerTime, WallTime>);
static_assert(!std::is_constructible_v<ServerTime, uint64_t>);
static_assert(!std::is_constructible_v<ServerTime, int64_t>);
static_assert(!std::is_convertible_v<ServerTime, uint64_t>);
static_assert(!std::is_constructible_v<WallTime, ServerTime>);
// The same goes for CLOCK_BOOTTIME.
static_assert(!std::is_constructible_v<BootTime, int64_t>);
static_assert(!std::is_constructible_v<BootTime, WallTime>);
static_assert(!std::is_constructible_v<ServerTime, BootTime>);
static_assert(!std::is_convertible_v<BootTime, int64_t>);
static_assert(!std::is_constructible_v<BootClock, int64_t (*)()>);
static_assert(std::is_constructible_v<BootClock, BootTime (*)()>);

TEST(WallTimeTest, IsCutToWholeMilliseconds) {
  EXPECT_EQ(WallTime::FromNs(1'900'000'000'000 * kNsPerMs).ns(), 1'900'000'000'000'000'000);
  EXPECT_EQ(WallTime::FromNs(1'999'999).ms(), 1u);
  EXPECT_LT(WallTime::FromNs(1'999'999), WallTime::FromNs(2 * kNsPerMs));
}

TEST(ServerTimeTest, AnItemHasExpiredFromItsExpiryOn) {
  const ServerTime now = ServerTime::FromMs(1'000);
  EXPECT_TRUE(now.IsPast(Expiry::FromMs(1'000)));
  EXPECT_FALSE(now.IsPast(Expiry::FromMs(1'001)));
  EXPECT_TRUE((now + 1).IsPast(Expiry::FromMs(1'001)));
  EXPECT_FALSE(now.IsPast(Expiry())) << "it never expires";
  EXPECT_FALSE(ServerTime().IsPast(Expiry::FromMs(1)));
}

// As 0 in bytes, "never" would be earlier than all times.
TEST(ExpiryTest, IsATimeOrNever) {
  EXPECT_TRUE(Expiry().never());
  EXPECT_EQ(Expiry().ms(), 0u);
  EXPECT_EQ(Expiry::FromMs(0), Expiry());
  const Expiry expiry = Expiry::At(ServerTime::FromMs(5));
  EXPECT_FALSE(expiry.never());
  EXPECT_EQ(expiry.time(), ServerTime::FromMs(5));
  EXPECT_EQ(expiry, Expiry::FromMs(5));
}

TEST(ClocksTest, AreThoseThatWereHandedDown) {
  int64_t now_ns = 5;
  const Clocks clocks{.wall = [] { return WallTime::FromNs(7 * kNsPerMs); },
                      .boot = [&] { return BootTime::FromNs(now_ns); }};
  const Clocks handed_down = clocks;
  now_ns = 6;
  EXPECT_EQ(handed_down.wall.Now(), WallTime::FromNs(7 * kNsPerMs));
  EXPECT_EQ(handed_down.boot.Now().ns(), 6);
}

TEST(ClocksTest, OfTheMachineGoOn) {
  const Clocks clocks = MachineClocks();
  const WallTime wall = clocks.wall.Now();
  const BootTime boot = clocks.boot.Now();
  EXPECT_GT(wall, WallTime::FromNs(1'600'000'000'000 * kNsPerMs));
  EXPECT_GE(clocks.boot.Now(), boot);
  // CLOCK_BOOTTIME counts what CLOCK_MONOTONIC does, and the time that the machine was suspended.
  const int64_t awake_ns = MonotonicNs();
  EXPECT_GE(clocks.boot.Now().ns(), awake_ns);
}

}  // namespace
}  // namespace gannet
