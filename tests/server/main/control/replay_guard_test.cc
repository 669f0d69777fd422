#include "server/main/control/replay_guard.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gannet {
namespace {

using Verdict = ReplayGuard::Verdict;

constexpr uint64_t kStartMs = 1'800'000'000'000;
constexpr uint64_t kWindowMs = ReplayGuard::kWindowMs;
constexpr uint32_t kKey = 7;

TEST(ReplayGuardTest, ARequestIsFreshOnce) {
  ReplayGuard guard(kStartMs);
  EXPECT_EQ(guard.Judge(kKey, 1, kStartMs, kStartMs), Verdict::kFresh);
  EXPECT_EQ(guard.Judge(kKey, 1, kStartMs, kStartMs), Verdict::kRepeated);
  EXPECT_EQ(guard.Judge(kKey, 2, kStartMs, kStartMs), Verdict::kFresh);
  EXPECT_EQ(guard.Judge(kKey + 1, 1, kStartMs, kStartMs), Verdict::kFresh);
}

TEST(ReplayGuardTest, ClocksMayDifferByTheWindow) {
  ReplayGuard guard(kStartMs);
  const uint64_t now_ms = kStartMs + 10 * kWindowMs;
  EXPECT_EQ(guard.Judge(kKey, 1, now_ms - kWindowMs, now_ms), Verdict::kFresh);
  EXPECT_EQ(guard.Judge(kKey, 2, now_ms - kWindowMs - 1, now_ms), Verdict::kOtherClock);
  EXPECT_EQ(guard.Judge(kKey, 3, now_ms + kWindowMs, now_ms), Verdict::kFresh);
  EXPECT_EQ(guard.Judge(kKey, 4, now_ms + kWindowMs + 1, now_ms), Verdict::kOtherClock);
  EXPECT_EQ(guard.Judge(kKey, 5, 0, now_ms), Verdict::kOtherClock);
  EXPECT_EQ(guard.Judge(kKey, 6, UINT64_MAX, now_ms), Verdict::kOtherClock);
}

// Whenever a request was accepted, and however often nonces were forgotten since, its copy is never
// accepted: it is known, or its time is over.
TEST(ReplayGuardTest, ACopyIsNeverFresh) {
  for (uint64_t accepted_ms = 0; accepted_ms <= 4 * kWindowMs; accepted_ms += kWindowMs / 10) {
    for (const int64_t ahead_ms : {-int64_t{kWindowMs}, int64_t{0}, int64_t{kWindowMs}}) {
      ReplayGuard guard(kStartMs);
      const uint64_t base_ms = kStartMs + 2 * kWindowMs;
      const uint64_t time_ms = base_ms + accepted_ms + static_cast<uint64_t>(ahead_ms);
      ASSERT_EQ(guard.Judge(kKey, 1, time_ms, base_ms + accepted_ms), Verdict::kFresh);
      for (uint64_t later_ms = 0; later_ms <= 6 * kWindowMs; later_ms += kWindowMs / 7) {
        const uint64_t now_ms = base_ms + accepted_ms + later_ms;
        ASSERT_NE(guard.Judge(kKey, 1, time_ms, now_ms), Verdict::kFresh)
            << accepted_ms << " " << ahead_ms << " " << later_ms;
        guard.Judge(kKey, 1000 + later_ms, now_ms, now_ms);  // others come meanwhile
      }
    }
  }
}

TEST(ReplayGuardTest, ARequestThatAnEarlierRunMayHaveAcceptedIsRefused) {
  ReplayGuard guard(kStartMs);
  EXPECT_EQ(guard.Judge(kKey, 1, kStartMs - 1, kStartMs + 5), Verdict::kBeforeStart);
  EXPECT_EQ(guard.Judge(kKey, 1, kStartMs, kStartMs + 5), Verdict::kFresh);
}

TEST(ReplayGuardTest, AClockThatIsSetBackBringsNoCopyBack) {
  ReplayGuard guard(kStartMs);
  const uint64_t now_ms = kStartMs + kWindowMs;
  ASSERT_EQ(guard.Judge(kKey, 1, now_ms, now_ms), Verdict::kFresh);
  const uint64_t late_ms = now_ms + 10 * kWindowMs;
  ASSERT_EQ(guard.Judge(kKey, 2, late_ms, late_ms), Verdict::kFresh);
  EXPECT_EQ(guard.Judge(kKey, 1, now_ms, now_ms), Verdict::kOtherClock);
  EXPECT_EQ(guard.now_ms(), late_ms);
}

TEST(ReplayGuardTest, RefusesWhatItCouldNotRemember) {
  ReplayGuard guard(kStartMs, /*nonces_max=*/3);
  for (uint64_t nonce = 1; nonce <= 3; ++nonce) {
    ASSERT_EQ(guard.Judge(kKey, nonce, kStartMs, kStartMs), Verdict::kFresh);
  }
  EXPECT_EQ(guard.Judge(kKey, 4, kStartMs, kStartMs), Verdict::kFull);
  EXPECT_EQ(guard.Judge(kKey, 3, kStartMs, kStartMs), Verdict::kRepeated);
  const uint64_t later_ms = kStartMs + 2 * kWindowMs + 1;
  EXPECT_EQ(guard.Judge(kKey, 4, later_ms, later_ms), Verdict::kFresh);
}

}  // namespace
}  // namespace gannet
