#include "server/rpc/log_limit.h"

#include "gtest/gtest.h"
#include "tests/common/base/boot_at.h"

namespace gannet {
namespace {

TEST(LogLimitTest, LetsAFewThroughEachSecondAndCountsTheRest) {
  constexpr uint32_t kLines = 10;
  LogLimit limit(kLines, kNsPerSecond);
  for (uint32_t i = 0; i < kLines; ++i) EXPECT_EQ(limit.Allow(BootAt(i)), 0u);
  for (uint32_t i = 0; i < 1000; ++i)
    EXPECT_EQ(limit.Allow(BootAt(kNsPerSecond - 1)), std::nullopt);
  EXPECT_EQ(limit.Allow(BootAt(kNsPerSecond)), 1000u) << "the next one says how many were left out";
  EXPECT_EQ(limit.Allow(BootAt(kNsPerSecond)), 0u);
}

}  // namespace
}  // namespace gannet
