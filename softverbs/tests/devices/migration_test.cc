#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "softverbs/control.h"
#include "softverbs/tests/cm/cm_fixture.h"
#include "softverbs/tests/support/verbs_fixture.h"

// A device with two ports of InfiniBand, and alternate paths (IBTA 17.2.8, ibv_modify_qp(3)). ctest
// sets SOFTVERBS_DEVICE_PORTS=2 and SOFTVERBS_LINK_LAYER=infiniband.

namespace softverbs {
namespace {

constexpr int kWhole = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr uint8_t kTimeout = 10;  // 4 ms a try
constexpr uint8_t kRetries = 3;

// From a port of one end to one of the other.
struct Path {
  uint8_t from = 1;
  uint8_t to = 1;
};
constexpr Path kFirst{1, 1}, kSecond{2, 2};

ibv_ah_attr ToAttr(Path path) {
  ibv_ah_attr attr{};
  attr.port_num = path.from;
  attr.dlid = path.to;  // the first port has the LID 1
  return attr;
}

void ConnectBy(Side& side, const Side& peer, Path path) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = path.from;
  attr.qp_access_flags = kAllAccess;
  ASSERT_EQ(ibv_modify_qp(side.qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = peer.qp->qp_num;
  attr.rq_psn = peer.address().psn;
  attr.max_dest_rd_atomic = 16;
  attr.min_rnr_timer = 1;
  attr.ah_attr = ToAttr(path);
  ASSERT_EQ(ibv_modify_qp(side.qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
  side.ToRts({.retry_cnt = kRetries, .timeout = kTimeout});
}

ibv_qp_attr Alternate(Path path) {
  ibv_qp_attr attr{};
  attr.alt_ah_attr = ToAttr(path);
  attr.alt_port_num = path.from;
  attr.alt_timeout = kTimeout;
  attr.path_mig_state = IBV_MIG_REARM;
  return attr;
}

int Load(Side& side, Path path) {
  ibv_qp_attr attr = Alternate(path);
  return ibv_modify_qp(side.qp.get(), &attr, kWhole);
}

int AskFor(Side& side, ibv_mig_state state) {
  ibv_qp_attr attr{};
  attr.path_mig_state = state;
  return ibv_modify_qp(side.qp.get(), &attr, IBV_QP_PATH_MIG_STATE);
}

ibv_qp_attr Query(const Side& side) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(side.qp.get(), &attr, kWhole | IBV_QP_PORT | IBV_QP_AV, &init), 0);
  return attr;
}

ibv_mig_state StateOf(const Side& side) { return Query(side).path_mig_state; }

class Migration : public ::testing::Test {
 protected:
  ~Migration() override { softverbs_clear_faults(); }

  static void Down(int port) { ASSERT_EQ(softverbs_set_port(port, 0), 0); }
  static void Up(int port) { ASSERT_EQ(softverbs_set_port(port, 1), 0); }

  void Connect(Path there = kFirst, Path back = kFirst) {
    ConnectBy(client_, server_, there);
    ConnectBy(server_, client_, back);
  }
  // One message each way, so that each end hears of the other's state.
  void Talk() {
    Add();
    ASSERT_EQ(server_.FetchAdd(9, 128, client_.address(), 64, 0), 0);
    ASSERT_EQ(server_.Next().status, IBV_WC_SUCCESS);
  }
  void Add() {
    ASSERT_EQ(client_.FetchAdd(1, 0, server_.address(), 0, 1), 0);
    ASSERT_EQ(client_.Next().status, IBV_WC_SUCCESS);
  }
  void Arm(Path there = kSecond, Path back = kSecond) {
    ASSERT_EQ(Load(client_, there), 0);
    ASSERT_EQ(Load(server_, back), 0);
    Talk();
    ASSERT_EQ(StateOf(client_), IBV_MIG_ARMED);
    ASSERT_EQ(StateOf(server_), IBV_MIG_ARMED);
  }
  // Takes the events that there are, and returns how many of this type are of the queue pair.
  int Events(const Side& side, ibv_event_type type) {
    while (HasEvent(context_.get())) events_.push_back(NextEvent(context_.get()));
    int count = 0;
    for (const ibv_async_event& event : events_) {
      count += event.event_type == type && event.element.qp == side.qp.get();
    }
    return count;
  }
  void ExpectMigrated(const Side& side, uint8_t port) {
    EXPECT_EQ(Query(side).port_num, port);
    EXPECT_EQ(StateOf(side), IBV_MIG_MIGRATED);
    EXPECT_EQ(side.State(), IBV_QPS_RTS);
  }

  Owned<ibv_context> context_ = OpenDevice();
  Side client_{context_.get(), {}};
  Side server_{context_.get(), {}};
  std::vector<ibv_async_event> events_;
};

TEST_F(Migration, TheDeviceHasTwoPorts) {
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context_.get(), &device), 0);
  EXPECT_EQ(device.phys_port_cnt, 2);
  EXPECT_NE(device.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG, 0u);
  ibv_gid first{}, second{};
  for (const auto& [number, gid] : {std::pair<uint8_t, ibv_gid*>{1, &first}, {2, &second}}) {
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(context_.get(), number, &port), 0);
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
    EXPECT_EQ(port.lid, number);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    ASSERT_EQ(ibv_query_gid(context_.get(), number, 0, gid), 0);
    ibv_gid_entry entry{};
    ASSERT_EQ(ibv_query_gid_ex(context_.get(), number, 0, &entry, 0), 0);
    EXPECT_EQ(entry.port_num, number);
  }
  EXPECT_NE(memcmp(&first, &second, sizeof(first)), 0);
  ibv_port_attr port{};
  EXPECT_EQ(ibv_query_port(context_.get(), 3, &port), EINVAL);
  EXPECT_EQ(softverbs_set_port(2, 0), EINVAL);
}

