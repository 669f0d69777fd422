#include <gtest/gtest.h>

#include "softverbs/tests/cm/cm_fixture.h"

namespace softverbs::cm_test {
namespace {

class DisconnectTest : public CmTest {
 protected:
  void SetUp() override { passive_ = Establish(&active_); }

  // `first` disconnects, `second` hears of it and answers.
  void DisconnectFrom(const Id& first, const Channel& first_channel, const Id& second,
                      const Channel& second_channel) {
    ASSERT_EQ(rdma_disconnect(first.get()), 0);
    const Event heard = Expect(second_channel, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_EQ(heard->id, second.get());
    EXPECT_EQ(heard->status, 0);
    EXPECT_FALSE(Readable(first_channel));  // not before the peer answers
    ASSERT_EQ(rdma_disconnect(second.get()), 0);
    EXPECT_EQ(Expect(first_channel, RDMA_CM_EVENT_DISCONNECTED)->id, first.get());
    EXPECT_EQ(Expect(first_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT)->id, first.get());
    EXPECT_EQ(Expect(second_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT)->id, second.get());
  }

  Id active_;
  Id passive_;
};

TEST_F(DisconnectTest, FromTheActiveSide) { DisconnectFrom(active_, client_, passive_, server_); }

TEST_F(DisconnectTest, FromThePassiveSide) { DisconnectFrom(passive_, server_, active_, client_); }

TEST_F(DisconnectTest, FromBothSidesAtOnceIsReportedOnceToEach) {
  ASSERT_EQ(rdma_disconnect(active_.get()), 0);
  ASSERT_EQ(rdma_disconnect(passive_.get()), 0);
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_DISCONNECTED)->id, active_.get());
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_DISCONNECTED)->id, passive_.get());
  Expect(client_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
  Expect(server_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

TEST_F(DisconnectTest, DestroyingAnIdDisconnectsItsPeer) {
  active_.reset();
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_DISCONNECTED)->id, passive_.get());
}

TEST_F(DisconnectTest, DestroyingAnswersADisconnect) {
  ASSERT_EQ(rdma_disconnect(passive_.get()), 0);
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_DISCONNECTED)->id, active_.get());
  active_.reset();
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_DISCONNECTED)->id, passive_.get());
}

TEST_F(DisconnectTest, IsHarmlessAfterTheEnd) {
  DisconnectFrom(active_, client_, passive_, server_);
  EXPECT_EQ(rdma_disconnect(active_.get()), 0);
  EXPECT_FALSE(Readable(server_));
}

TEST_F(DisconnectTest, ListenerGoesWithoutItsConnections) {
  listener_.reset();
  DisconnectFrom(active_, client_, passive_, server_);
}

}  // namespace
}  // namespace softverbs::cm_test
