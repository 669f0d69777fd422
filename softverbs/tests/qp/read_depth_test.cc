// A device that allows fewer READs and atomics in flight: run once for each
// SOFTVERBS_MAX_RD_ATOMIC.

#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "softverbs/control.h"
#include "softverbs/tests/cm/cm_fixture.h"
#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

uint8_t Limit() {
  const char* limit = getenv("SOFTVERBS_MAX_RD_ATOMIC");
  return limit == nullptr ? 128 : static_cast<uint8_t>(std::atoi(limit));
}

class ReadDepthTest : public cm_test::CmTest {
 protected:
  Owned<ibv_context> device_ = OpenDevice();
};

TEST_F(ReadDepthTest, TheDeviceSaysSo) {
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(device_.get(), &attr), 0);
  EXPECT_EQ(attr.max_qp_rd_atom, Limit());
  EXPECT_EQ(attr.max_qp_init_rd_atom, Limit());
}

TEST_F(ReadDepthTest, AQueuePairCannotHaveMore) {
  Side side(device_.get(), {}), peer(device_.get(), {});
  ConnectOptions options;
  options.max_rd_atomic = options.max_dest_rd_atomic = Limit();
  side.ToRtr(peer.address(), options);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.max_rd_atomic = static_cast<uint8_t>(Limit() + 1);
  constexpr int kMask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                        IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  EXPECT_EQ(ibv_modify_qp(side.qp.get(), &attr, kMask), EINVAL);
  side.ToRts(options);
  EXPECT_EQ(side.State(), IBV_QPS_RTS);
}

TEST_F(ReadDepthTest, AConnectionIsNegotiatedWithinIt) {
  const cm_test::Id active = cm_test::Resolve(client_, port_);
  rdma_conn_param param = cm_test::Param();
  param.initiator_depth = static_cast<uint8_t>(Limit() + 1);
  EXPECT_EQ(rdma_connect(active.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
  param.initiator_depth = RDMA_MAX_INIT_DEPTH;
  param.responder_resources = RDMA_MAX_RESP_RES;
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  const cm_test::Event request = cm_test::Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request->param.conn.initiator_depth, Limit());
  EXPECT_EQ(request->param.conn.responder_resources, Limit());
  const cm_test::Id passive(request->id);
}

// READs are sent as packets here, because a READ that the initiator executes itself is over when it
// is posted. The peer stalls at each, so that they stay in flight for a while.
TEST_F(ReadDepthTest, OfManyPostedNoMoreAreInFlight) {
  constexpr uint64_t kReads = 60;
  constexpr size_t kBytes = 16'000;
  ConnectOptions options;
  options.max_rd_atomic = options.max_dest_rd_atomic = Limit();
  Pair pair(device_.get(), {}, {}, options);
  pair.b.Fill(0, kReads * kBytes, 7);
  ASSERT_EQ(softverbs_set_faults("stall_peer=1:100us", nullptr, 0), 0);
  uint32_t most = 0;
  for (uint64_t i = 0; i < kReads; ++i) {
    ASSERT_EQ(pair.a.Read(i, kBytes * i, kBytes, pair.b.address(), kBytes * i), 0);
    most = std::max(most, softverbs_reads_in_flight(pair.a.qp.get()));
  }
  for (uint64_t i = 0; i < kReads; ++i) {
    const ibv_wc wc = pair.a.Next();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, i);
    most = std::max(most, softverbs_reads_in_flight(pair.a.qp.get()));
  }
  softverbs_clear_faults();
  EXPECT_TRUE(pair.b.Matches(0, kReads * kBytes, 7));
  EXPECT_TRUE(pair.a.Matches(0, kReads * kBytes, 7));
  EXPECT_GE(most, 1u);
  EXPECT_LE(most, Limit());
  EXPECT_EQ(softverbs_reads_in_flight(pair.a.qp.get()), 0u);
}

}  // namespace
}  // namespace softverbs
