#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include "softverbs/control.h"
#include "softverbs/tests/cm/cm_fixture.h"
#include "softverbs/tests/devices/two_devices.h"
#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

// About 4 ms a try, 16 ms in all.
constexpr ConnectOptions kImpatient{.retry_cnt = 3, .timeout = 10};
// 4 s a try: longer than any port is down here.
constexpr ConnectOptions kPatient{.retry_cnt = 7, .timeout = 20};

// What asks is on the first device, what answers on the second.
class PortsOfTwo : public TwoDevices {
 protected:
  ~PortsOfTwo() override { softverbs_clear_faults(); }

  static void Down(int device) { ASSERT_EQ(softverbs_set_port(device, 0), 0); }
  static void Up(int device) { ASSERT_EQ(softverbs_set_port(device, 1), 0); }
  ibv_port_state State(ibv_context* context) {
    ibv_port_attr attr{};
    EXPECT_EQ(ibv_query_port(context, 1, &attr), 0);
    return attr.state;
  }

  Side client_{first_.get(), {}};
  Side server_{second_.get(), {}};
};

ibv_event_type NextEvent(ibv_context* context) {
  pollfd waits{context->async_fd, POLLIN, 0};
  EXPECT_EQ(poll(&waits, 1, 0), 1) << "no event";
  ibv_async_event event{};
  if ((waits.revents & POLLIN) == 0) return IBV_EVENT_GID_CHANGE;
  EXPECT_EQ(ibv_get_async_event(context, &event), 0);
  EXPECT_EQ(event.element.port_num, 1);
  ibv_ack_async_event(&event);
  return event.event_type;
}

bool HasEvent(ibv_context* context) {
  pollfd waits{context->async_fd, POLLIN, 0};
  return poll(&waits, 1, 0) == 1;
}

constexpr const char* kAddressOfFirst = "127.0.0.1";
constexpr const char* kAddressOfSecond = "127.0.1.1";

// Returns an id of the first device with its route to a listener of the second one resolved.
cm_test::Id Resolve(const cm_test::Channel& channel, const cm_test::Id& listener) {
  cm_test::Id id = cm_test::MakeId(channel);
  cm_test::Endpoint from(kAddressOfFirst, 0), to(kAddressOfSecond, cm_test::PortOf(listener));
  EXPECT_EQ(rdma_resolve_addr(id.get(), from.get(), to.get(), 1000), 0);
  cm_test::Expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(rdma_resolve_route(id.get(), 1000), 0);
  cm_test::Expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return id;
}

TEST_F(PortsOfTwo, EventsTellOfIt) {
  EXPECT_EQ(State(second_.get()), IBV_PORT_ACTIVE);
  Down(1);
  EXPECT_EQ(NextEvent(second_.get()), IBV_EVENT_PORT_ERR);
  EXPECT_EQ(State(second_.get()), IBV_PORT_DOWN);
  Down(1);
  Up(1);
  EXPECT_EQ(NextEvent(second_.get()), IBV_EVENT_PORT_ACTIVE);
  EXPECT_EQ(State(second_.get()), IBV_PORT_ACTIVE);
  EXPECT_FALSE(HasEvent(second_.get()));
  EXPECT_FALSE(HasEvent(first_.get()));
  EXPECT_EQ(softverbs_set_port(2, 0), EINVAL);
}

