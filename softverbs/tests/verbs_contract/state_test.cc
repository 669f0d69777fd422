// States of a queue pair: which moves are legal (ibv_modify_qp(3), IBTA 10.3), and what SQD does.
#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

// Moves a queue pair to SQD and waits for its event. Returns 0 or the error number. Only a drained
// queue pair may go anywhere but to ERR and RESET.
int Drain(End& end, ibv_async_event* drained) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  const int error =
      std::abs(ibv_modify_qp(end.qp(), &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
  if (error != 0) return error;
  EXPECT_TRUE(AwaitAsyncEvent(end.id->verbs, IBV_EVENT_SQ_DRAINED, drained));
  EXPECT_EQ(drained->element.qp, end.qp());
  return 0;
}

class StateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_ON_IWARP("its states are others");
    pair_ = std::make_unique<Pair>();
  }
  ibv_qp* qp() { return pair_->client().qp(); }

  // Returns 0 or the error number.
  int MoveTo(ibv_qp_state state, int more = 0) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    attr.port_num = 1;
    attr.min_rnr_timer = 12;
    return std::abs(ibv_modify_qp(qp(), &attr, IBV_QP_STATE | more));
  }
  void ExpectRefused(std::initializer_list<ibv_qp_state> states) {
    const ibv_qp_state before = StateOf(qp());
    for (const ibv_qp_state state : states) {
      EXPECT_EQ(MoveTo(state), EINVAL) << before << " to " << state;
      EXPECT_EQ(StateOf(qp()), before);
    }
  }

  static constexpr int kInitAttributes = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  std::unique_ptr<Pair> pair_;
};

TEST_F(StateTest, ReadyToSendGoesNotBack) {
  ExpectRefused({IBV_QPS_INIT, IBV_QPS_RTR});
  EXPECT_EQ(MoveTo(IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER), 0);
  EXPECT_EQ(MoveTo(IBV_QPS_RTS, IBV_QP_DEST_QPN), EINVAL) << "only from INIT";
}

TEST_F(StateTest, DrainedGoesToReadyOrToAnEnd) {
  ibv_async_event drained{};
  if (Drain(pair_->client(), &drained) == EOPNOTSUPP) GTEST_SKIP() << "it has no SQD";
  ibv_ack_async_event(&drained);
  ExpectRefused({IBV_QPS_INIT, IBV_QPS_RTR});
  EXPECT_EQ(MoveTo(IBV_QPS_SQD, IBV_QP_MIN_RNR_TIMER), 0);
  EXPECT_EQ(MoveTo(IBV_QPS_RTS), 0);
  EXPECT_EQ(MoveTo(IBV_QPS_SQD), 0);
  EXPECT_EQ(MoveTo(IBV_QPS_ERR), 0);
}

TEST_F(StateTest, ErrorEndsOnlyInReset) {
  ASSERT_EQ(MoveTo(IBV_QPS_ERR), 0);
  ExpectRefused({IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD});
  EXPECT_EQ(MoveTo(IBV_QPS_RESET), 0);
}

TEST_F(StateTest, ResetGoesToInitAndNeedsItsAttributes) {
  ASSERT_EQ(MoveTo(IBV_QPS_RESET), 0);
  ExpectRefused({IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD});
  EXPECT_EQ(MoveTo(IBV_QPS_INIT, kInitAttributes), 0);
  ExpectRefused({IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD});
}

// On an Ethernet port the kernel refuses a path without a global route header, because only a GID
// leads to a peer there.
TEST_F(StateTest, AnEthernetPathNeedsAGid) {
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(qp()->context, 1, &port), 0);
  if (port.link_layer != IBV_LINK_LAYER_ETHERNET) GTEST_SKIP() << "the port has LIDs";
  constexpr int kRtrAttributes = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(qp(), &attr, kRtrAttributes, &init), 0);
  ASSERT_EQ(MoveTo(IBV_QPS_RESET), 0);
  ASSERT_EQ(MoveTo(IBV_QPS_INIT, kInitAttributes), 0);
  attr.qp_state = IBV_QPS_RTR;
  attr.ah_attr.is_global = 0;
  EXPECT_EQ(std::abs(ibv_modify_qp(qp(), &attr, IBV_QP_STATE | kRtrAttributes)), EINVAL);
  EXPECT_EQ(StateOf(qp()), IBV_QPS_INIT);
  attr.ah_attr.is_global = 1;
  EXPECT_EQ(std::abs(ibv_modify_qp(qp(), &attr, IBV_QP_STATE | kRtrAttributes)), 0);
}

