#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "softverbs/tests/cm/cm_fixture.h"
#include "softverbs/tests/simulation/simulation.h"

// rdma_cm on the simulated device: a server and its clients in one thread.

namespace softverbs {
namespace {

using cm_test::Channel;
using cm_test::Endpoint;
using cm_test::Event;
using cm_test::Id;

// Steps until the channel has an event, and returns it.
Event Await(const Channel& channel) {
  while (!cm_test::Readable(channel) && softverbs_step() != 0) {
  }
  if (!cm_test::Readable(channel)) return nullptr;
  return cm_test::Next(channel);
}

rdma_cm_event_type NextType(const Channel& channel) {
  const Event event = Await(channel);
  EXPECT_NE(event, nullptr) << "nothing happens any more";
  return event == nullptr ? RDMA_CM_EVENT_DEVICE_REMOVAL : event->event;
}

class ConnectTest : public testing::Test {
 protected:
  Id Connect(const Channel& channel) {
    Id id = cm_test::MakeId(channel);
    Endpoint to("127.0.0.1", cm_test::PortOf(listener_));
    EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, to.get(), 1000), 0);
    EXPECT_EQ(NextType(channel), RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(id.get(), 1000), 0);
    EXPECT_EQ(NextType(channel), RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_conn_param param = cm_test::Param("hello");
    EXPECT_EQ(rdma_connect(id.get(), &param), 0);
    return id;
  }

  // Accepts so many connections.
  std::vector<Id> Accept(size_t count) {
    std::vector<Id> accepted;
    while (accepted.size() < count) {
      Event event = Await(server_);
      if (event == nullptr || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) break;
      rdma_cm_id* id = event->id;
      event.reset();
      rdma_conn_param param = cm_test::Param();
      EXPECT_EQ(rdma_accept(id, &param), 0);
      accepted.emplace_back(id);
    }
    EXPECT_EQ(accepted.size(), count);
    return accepted;
  }

  Simulation simulation_{3};
  Channel server_ = cm_test::MakeChannel();
  Channel client_ = cm_test::MakeChannel();
  Id listener_ = cm_test::Listen(server_);
};

TEST_F(ConnectTest, ManyClientsOfOneServerInOneThread) {
  constexpr int kClients = 20;
  std::vector<Channel> channels;
  std::vector<Id> clients;
  for (int i = 0; i < kClients; ++i) {
    channels.push_back(cm_test::MakeChannel());
    clients.push_back(Connect(channels.back()));
  }
  const std::vector<Id> accepted = Accept(kClients);
  for (int i = 0; i < kClients; ++i) {
    EXPECT_EQ(NextType(channels[i]), RDMA_CM_EVENT_CONNECT_RESPONSE);
    EXPECT_EQ(rdma_establish(clients[i].get()), 0);
  }
  for (int i = 0; i < kClients; ++i) EXPECT_EQ(NextType(server_), RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(ConnectTest, RefusedOnDemand) {
  ASSERT_EQ(softverbs_set_faults("refuse_connect=1", nullptr, 0), 0);
  const Id id = Connect(client_);
  const Event event = Await(client_);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(event->status, 8) << "as when nobody listens";
  EXPECT_EQ(softverbs_fault_count("refuse_connect"), 1u);
}

TEST_F(ConnectTest, SlowOnDemandAndReplayedBySeed) {
  const auto connect = [this](const char* plan) {
    EXPECT_EQ(softverbs_set_faults(plan, nullptr, 0), 0);
    const int64_t began = softverbs_now_ns();
    const Id id = Connect(client_);
    const std::vector<Id> accepted = Accept(1);
    EXPECT_EQ(softverbs_fault_count("slow_connect"), 1u);
    const int64_t took_ms = (softverbs_now_ns() - began) / 1'000'000;
    EXPECT_EQ(NextType(client_), RDMA_CM_EVENT_CONNECT_RESPONSE);
    EXPECT_EQ(rdma_establish(id.get()), 0);
    EXPECT_EQ(NextType(server_), RDMA_CM_EVENT_ESTABLISHED);
    return took_ms;
  };
  const int64_t first = connect("seed=5,slow_connect=1:10s");
  EXPECT_GT(first, 0) << "milliseconds";
  EXPECT_EQ(connect("seed=5,slow_connect=1:10s"), first);
  EXPECT_NE(connect("seed=6,slow_connect=1:10s"), first);
}

TEST_F(ConnectTest, ADisconnectThroughADeadPortTimesOut) {
  const Id id = Connect(client_);
  const std::vector<Id> accepted = Accept(1);
  EXPECT_EQ(NextType(client_), RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(rdma_establish(id.get()), 0);
  EXPECT_EQ(NextType(server_), RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_EQ(softverbs_set_port(0, 0), 0);
  const int64_t began = softverbs_now_ns();
  ASSERT_EQ(rdma_disconnect(id.get()), 0);
  const Event event = Await(client_);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(event->status, -ETIMEDOUT);
  EXPECT_GE(softverbs_now_ns() - began, 68'000'000'000);
  simulation_.RunUntilIdle();
  EXPECT_FALSE(cm_test::Readable(server_)) << "it passed a dead port";
  ASSERT_EQ(softverbs_set_port(0, 1), 0);
  EXPECT_EQ(NextType(server_), RDMA_CM_EVENT_DISCONNECTED);
}

// Whoever destroys its end while the port is down tells the peer later, or not at all.
TEST_F(ConnectTest, AnEndIsForgottenIfThePortStaysDown) {
  for (const bool comes_back : {true, false}) {
    Id id = Connect(client_);
    const std::vector<Id> accepted = Accept(1);
    EXPECT_EQ(NextType(client_), RDMA_CM_EVENT_CONNECT_RESPONSE);
    EXPECT_EQ(rdma_establish(id.get()), 0);
    EXPECT_EQ(NextType(server_), RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_EQ(softverbs_set_port(0, 0), 0);
    id.reset();
    const int64_t began = softverbs_now_ns();
    if (comes_back) {
      softverbs_step_until(began + 1'000'000'000);
    } else {
      simulation_.RunUntilIdle();
      EXPECT_GE(softverbs_now_ns() - began, 68'000'000'000);
    }
    EXPECT_FALSE(cm_test::Readable(server_)) << "it passed a dead port";
    ASSERT_EQ(softverbs_set_port(0, 1), 0);
    EXPECT_EQ(NextType(server_), RDMA_CM_EVENT_DISCONNECTED);
  }
}

}  // namespace
}  // namespace softverbs