TEST_F(PortsOfTwo, RequestsToADeadPortRunOutOfRetries) {
  ConnectEach(client_, server_, kImpatient);
  server_.Word(0) = 7;
  Down(1);
  ASSERT_EQ(client_.FetchAdd(1, 0, server_.address(), 0, 1), 0);
  EXPECT_EQ(client_.Next().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(client_.State(), IBV_QPS_ERR);
  EXPECT_EQ(server_.State(), IBV_QPS_RTS);  // it does not notice
  Up(1);
  EXPECT_EQ(server_.Word(0), 7u);
}

TEST_F(PortsOfTwo, RequestsFromADeadPortRunOutOfRetries) {
  ConnectEach(client_, server_, kImpatient);
  Down(0);
  client_.Fill(0, 8, 3);
  ASSERT_EQ(client_.Write(1, 0, 8, server_.address(), 0), 0);
  EXPECT_EQ(client_.Next().status, IBV_WC_RETRY_EXC_ERR);
  Up(0);
  EXPECT_EQ(server_.Word(0), 0u);
}

TEST_F(PortsOfTwo, ThoseInTheWayAreSentAgainWhenThePortComesBack) {
  ConnectEach(client_, server_, {.retry_cnt = 7, .timeout = 14});  // 67 ms a try
  for (const int device : {0, 1}) {
    Down(device);
    ASSERT_EQ(client_.FetchAdd(1, 0, server_.address(), 0, 1), 0);
    ASSERT_EQ(client_.Read(2, 8, 8, server_.address(), 0), 0);
    EXPECT_TRUE(client_.Idle());
    Up(device);
    EXPECT_EQ(client_.Next().status, IBV_WC_SUCCESS);
    EXPECT_EQ(client_.Next().status, IBV_WC_SUCCESS);
    EXPECT_EQ(client_.Word(8), static_cast<uint64_t>(device) + 1);
  }
}

// It was executed, and its requester cannot know.
TEST_F(PortsOfTwo, AnAnswerThatADeadPortMissedIsLost) {
  ConnectEach(client_, server_, kImpatient);
  // The request waits at the peer, and its answer finds the port down.
  ASSERT_EQ(softverbs_set_faults("seed=1,stall_peer=1:50ms", nullptr, 0), 0);
  ASSERT_EQ(client_.FetchAdd(1, 0, server_.address(), 0, 1), 0);
  Down(0);
  EXPECT_EQ(client_.Next().status, IBV_WC_RETRY_EXC_ERR);
  while (__atomic_load_n(&server_.Word(0), __ATOMIC_RELAXED) == 0) EXPECT_TRUE(client_.Idle());
}

TEST_F(PortsOfTwo, TheOtherDeviceGoesOn) {
  Side other_client(first_.get(), {}), other_server(first_.get(), {});
  ConnectEach(other_client, other_server, kPatient);
  Down(1);
  other_server.Fill(0, 100, 9);
  ASSERT_EQ(other_client.Read(1, 0, 100, other_server.address(), 0), 0);
  EXPECT_EQ(other_client.Next().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(other_client.Matches(0, 100, 9));
}

// A connection from the first device to the second one. The port of one of them goes down.
class ConnectionOfTwo : public PortsOfTwo, public ::testing::WithParamInterface<int> {
 protected:
  void Connect() {
    active_ = Resolve(active_channel_, listener_);
    rdma_conn_param param = cm_test::Param();
    ASSERT_EQ(rdma_connect(active_.get(), &param), 0);
  }
  void AwaitRequest() {
    passive_.reset(cm_test::Expect(passive_channel_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  }
  void Accept() {
    rdma_conn_param param = cm_test::Param();
    ASSERT_EQ(rdma_accept(passive_.get(), &param), 0);
  }
  void Establish() {
    Connect();
    AwaitRequest();
    Accept();
    cm_test::Expect(active_channel_, RDMA_CM_EVENT_CONNECT_RESPONSE);
    ASSERT_EQ(rdma_establish(active_.get()), 0);
    cm_test::Expect(passive_channel_, RDMA_CM_EVENT_ESTABLISHED);
  }
  // Expects that neither end hears anything for a while.
  void ExpectSilence() {
    pollfd ends[] = {{passive_channel_->fd, POLLIN, 0}, {active_channel_->fd, POLLIN, 0}};
    EXPECT_EQ(poll(ends, 2, 100), 0) << "something passed a dead port";
  }

  const cm_test::Channel active_channel_ = cm_test::MakeChannel();
  const cm_test::Channel passive_channel_ = cm_test::MakeChannel();
  const cm_test::Id listener_ = cm_test::Listen(passive_channel_, kAddressOfSecond);
  cm_test::Id active_, passive_;
};

TEST_P(ConnectionOfTwo, ARequestWaitsForThePort) {
  Down(GetParam());
  Connect();
  ExpectSilence();
  Up(GetParam());
  AwaitRequest();
}

TEST_P(ConnectionOfTwo, AReplyWaitsForThePort) {
  Connect();
  AwaitRequest();
  Down(GetParam());
  Accept();
  ExpectSilence();
  Up(GetParam());
  cm_test::Expect(active_channel_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  ASSERT_EQ(rdma_reject(active_.get(), nullptr, 0), 0);
  cm_test::Expect(passive_channel_, RDMA_CM_EVENT_REJECTED);
}

TEST_P(ConnectionOfTwo, ADisconnectWaitsForThePort) {
  Establish();
  Down(GetParam());
  ASSERT_EQ(rdma_disconnect(active_.get()), 0);
  ExpectSilence();
  Up(GetParam());
  cm_test::Expect(passive_channel_, RDMA_CM_EVENT_DISCONNECTED);
  Down(GetParam());
  ASSERT_EQ(rdma_disconnect(passive_.get()), 0);
  cm_test::Expect(passive_channel_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
  ExpectSilence();
  Up(GetParam());
  cm_test::Expect(active_channel_, RDMA_CM_EVENT_DISCONNECTED);
  cm_test::Expect(active_channel_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

// Nobody sees that the other end is gone, whichever cable is pulled.
TEST_P(ConnectionOfTwo, AnEndIsNotSeenThroughADeadPort) {
  Establish();
  Down(GetParam());
  active_.reset();
  ExpectSilence();
  Up(GetParam());
  cm_test::Expect(passive_channel_, RDMA_CM_EVENT_DISCONNECTED);
}

// A port that is back for a moment lets all pass in its order, or nothing.
TEST_P(ConnectionOfTwo, NothingIsLostByAPortThatFlaps) {
  Establish();
  Down(GetParam());
  ASSERT_EQ(rdma_disconnect(active_.get()), 0);
  for (int times = 0; times < 100; ++times) {
    Up(GetParam());
    Down(GetParam());
  }
  active_.reset();
  Up(GetParam());
  cm_test::Expect(passive_channel_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(rdma_disconnect(passive_.get()), 0);
  cm_test::Expect(passive_channel_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

INSTANTIATE_TEST_SUITE_P(EachPort, ConnectionOfTwo, ::testing::Values(0, 1));

TEST_F(PortsOfTwo, APlanTakesAPortDownAndUp) {
  char error[256] = "";
  ASSERT_EQ(softverbs_set_faults("port_down=1:1ms:20ms", error, sizeof(error)), 0) << error;
  for (const ibv_event_type type : {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE}) {
    pollfd waits{second_->async_fd, POLLIN, 0};
    ASSERT_EQ(poll(&waits, 1, 20'000), 1);
    EXPECT_EQ(NextEvent(second_.get()), type);
  }
  EXPECT_EQ(softverbs_fault_count("port_down"), 1u);
}

// A device that died, as others see it: a port that never comes back.
TEST_F(PortsOfTwo, APlanKillsOneDevice) {
  ConnectEach(client_, server_, kImpatient);
  Side other_client(first_.get(), {}), other_server(first_.get(), {});
  ConnectEach(other_client, other_server, kPatient);
  ASSERT_EQ(softverbs_set_faults("device_dead=1:1ms", nullptr, 0), 0);
  pollfd waits{second_->async_fd, POLLIN, 0};
  ASSERT_EQ(poll(&waits, 1, 20'000), 1);
  EXPECT_EQ(NextEvent(second_.get()), IBV_EVENT_DEVICE_FATAL);
  ASSERT_EQ(client_.Read(1, 0, 8, server_.address(), 0), 0);
  EXPECT_EQ(client_.Next().status, IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(other_client.Read(1, 0, 8, other_server.address(), 0), 0);
  EXPECT_EQ(other_client.Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(softverbs_fault_count("device_dead"), 1u);
  Up(1);
  EXPECT_EQ(State(first_.get()), IBV_PORT_ACTIVE);
  EXPECT_EQ(State(second_.get()), IBV_PORT_DOWN);
  EXPECT_FALSE(HasEvent(second_.get()));
  EXPECT_FALSE(HasEvent(first_.get()));
}

TEST_F(PortsOfTwo, TheEndOfFaultsBringsThemUp) {
  Down(1);
  softverbs_clear_faults();
  EXPECT_EQ(State(second_.get()), IBV_PORT_ACTIVE);
  EXPECT_EQ(NextEvent(second_.get()), IBV_EVENT_PORT_ERR);
  EXPECT_EQ(NextEvent(second_.get()), IBV_EVENT_PORT_ACTIVE);
  ASSERT_EQ(softverbs_set_faults("device_dead=1:1ns", nullptr, 0), 0);
  pollfd waits{second_->async_fd, POLLIN, 0};
  ASSERT_EQ(poll(&waits, 1, 20'000), 1);
  EXPECT_EQ(NextEvent(second_.get()), IBV_EVENT_DEVICE_FATAL);
  softverbs_clear_faults();
  EXPECT_EQ(State(second_.get()), IBV_PORT_ACTIVE);
}

TEST_F(PortsOfTwo, TheDeviceIsWholeAfterThePortCameBack) {
  Down(1);
  Up(1);
  Side client(second_.get(), {}), server(second_.get(), {});
  ConnectEach(client, server, kPatient);
  server.Fill(0, 1 << 20, 5);
  ASSERT_EQ(client.Read(1, 0, 1 << 20, server.address(), 0), 0);
  EXPECT_EQ(client.Next().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(client.Matches(0, 1 << 20, 5));
}

}  // namespace
}  // namespace softverbs