// ibv_post_recv(3), ibv_post_send(3): RESET takes nothing, INIT receives only.
TEST_F(StateTest, WorkIsTakenFromInitOn) {
  ASSERT_EQ(MoveTo(IBV_QPS_RESET), 0);
  End& client = pair_->client();
  EXPECT_NE(PostReceive(client, client.buffer->Sge(0, 64)), 0);
  ASSERT_EQ(MoveTo(IBV_QPS_INIT, kInitAttributes), 0);
  EXPECT_EQ(PostReceive(client, client.buffer->Sge(0, 64)), 0);
  ibv_sge sge = client.buffer->Sge(0, 8);
  EXPECT_NE(Post(client, Send(&sge)), 0);
}

// IBTA 9.9.2: nobody answers, so the request fails when its retries are over.
TEST_F(StateTest, APeerThatIsNotReadyDoesNotAnswer) {
  ibv_qp* peer = pair_->server().qp();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(peer, &attr, IBV_QP_STATE), 0);
  End& client = pair_->client();
  ibv_sge sge = client.buffer->Sge(0, 8);
  Buffer& target = *pair_->server().buffer;
  EXPECT_EQ(Do(client, Read(&sge, target.address(), target.rkey())).status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(StateTest, APeerInInitDoesNotAnswer) {
  ibv_qp* peer = pair_->server().qp();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(peer, &attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(peer, &attr, IBV_QP_STATE | kInitAttributes), 0);
  End& client = pair_->client();
  ibv_sge sge = client.buffer->Sge(0, 8);
  EXPECT_EQ(Do(client, Send(&sge)).status, IBV_WC_RETRY_EXC_ERR);
}

// IBTA 10.3.1.5, SQD: what is posted waits; in RTS again it is done. ibv_get_async_event(3):
// SQ_DRAINED says that what was in progress is done.
class DrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_ON_IWARP("its SQD closes the connection");
    pair_ = std::make_unique<Pair>();
    const int error = Drain(client(), &drained_);
    if (error == EOPNOTSUPP) GTEST_SKIP() << "it has no SQD";
    ASSERT_EQ(error, 0);
  }
  End& client() { return pair_->client(); }

  void PostRead() {
    Buffer& target = *pair_->server().buffer;
    target.Fill(0x5a);
    sge_ = client().buffer->Sge(0, 8);
    ASSERT_EQ(Post(client(), Read(&sge_, target.address(), target.rkey())), 0);
  }

  std::unique_ptr<Pair> pair_;
  ibv_async_event drained_{};
  ibv_sge sge_{};
};

TEST_F(DrainTest, ADrainedSendQueueKeepsWorkBack) {
  ibv_ack_async_event(&drained_);
  EXPECT_EQ(StateOf(client().qp()), IBV_QPS_SQD);
  PostRead();
  EXPECT_TRUE(NoCompletion(client().cq));
  EXPECT_EQ(client().buffer->Word(0), 0u);
}

TEST_F(DrainTest, WorkThatWasKeptBackIsDoneWhenReadyAgain) {
  ibv_ack_async_event(&drained_);
  PostRead();
  ToState(client().qp(), IBV_QPS_RTS);
  EXPECT_EQ(NextCompletion(client().cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(client().buffer->Word(0), 0x5a5a5a5a5a5a5a5au);
}

TEST_F(DrainTest, ADrainedQueuePairIsReadyForNewWork) {
  ibv_ack_async_event(&drained_);
  ToState(client().qp(), IBV_QPS_RTS);
  PostRead();
  EXPECT_EQ(NextCompletion(client().cq).status, IBV_WC_SUCCESS);
}

// ibv_get_async_event(3): a queue pair is destroyed when its events were acknowledged.
TEST_F(DrainTest, DestroyingAQueuePairWaitsForTheAcknowledgementOfItsEvents) {
  ExpectWaitsFor([&] { ibv_ack_async_event(&drained_); }, [&] { rdma_destroy_qp(client().id); });
}

}  // namespace
}  // namespace verbs_contract
