#include "common/protocol/versions.h"

#include <gtest/gtest.h>

#include "common/protocol/connect.h"

namespace gannet {
namespace {

TEST(VersionsTest, TheHighestThatBothSpeakIsChosen) {
  EXPECT_EQ(CommonVersion({4, 4}, {4, 4}), 4);
  EXPECT_EQ(CommonVersion({3, 4}, {4, 5}), 4);
  EXPECT_EQ(CommonVersion({4, 5}, {3, 4}), 4);
  EXPECT_EQ(CommonVersion({1, 9}, {3, 7}), 7);
  EXPECT_EQ(CommonVersion({3, 3}, {4, 5}), std::nullopt);
  EXPECT_EQ(CommonVersion({4, 5}, {3, 3}), std::nullopt);
}

TEST(VersionsTest, ARequestOfNeighboursIsAnsweredByTheirCommonVersion) {
  ConnectRequest request = NewConnectRequest();
  EXPECT_EQ(ChosenVersion(request), kProtocolVersionMax);
  request.version_max = kProtocolVersionMax + 1;
  EXPECT_EQ(ChosenVersion(request), kProtocolVersionMax);
  request.version_min = kProtocolVersionMax + 1;
  EXPECT_EQ(ChosenVersion(request), std::nullopt);
}

}  // namespace
}  // namespace gannet
