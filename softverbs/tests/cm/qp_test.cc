#include <gtest/gtest.h>
#include <rdma/rdma_verbs.h>

#include <cstring>

#include "softverbs/tests/cm/cm_fixture.h"

namespace softverbs::cm_test {
namespace {

void AddQp(const Id& id) {
  ibv_qp_init_attr attr = QpAttributes();
  ASSERT_EQ(rdma_create_qp(id.get(), nullptr, &attr), 0) << strerror(errno);
}

ibv_qp_attr Query(const Id& id) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  EXPECT_EQ(ibv_query_qp(id->qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, &init), 0);
  return attr;
}

class QpTest : public CmTest {
 protected:
  // Both ends with queue pairs, established.
  void Connect(rdma_conn_param request = Param(), rdma_conn_param reply = Param()) {
    active_ = Resolve(client_, port_);
    AddQp(active_);
    passive_ = Request(active_, request);
    AddQp(passive_);
    ASSERT_EQ(rdma_accept(passive_.get(), &reply), 0) << strerror(errno);
    const Event established = Expect(client_, RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_EQ(established->id, active_.get());
    EXPECT_EQ(established->param.conn.qp_num, passive_->qp->qp_num);
    EXPECT_EQ(established->param.conn.private_data_len, 196);
    EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_ESTABLISHED)->id, passive_.get());
  }

  Id active_;
  Id passive_;
};

TEST_F(QpTest, CreatedQueuePairUsesDefaultsAndIsInInit) {
  const Id id = Resolve(client_, port_);
  AddQp(id);
  EXPECT_EQ(Query(id).qp_state, IBV_QPS_INIT);
  EXPECT_EQ(id->qp->pd, id->pd);
  EXPECT_NE(id->send_cq, nullptr);
  EXPECT_NE(id->recv_cq, nullptr);
  EXPECT_EQ(id->qp->send_cq, id->send_cq);
  EXPECT_EQ(id->send_cq->channel, id->send_cq_channel);
  EXPECT_EQ(id->send_cq->cq_context, id.get());
  ibv_qp_init_attr attr = QpAttributes();
  EXPECT_EQ(rdma_create_qp(id.get(), nullptr, &attr), -1);  // it has one
  EXPECT_EQ(errno, EINVAL);
  rdma_destroy_qp(id.get());
  EXPECT_EQ(id->qp, nullptr);
  EXPECT_EQ(id->send_cq, nullptr);
  EXPECT_EQ(id->recv_cq_channel, nullptr);
}

TEST_F(QpTest, BothQueuePairsAreReadyWhenEstablished) {
  Connect();
  EXPECT_EQ(Query(active_).qp_state, IBV_QPS_RTS);
  EXPECT_EQ(Query(passive_).qp_state, IBV_QPS_RTS);
}

TEST_F(QpTest, RemoteReadsFollowTheDepths) {
  rdma_conn_param reads = Param();
  reads.initiator_depth = 1;  // the active side will read, the passive side will not
  rdma_conn_param serves = Param();
  serves.responder_resources = 1;
  Connect(reads, serves);
  constexpr unsigned kReads = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  EXPECT_EQ(Query(passive_).qp_access_flags & kReads, kReads);
  EXPECT_EQ(Query(active_).qp_access_flags & kReads, 0u);
}

TEST_F(QpTest, DisconnectStopsTheCallersQueuePairOnly) {
  Connect();
  ASSERT_EQ(rdma_disconnect(active_.get()), 0);
  EXPECT_EQ(Query(active_).qp_state, IBV_QPS_ERR);
  Expect(server_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(Query(passive_).qp_state, IBV_QPS_RTS);
  ASSERT_EQ(rdma_disconnect(passive_.get()), 0);
  EXPECT_EQ(Query(passive_).qp_state, IBV_QPS_ERR);
}

TEST_F(QpTest, RejectionStopsTheQueuePair) {
  active_ = Resolve(client_, port_);
  AddQp(active_);
  passive_ = Request(active_);
  ASSERT_EQ(rdma_reject(passive_.get(), nullptr, 0), 0);
  Expect(client_, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(Query(active_).qp_state, IBV_QPS_ERR);
}

TEST_F(QpTest, LateRejectionEndsTheConnectionOnce) {
  active_ = Resolve(client_, port_);
  AddQp(active_);
  passive_ = Request(active_);
  AddQp(passive_);
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_accept(passive_.get(), &param), 0);
  ASSERT_EQ(rdma_reject(passive_.get(), nullptr, 0), 0);
  passive_.reset();
  // The application hears of one end only, whether or not the rejection came in time.
  const Event event = Next(client_);
  if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
    Expect(client_, RDMA_CM_EVENT_DISCONNECTED);
    return;
  }
  EXPECT_EQ(event->event, RDMA_CM_EVENT_CONNECT_ERROR);
  EXPECT_EQ(Query(active_).qp_state, IBV_QPS_ERR);
}

TEST_F(QpTest, SharedReceiveQueueOfTheIdIsUsed) {
  const Id id = Resolve(client_, port_);
  ibv_srq_init_attr srq = {};
  srq.attr.max_wr = 8;
  srq.attr.max_sge = 1;
  ASSERT_EQ(rdma_create_srq(id.get(), nullptr, &srq), 0) << strerror(errno);
  ASSERT_NE(id->srq, nullptr);
  AddQp(id);
  EXPECT_EQ(id->qp->srq, id->srq);
  rdma_destroy_qp(id.get());
  rdma_destroy_srq(id.get());
  EXPECT_EQ(id->srq, nullptr);
}

TEST_F(QpTest, DevicesAreListed) {
  int count = 0;
  ibv_context** list = rdma_get_devices(&count);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(count, 1);
  EXPECT_STREQ(ibv_get_device_name(list[0]->device), "softverbs0");
  EXPECT_EQ(list[1], nullptr);
  const Id id = Resolve(client_, port_);
  EXPECT_EQ(id->verbs, list[0]);
  rdma_free_devices(list);
}

}  // namespace
}  // namespace softverbs::cm_test
