// Receives: receiver not ready, and what happens to posted work when a queue pair fails.
#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

class RnrTest : public ::testing::Test {
 protected:
  void SetUp() override { SKIP_ON_IWARP("a SEND without a receive ends the connection"); }
};

TEST_F(RnrTest, SendWithoutAReceiveFailsAtOnceWithoutRetries) {
  Pair pair({.rnr_retry_count = 0});
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  EXPECT_EQ(Do(pair.client(), Send(&sge)).status, IBV_WC_RNR_RETRY_EXC_ERR);
  ExpectErrorState(pair.client());
  EXPECT_EQ(Do(pair.client(), Send(&sge)).status, IBV_WC_WR_FLUSH_ERR);
  // The receiver did nothing wrong and waits on.
  EXPECT_EQ(StateOf(pair.server().qp()), IBV_QPS_RTS);
}

TEST_F(RnrTest, RetriesRunOut) {
  Pair pair({.rnr_retry_count = 2});
  ibv_qp_attr attr{};
  attr.min_rnr_timer = 12;  // 0.64 ms; rdma_cm leaves 0, which is 655 ms
  ASSERT_EQ(ibv_modify_qp(pair.server().qp(), &attr, IBV_QP_MIN_RNR_TIMER), 0);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  EXPECT_EQ(Do(pair.client(), Send(&sge)).status, IBV_WC_RNR_RETRY_EXC_ERR);
  ExpectErrorState(pair.client());
}

TEST_F(RnrTest, SendWaitsForALateReceive) {
  Pair pair({.rnr_retry_count = 6});
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  ASSERT_EQ(Post(pair.client(), Send(&sge)), 0);
  EXPECT_TRUE(NoCompletion(pair.client().cq));
  ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(0, 64), 4), 0);
  EXPECT_EQ(NextCompletion(pair.server().cq).wr_id, 4u);
  EXPECT_EQ(NextCompletion(pair.client().cq).status, IBV_WC_SUCCESS);
}

// ibv_modify_qp(3): 7 is for ever. What was posted behind the SEND comes behind it.
TEST_F(RnrTest, SevenRetriesAreForEverAndKeepTheOrder) {
  Pair pair({.rnr_retry_count = 7});
  ibv_qp_attr attr{};
  attr.min_rnr_timer = 1;  // 0.01 ms
  ASSERT_EQ(ibv_modify_qp(pair.server().qp(), &attr, IBV_QP_MIN_RNR_TIMER), 0);
  Buffer& source = *pair.client().buffer;
  source.data()[0] = 1;
  source.data()[1] = 2;
  ibv_sge first = source.Sge(0, 1);
  ibv_sge second = source.Sge(1, 1);
  ASSERT_EQ(Post(pair.client(), Send(&first, 1)), 0);
  ASSERT_EQ(Post(pair.client(), Send(&second, 2)), 0);
  EXPECT_TRUE(NoCompletion(pair.client().cq));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(i, 1), i), 0);
    EXPECT_EQ(NextCompletion(pair.server().cq).wr_id, i);
    EXPECT_EQ(NextCompletion(pair.client().cq).wr_id, i + 1);
    EXPECT_EQ(pair.server().buffer->data()[i], i + 1);
  }
}

TEST(FlushTest, PostedReceivesAreFlushedInOrder) {
  Pair pair;
  for (uint32_t i = 0; i < 5; ++i) {
    ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(0, 64), 10 + i), 0);
  }
  ToState(pair.server().qp(), IBV_QPS_ERR);
  for (uint32_t i = 0; i < 5; ++i) {
    const ibv_wc wc = NextCompletion(pair.server().cq);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc.wr_id, 10 + i);
  }
  EXPECT_TRUE(NoCompletion(pair.server().cq));
}

TEST(FlushTest, AQueuePairInErrorServesNobody) {
  Pair pair;
  pair.server().buffer->Fill(0x5a);
  ToState(pair.server().qp(), IBV_QPS_ERR);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  ibv_send_wr quiet = Read(&sge, pair.server().buffer->address(), pair.server().buffer->rkey(), 1);
  quiet.send_flags = 0;
  if (TheDevice().is_iwarp()) {
    // It ended the connection with the server's queue pair: the post is refused, flushed, or (siw)
    // taken and forgotten.
    ibv_wc wc{};
    if (Post(pair.client(), quiet) == 0 && PollForAWhile(pair.client().cq, &wc)) {
      EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
  } else {
    const ibv_wc wc = Do(pair.client(), quiet);
    EXPECT_EQ(wc.wr_id, 1u) << "an error completes unsignaled work too";
    EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR) << ibv_wc_status_str(wc.status);
  }
  EXPECT_EQ(pair.client().buffer->Word(0), 0u);
}

TEST(FlushTest, FullSendQueueRefusesThePostWithENOMEM) {
  SKIP_ON_IWARP("a SEND without a receive ends the connection");
  Pair pair({.rnr_retry_count = 6});
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(pair.client().qp(), &attr, IBV_QP_CAP, &init), 0);
  ASSERT_GE(init.cap.max_send_wr, 64u);
  // Nothing completes while the peer has no receive posted.
  uint32_t posted = 0;
  int error = 0;
  while (posted < 10000 && (error = Post(pair.client(), Send(&sge, posted))) == 0) ++posted;
  EXPECT_EQ(error, ENOMEM);
  EXPECT_GE(posted, 64u);
}

TEST(FlushTest, MessageLongerThanTheReceiveIsAnErrorAtBothEnds) {
  Pair pair;
  ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(0, 16)), 0);
  pair.client().buffer->Fill(0x5a);
  ibv_sge sge = pair.client().buffer->Sge(0, 64);
  // InfiniBand: invalid request, local length error; Soft-RoCE: operation error, local protection
  // error; iWARP: a SEND completes when it was sent, or finds the connection at its end.
  const ibv_wc_status sent = Do(pair.client(), Send(&sge)).status;
  EXPECT_TRUE(sent == IBV_WC_REM_INV_REQ_ERR || sent == IBV_WC_REM_OP_ERR ||
              (TheDevice().is_iwarp() && (sent == IBV_WC_SUCCESS || sent == IBV_WC_LOC_QP_OP_ERR)))
      << ibv_wc_status_str(sent);
  const ibv_wc_status received = NextCompletion(pair.server().cq).status;
  EXPECT_TRUE(received == IBV_WC_LOC_LEN_ERR || received == IBV_WC_LOC_PROT_ERR ||
              received == IBV_WC_LOC_QP_OP_ERR)
      << ibv_wc_status_str(received);
  ExpectErrorState(pair.client());
  for (size_t i = 16; i < 64; ++i) ASSERT_EQ(pair.server().buffer->data()[i], 0) << i;
}

}  // namespace
}  // namespace verbs_contract
