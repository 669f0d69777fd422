// Receives: RNR, shared receive queues, and what happens to posted work when a queue pair fails.
#include <poll.h>

#include "tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

TEST(RnrTest, SendWithoutAReceiveFailsAfterItsRetries) {
  Pair pair({.rnr_retry_count = 0});
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  EXPECT_EQ(Do(pair.client(), Send(&sge)).status, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(StateOf(pair.client().qp()), IBV_QPS_ERR);
}

TEST(RnrTest, SendWaitsForALateReceive) {
  Pair pair({.rnr_retry_count = 6});
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  ASSERT_EQ(Post(pair.client(), Send(&sge)), 0);
  EXPECT_TRUE(NoCompletion(pair.client().cq));
  ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(0, 64), 4), 0);
  EXPECT_EQ(NextCompletion(pair.server().cq).wr_id, 4u);
  EXPECT_EQ(NextCompletion(pair.client().cq).status, IBV_WC_SUCCESS);
}

TEST(SrqTest, ManyQueuePairsTakeFromOneQueue) {
  Pair pair({.server_srq = true});
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(i * 64, 64), i), 0);
  }
  ibv_sge sge = pair.client().buffer->Sge(0, 16);
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(Do(pair.client(), Send(&sge)).status, IBV_WC_SUCCESS);
    const ibv_wc wc = NextCompletion(pair.server().cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.qp_num, pair.server().qp()->qp_num);
  }
}

TEST(SrqTest, LimitRaisesOneEvent) {
  Pair pair({.server_srq = true});
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(i * 64, 64), i), 0);
  }
  ibv_srq_attr attr{};
  attr.srq_limit = 6;
  ASSERT_EQ(ibv_modify_srq(pair.server().srq, &attr, IBV_SRQ_LIMIT), 0);
  ibv_sge sge = pair.client().buffer->Sge(0, 16);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(Do(pair.client(), Send(&sge)).status, IBV_WC_SUCCESS);
  ibv_context* verbs = pair.server().id->verbs;
  for (;;) {
    pollfd waiting{verbs->async_fd, POLLIN, 0};
    ASSERT_EQ(poll(&waiting, 1, 5000), 1) << "no SRQ limit event";
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(verbs, &event), 0);
    const bool limit = event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED;
    if (limit) {
      EXPECT_EQ(event.element.srq, pair.server().srq);
    }
    ibv_ack_async_event(&event);
    if (limit) break;
  }
  ASSERT_EQ(ibv_query_srq(pair.server().srq, &attr), 0);
  EXPECT_EQ(attr.srq_limit, 0u) << "a limit is armed once";
}

TEST(FlushTest, PostedReceivesAreFlushedInOrder) {
  Pair pair;
  for (uint32_t i = 0; i < 5; ++i) {
    ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(0, 64), 10 + i), 0);
  }
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(pair.server().qp(), &attr, IBV_QP_STATE), 0);
  for (uint32_t i = 0; i < 5; ++i) {
    const ibv_wc wc = NextCompletion(pair.server().cq);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc.wr_id, 10 + i);
  }
  EXPECT_TRUE(NoCompletion(pair.server().cq));
}

TEST(FlushTest, UnsignaledSendsAreFlushedTooAndThePeerIsNotServed) {
  Pair pair;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(pair.server().qp(), &attr, IBV_QP_STATE), 0);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  ibv_send_wr quiet = Read(&sge, pair.server().buffer->address(), pair.server().buffer->rkey(), 1);
  quiet.send_flags = 0;
  ASSERT_EQ(Post(pair.client(), quiet), 0);
  const ibv_wc wc = NextCompletion(pair.client().cq);
  EXPECT_EQ(wc.wr_id, 1u) << "an error completes unsignaled work too";
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR) << ibv_wc_status_str(wc.status);
}

TEST(FlushTest, FullSendQueueRefusesThePostWithENOMEM) {
  Pair pair({.rnr_retry_count = 6});
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(pair.client().qp(), &attr, IBV_QP_CAP, &init), 0);
  ASSERT_GE(init.cap.max_send_wr, pair.client().options.send_wrs);
  // Nothing completes while the peer has no receive posted.
  uint32_t posted = 0;
  int result = 0;
  while (posted < 10000 && (result = Post(pair.client(), Send(&sge, posted))) == 0) ++posted;
  EXPECT_EQ(std::abs(result), ENOMEM);
  EXPECT_GE(posted, pair.client().options.send_wrs);
}

}  // namespace
}  // namespace verbs_contract
