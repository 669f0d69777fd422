#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>

#include "softverbs/tests/cm/cm_fixture.h"

namespace softverbs::cm_test {
namespace {

constexpr size_t kRequestData = 56;
constexpr size_t kReplyData = 196;

class ConnectTest : public CmTest {};

TEST_F(ConnectTest, RequestCarriesPaddedPrivateData) {
  const Id active = Resolve(client_, port_);
  rdma_conn_param param = Param("hello");
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  const Event request = Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(DataOf(request), Padded("hello", kRequestData));
  EXPECT_EQ(request->listen_id, listener_.get());
  EXPECT_EQ(request->status, 0);
  EXPECT_EQ(request->param.conn.qp_num, param.qp_num);
  const Id passive(request->id);
}

TEST_F(ConnectTest, RequestWithoutDataIsAllZeroes) {
  const Id active = Resolve(client_, port_);
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  const Event request = Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(DataOf(request), std::string(kRequestData, '\0'));
  const Id passive(request->id);
}

TEST_F(ConnectTest, ReplyCarriesPaddedPrivateData) {
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  rdma_conn_param param = Param("welcome");
  param.qp_num = 0x654321;
  ASSERT_EQ(rdma_accept(passive.get(), &param), 0);
  const Event response = Expect(client_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(response->id, active.get());
  EXPECT_EQ(DataOf(response), Padded("welcome", kReplyData));
  EXPECT_EQ(response->param.conn.qp_num, 0x654321u);
}

TEST_F(ConnectTest, FullSizePrivateDataArrivesWhole) {
  const Id active = Resolve(client_, port_);
  const std::string question(kRequestData, 'q');
  const std::string answer(kReplyData, 'a');
  rdma_conn_param param = Param(question);
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  const Event request = Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(DataOf(request), question);
  const Id passive(request->id);
  param = Param(answer);
  ASSERT_EQ(rdma_accept(passive.get(), &param), 0);
  EXPECT_EQ(DataOf(Expect(client_, RDMA_CM_EVENT_CONNECT_RESPONSE)), answer);
}

TEST_F(ConnectTest, TooMuchRequestDataIsInvalid) {
  const Id active = Resolve(client_, port_);
  const std::string data(kRequestData + 1, 'x');
  rdma_conn_param param = Param(data);
  EXPECT_EQ(rdma_connect(active.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
  param = Param("still usable");
  const Id passive = Request(active, param);
  EXPECT_NE(passive, nullptr);
}

TEST_F(ConnectTest, TooMuchReplyDataIsInvalidAndRefusesTheConnection) {
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  const std::string data(kReplyData + 1, 'x');
  rdma_conn_param param = Param(data);
  EXPECT_EQ(rdma_accept(passive.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_REJECTED)->status, 28);
}

TEST_F(ConnectTest, DepthsAppearSwappedAtThePeer) {
  const Id active = Resolve(client_, port_);
  rdma_conn_param param = Param();
  param.responder_resources = 3;
  param.initiator_depth = 5;
  param.retry_count = 9;  // three bits on the wire
  param.rnr_retry_count = 6;
  param.flow_control = 1;
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  const Event request = Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request->param.conn.responder_resources, 5);
  EXPECT_EQ(request->param.conn.initiator_depth, 3);
  EXPECT_EQ(request->param.conn.retry_count, 7);
  EXPECT_EQ(request->param.conn.rnr_retry_count, 6);
  EXPECT_EQ(request->param.conn.flow_control, 1);
  const Id passive(request->id);
  param = Param();
  param.responder_resources = 4;
  param.initiator_depth = 2;
  ASSERT_EQ(rdma_accept(passive.get(), &param), 0);
  const Event response = Expect(client_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(response->param.conn.responder_resources, 2);
  EXPECT_EQ(response->param.conn.initiator_depth, 4);
}

TEST_F(ConnectTest, MaximalDepthMeansWhatTheDeviceHas) {
  const Id active = Resolve(client_, port_);
  ibv_device_attr device = {};
  ASSERT_EQ(ibv_query_device(active->verbs, &device), 0);
  rdma_conn_param param = Param();
  param.responder_resources = RDMA_MAX_RESP_RES;
  param.initiator_depth = RDMA_MAX_INIT_DEPTH;
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  const Event request = Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request->param.conn.responder_resources, device.max_qp_init_rd_atom);
  EXPECT_EQ(request->param.conn.initiator_depth, device.max_qp_rd_atom);
  const Id passive(request->id);
}

TEST_F(ConnectTest, MoreDepthThanTheDeviceHasIsInvalid) {
  const Id active = Resolve(client_, port_);
  ibv_device_attr device = {};
  ASSERT_EQ(ibv_query_device(active->verbs, &device), 0);
  ASSERT_LT(device.max_qp_rd_atom, RDMA_MAX_RESP_RES - 1);
  rdma_conn_param param = Param();
  param.responder_resources = static_cast<uint8_t>(device.max_qp_rd_atom + 1);
  EXPECT_EQ(rdma_connect(active.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(ConnectTest, AddressesAreTheSameSeenFromBothSides) {
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  const auto* from = reinterpret_cast<sockaddr_in*>(rdma_get_local_addr(active.get()));
  const auto* to = reinterpret_cast<sockaddr_in*>(rdma_get_peer_addr(active.get()));
  EXPECT_EQ(std::memcmp(from, rdma_get_peer_addr(passive.get()), sizeof(*from)), 0);
  EXPECT_EQ(std::memcmp(to, rdma_get_local_addr(passive.get()), sizeof(*to)), 0);
  EXPECT_EQ(from->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(ntohs(rdma_get_dst_port(active.get())), port_);
  EXPECT_EQ(ntohs(rdma_get_src_port(passive.get())), port_);
  EXPECT_NE(rdma_get_src_port(active.get()), 0);
}

TEST_F(ConnectTest, IdsAreBoundToTheDevice) {
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  for (const Id* id : {&active, &passive}) {
    ASSERT_NE((*id)->verbs, nullptr);
    EXPECT_STREQ(ibv_get_device_name((*id)->verbs->device), "softverbs0");
    EXPECT_NE((*id)->pd, nullptr);
    EXPECT_EQ((*id)->port_num, 1);
    EXPECT_EQ((*id)->ps, RDMA_PS_TCP);
    EXPECT_EQ((*id)->qp_type, IBV_QPT_RC);
    EXPECT_EQ((*id)->route.num_paths, 1);
    EXPECT_NE((*id)->route.path_rec, nullptr);
    EXPECT_EQ((*id)->route.addr.addr.ibaddr.pkey, 0xffff);
  }
  EXPECT_EQ(active->verbs, passive->verbs);
}

TEST_F(ConnectTest, NewIdInheritsTheListenersContextAndChannel) {
  int context = 0;
  listener_->context = &context;
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  EXPECT_EQ(passive->context, &context);
  EXPECT_EQ(passive->channel, server_.get());
}

TEST_F(ConnectTest, EstablishesWithoutQueuePairs) {
  Id active;
  const Id passive = Establish(&active);
  EXPECT_FALSE(Readable(client_));
  EXPECT_FALSE(Readable(server_));
}

TEST_F(ConnectTest, NotifyEstablishesBeforeTheReadyToUse) {
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_accept(passive.get(), &param), 0);
  ASSERT_EQ(rdma_notify(passive.get(), IBV_EVENT_COMM_EST), 0);
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_ESTABLISHED)->id, passive.get());
  Expect(client_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  ASSERT_EQ(rdma_establish(active.get()), 0);
  ASSERT_EQ(rdma_disconnect(active.get()), 0);
  // There is no second ESTABLISHED: the next event is the end.
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_DISCONNECTED)->id, passive.get());
}

TEST_F(ConnectTest, CallsOutOfOrderAreInvalid) {
  const Id id = MakeId(client_);
  rdma_conn_param param = Param();
  EXPECT_EQ(rdma_resolve_route(id.get(), 1000), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_connect(id.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_accept(id.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_reject(id.get(), nullptr, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_disconnect(id.get()), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(ConnectTest, AttributesForAQueuePairOfTheApplication) {
  const Id active = Resolve(client_, port_);
  rdma_conn_param param = Param();
  param.responder_resources = 2;
  param.initiator_depth = 1;
  param.rnr_retry_count = 5;  // governs what the peer sends
  param.retry_count = 4;
  const Id passive = Request(active, param);
  ibv_qp_attr attr = {};
  int mask = 0;
  attr.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(rdma_init_qp_attr(passive.get(), &attr, &mask), 0);
  EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
  EXPECT_TRUE(attr.qp_access_flags & IBV_ACCESS_REMOTE_READ);
  attr.qp_state = IBV_QPS_RTR;
  ASSERT_EQ(rdma_init_qp_attr(passive.get(), &attr, &mask), 0);
  EXPECT_EQ(attr.dest_qp_num, param.qp_num);
  EXPECT_EQ(attr.max_dest_rd_atomic, 1);
  EXPECT_EQ(attr.min_rnr_timer, 0);
  attr.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(rdma_init_qp_attr(passive.get(), &attr, &mask), 0);
  EXPECT_EQ(attr.rnr_retry, 5);
  EXPECT_EQ(attr.retry_cnt, 4);
  EXPECT_EQ(attr.max_rd_atomic, 2);
}

TEST_F(ConnectTest, RemoteReadsAreOffWhenThePeerWillSendNone) {
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);  // initiator_depth 0
  ibv_qp_attr attr = {};
  int mask = 0;
  attr.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(rdma_init_qp_attr(passive.get(), &attr, &mask), 0);
  EXPECT_EQ(attr.qp_access_flags, static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE));
}

TEST_F(ConnectTest, SequenceNumbersMatchAcrossTheConnection) {
  Id active;
  const Id passive = Establish(&active);
  ibv_qp_attr mine = {}, theirs = {};
  int mask = 0;
  mine.qp_state = IBV_QPS_RTR;
  theirs.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(rdma_init_qp_attr(active.get(), &mine, &mask), 0);
  ASSERT_EQ(rdma_init_qp_attr(passive.get(), &theirs, &mask), 0);
  EXPECT_EQ(mine.rq_psn, theirs.sq_psn);
}

TEST_F(ConnectTest, AckTimeoutOptionReachesTheQueuePair) {
  Id active;
  const Id passive = Establish(&active);
  uint8_t timeout = 9;
  ASSERT_EQ(rdma_set_option(active.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
                            sizeof(timeout)),
            0);
  ibv_qp_attr attr = {};
  int mask = 0;
  attr.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(rdma_init_qp_attr(active.get(), &attr, &mask), 0);
  EXPECT_EQ(attr.timeout, 9);
  timeout = 32;
  EXPECT_EQ(rdma_set_option(active.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
                            sizeof(timeout)),
            -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace softverbs::cm_test