TEST_F(Migration, EachPortGoesDownByItself) {
  Down(1);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context_.get(), 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  ASSERT_EQ(ibv_query_port(context_.get(), 2, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_DOWN);
  const ibv_async_event event = NextEvent(context_.get());
  EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(event.element.port_num, 2);
}

TEST_F(Migration, APathThatIsNoneIsRefused) {
  Connect();
  EXPECT_EQ(AskFor(client_, IBV_MIG_REARM), EINVAL);  // it has none
  const auto refused = [&](auto change) {
    ibv_qp_attr attr = Alternate(kSecond);
    change(attr);
    EXPECT_EQ(ibv_modify_qp(client_.qp.get(), &attr, kWhole), EINVAL);
  };
  refused([](ibv_qp_attr& attr) { attr.alt_port_num = 3; });
  refused([](ibv_qp_attr& attr) { attr.alt_port_num = 0; });
  refused([](ibv_qp_attr& attr) { attr.alt_ah_attr.port_num = 1; });
  refused([](ibv_qp_attr& attr) { attr.alt_port_num = attr.alt_ah_attr.port_num = 3; });
  refused([](ibv_qp_attr& attr) { attr.alt_pkey_index = 1; });
  refused([](ibv_qp_attr& attr) { attr.alt_timeout = 32; });
  refused([](ibv_qp_attr& attr) { attr.alt_ah_attr.dlid = 9; });
  refused([](ibv_qp_attr& attr) { attr.path_mig_state = IBV_MIG_ARMED; });
  EXPECT_EQ(StateOf(client_), IBV_MIG_MIGRATED);
  EXPECT_EQ(Query(client_).alt_port_num, 0);
  EXPECT_EQ(Load(client_, kSecond), 0);
  EXPECT_EQ(AskFor(client_, IBV_MIG_ARMED), EINVAL);
}

TEST_F(Migration, ItIsArmedOnceBothEndsAskedForIt) {
  Connect();
  ASSERT_EQ(Load(client_, kSecond), 0);
  Talk();
  EXPECT_EQ(StateOf(client_), IBV_MIG_REARM);
  EXPECT_EQ(StateOf(server_), IBV_MIG_MIGRATED);
  ASSERT_EQ(Load(server_, kSecond), 0);
  Talk();
  const ibv_qp_attr attr = Query(client_);
  EXPECT_EQ(attr.path_mig_state, IBV_MIG_ARMED);
  EXPECT_EQ(attr.port_num, 1);
  EXPECT_EQ(attr.alt_port_num, 2);
  EXPECT_EQ(attr.alt_ah_attr.dlid, 2);
  EXPECT_EQ(attr.alt_timeout, kTimeout);
  EXPECT_EQ(StateOf(server_), IBV_MIG_ARMED);
  EXPECT_EQ(Events(client_, IBV_EVENT_PATH_MIG), 0);
}

TEST_F(Migration, APortThatGoesDownMovesBothEnds) {
  Connect();
  Arm();
  Down(0);
  Add();
  ExpectMigrated(client_, 2);
  ExpectMigrated(server_, 2);
  EXPECT_EQ(Events(client_, IBV_EVENT_PATH_MIG), 1);
  EXPECT_EQ(Events(server_, IBV_EVENT_PATH_MIG), 1);
  EXPECT_EQ(server_.Word(0), 2u);
}

// The request was executed, and its answer finds the port down.
TEST_F(Migration, WhatIsUnderWayIsDoneOnce) {
  Connect();
  Arm();
  ASSERT_EQ(softverbs_set_faults("seed=1,stall_peer=1:50ms", nullptr, 0), 0);
  for (uint64_t each = 0; each < 8; ++each) {
    ASSERT_EQ(client_.FetchAdd(each, 8 * each, server_.address(), 0, 1), 0);
  }
  EXPECT_TRUE(client_.Idle());
  Down(0);
  for (uint64_t each = 0; each < 8; ++each) {
    const ibv_wc done = client_.Next();
    ASSERT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_EQ(done.wr_id, each);
    EXPECT_EQ(client_.Word(8 * each), each + 1);
  }
  EXPECT_EQ(server_.Word(0), 9u);
}

// The port of the peer alone: nothing but the end of the retries tells of it.
TEST_F(Migration, TheEndOfRetriesMovesIt) {
  Connect({1, 2}, {2, 1});
  Arm({1, 1}, {1, 1});
  Down(1);
  Events(client_, IBV_EVENT_PATH_MIG);
  EXPECT_EQ(Events(client_, IBV_EVENT_PATH_MIG), 0);
  Add();
  ExpectMigrated(client_, 1);
  EXPECT_EQ(Query(client_).ah_attr.dlid, 1);
  EXPECT_EQ(Events(client_, IBV_EVENT_PATH_MIG), 1);
  EXPECT_EQ(Events(server_, IBV_EVENT_PATH_MIG), 1);
  EXPECT_EQ(server_.Word(0), 2u);
}

TEST_F(Migration, ThePeerFollowsWithItsNextPacket) {
  Connect();
  Arm();
  ASSERT_EQ(AskFor(client_, IBV_MIG_MIGRATED), 0);
  ExpectMigrated(client_, 2);
  EXPECT_EQ(StateOf(server_), IBV_MIG_ARMED);
  Add();
  ExpectMigrated(server_, 2);
  EXPECT_EQ(Events(server_, IBV_EVENT_PATH_MIG), 1);
  EXPECT_EQ(Events(client_, IBV_EVENT_PATH_MIG), 1);
}

TEST_F(Migration, ThePeerDoesNotFollowToAnotherPort) {
  Connect();
  Arm({2, 2}, {1, 1});  // the server's alternate path is its first one
  ASSERT_EQ(AskFor(client_, IBV_MIG_MIGRATED), 0);
  Add();
  Add();
  EXPECT_EQ(Query(server_).port_num, 1);
  EXPECT_EQ(StateOf(server_), IBV_MIG_REARM);
  EXPECT_EQ(Events(server_, IBV_EVENT_PATH_MIG_ERR), 1);
  EXPECT_EQ(Events(server_, IBV_EVENT_PATH_MIG), 0);
}

TEST_F(Migration, AnEndThatIsNotArmedBreaksAsBefore) {
  Connect();
  ASSERT_EQ(Load(client_, kSecond), 0);
  Talk();
  Down(0);
  ASSERT_EQ(client_.FetchAdd(1, 0, server_.address(), 0, 1), 0);
  EXPECT_EQ(client_.Next().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(Events(client_, IBV_EVENT_PATH_MIG), 0);
}

TEST_F(Migration, WithoutAnyPortItBreaksAndSaysSo) {
  Connect();
  Arm();
  Down(1);
  Down(0);
  ASSERT_EQ(client_.FetchAdd(1, 0, server_.address(), 0, 1), 0);
  EXPECT_EQ(client_.Next().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(Events(client_, IBV_EVENT_PATH_MIG_ERR), 1);
  EXPECT_EQ(Events(client_, IBV_EVENT_PATH_MIG), 0);
}

TEST_F(Migration, AnAlternatePortThatComesBackInTimeIsTaken) {
  Connect();
  Arm();
  Down(1);
  Down(0);
  ASSERT_EQ(client_.FetchAdd(1, 0, server_.address(), 0, 1), 0);
  Up(1);
  EXPECT_EQ(client_.Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(Query(client_).port_num, 2);
  EXPECT_EQ(server_.Word(0), 2u);
}

TEST_F(Migration, ItIsLoadedAgainAndMigratesBack) {
  Connect();
  for (int times = 0; times < 20; ++times) {
    const bool on_first = times % 2 == 0;
    const Path other = on_first ? kSecond : kFirst;
    Arm(other, other);
    Down(on_first ? 0 : 1);
    Add();
    ExpectMigrated(client_, other.from);
    ExpectMigrated(server_, other.from);
    Up(on_first ? 0 : 1);
  }
  EXPECT_EQ(server_.Word(0), 40u);
  EXPECT_EQ(Events(client_, IBV_EVENT_PATH_MIG), 20);
  EXPECT_EQ(Events(server_, IBV_EVENT_PATH_MIG), 20);
}

TEST_F(Migration, ResetForgetsThePath) {
  Connect();
  Arm();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(client_.qp.get(), &attr, IBV_QP_STATE), 0);
  EXPECT_EQ(Query(client_).alt_port_num, 0);
  EXPECT_EQ(StateOf(client_), IBV_MIG_MIGRATED);
}

// The connection manager's path of a second connection, by the second port, as an alternate one.
TEST_F(Migration, APathOfTheConnectionManagerServesAsAlternate) {
  const cm_test::Channel channel = cm_test::MakeChannel(), server_channel = cm_test::MakeChannel();
  const cm_test::Id listener = cm_test::Listen(server_channel, "127.0.1.1");
  cm_test::Id id = cm_test::MakeId(channel);
  cm_test::Endpoint from("127.0.1.1", 0), to("127.0.1.1", cm_test::PortOf(listener));
  ASSERT_EQ(rdma_resolve_addr(id.get(), from.get(), to.get(), 1000), 0);
  cm_test::Expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(id->port_num, 2);
  ASSERT_EQ(rdma_resolve_route(id.get(), 1000), 0);
  cm_test::Expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  rdma_conn_param param = cm_test::Param();
  ASSERT_EQ(rdma_connect(id.get(), &param), 0);
  const cm_test::Id passive(cm_test::Expect(server_channel, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  int mask = 0;
  ASSERT_EQ(rdma_init_qp_attr(passive.get(), &attr, &mask), 0);
  EXPECT_EQ(attr.ah_attr.port_num, 2);
  attr.alt_ah_attr = attr.ah_attr;
  attr.alt_port_num = 2;
  attr.alt_timeout = kTimeout;
  attr.path_mig_state = IBV_MIG_REARM;
  Connect();
  EXPECT_EQ(ibv_modify_qp(client_.qp.get(), &attr, kWhole), 0);
}

}  // namespace
}  // namespace softverbs
