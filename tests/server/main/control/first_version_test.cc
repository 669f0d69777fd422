#include "server/main/control/first_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/layout/version.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

TEST(FirstVersionTest, BeginsWhereTheClockIs) {
  EXPECT_EQ(FirstVersionByClock(WallTime::FromNs(kVersionClockStartNs + 5)).value(), 5u << 5);
}

TEST(FirstVersionTest, AClockThatIsNotSetIsAnErrorThatSaysWhatToDo) {
  const absl::Status status = FirstVersionByClock(WallTime::FromNs(86'400'000'000'000)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1970-01-02"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("set-ntp"));
}

}  // namespace
}  // namespace gannet
