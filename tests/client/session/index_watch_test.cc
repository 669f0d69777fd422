#include "client/session/index_watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace gannet {
namespace {

constexpr IndexGeometry kOne = {1, 4096, 100, 2};
constexpr IndexGeometry kTwo = {2, 65536, 200, 4};

class IndexWatchTest : public testing::Test {
 protected:
  IndexWatchTest() : connections_(2) {
    for (uint32_t i = 0; i < connections_.size(); ++i) {
      connections_[i].index = i;
      connections_[i].work = InFlightWork(64);
    }
    watch_.Restart(kOne);
  }
  uint32_t Post(uint32_t connection) {
    return connections_[connection].work.Push({0, InFlightWork::Kind::kRead});
  }
  void Complete(uint32_t connection, uint32_t position) {
    ASSERT_TRUE(connections_[connection].work.Complete(position, [](auto, bool) {}));
  }

  std::vector<ClientConnection> connections_;
  IndexWatch watch_;
};

TEST_F(IndexWatchTest, KnowsTheIndexOfTheGrantAtFirst) {
  EXPECT_EQ(watch_.known().acknowledged, 1u);
  EXPECT_EQ(watch_.known().newest, 1u);
  EXPECT_FALSE(watch_.HeartbeatDue());
}

TEST_F(IndexWatchTest, AsksOnceForAnIndexThatItDoesNotKnow) {
  watch_.Want();
  EXPECT_TRUE(watch_.HeartbeatDue());
  watch_.OnHeartbeatSent();
  watch_.Want();
  EXPECT_FALSE(watch_.HeartbeatDue());
  watch_.OnHeartbeatAnswered();
  watch_.OnNews({kOne, kTwo});
  EXPECT_FALSE(watch_.HeartbeatDue());
  EXPECT_EQ(watch_.known().acknowledged, 1u);
  EXPECT_EQ(watch_.known().newest, 2u);
}

TEST_F(IndexWatchTest, AcknowledgesAnIndexWhenAllEarlierReadsOfAllConnectionsAreDone) {
  const uint32_t first = Post(0), second = Post(1);
  watch_.OnNews({kTwo, {}});
  watch_.LookAt(connections_);
  const uint32_t later = Post(0);
  Complete(0, first);
  watch_.LookAt(connections_);
  EXPECT_EQ(watch_.known().acknowledged, 1u);
  Complete(1, second);
  watch_.LookAt(connections_);
  EXPECT_EQ(watch_.known().acknowledged, 2u);
  EXPECT_TRUE(watch_.HeartbeatDue()) << "the server waits for that";
  Complete(0, later);
}

TEST_F(IndexWatchTest, DoesNotAcknowledgeAnIndexWhileLookupsBeginAtTheOneBefore) {
  watch_.OnNews({kOne, kTwo});
  watch_.LookAt(connections_);
  EXPECT_EQ(watch_.known().acknowledged, 1u);
  EXPECT_FALSE(watch_.WaitsForReads());
}

}  // namespace
}  // namespace gannet
