#include <gtest/gtest.h>

#include <cerrno>

#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

class SendReceiveTest : public ::testing::Test {
 protected:
  Owned<ibv_context> device_ = OpenDevice();
};

TEST_F(SendReceiveTest, DeliversMessagesOfEverySize) {
  SideOptions options;
  options.memory = 4 << 20;
  Pair pair(device_.get(), options, options);
  constexpr size_t kSizes[] = {0,    1,     7,     8,     9,       63,      64,      65,     255,
                               4096, 16383, 16384, 16385, 100'000, 262'144, 1 << 20, 3 << 20};
  uint8_t seed = 1;
  for (size_t size : kSizes) {
    SCOPED_TRACE(size);
    pair.a.Fill(0, size, ++seed);
    memset(pair.b.memory.data(), 0, size);
    ASSERT_EQ(pair.b.PostReceive(5, 0, size), 0);
    ASSERT_EQ(pair.a.PostSend(6, 0, size), 0);
    const ibv_wc sent = pair.a.Next();
    EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
    EXPECT_EQ(sent.opcode, IBV_WC_SEND);
    EXPECT_EQ(sent.wr_id, 6u);
    EXPECT_EQ(sent.qp_num, pair.a.qp->qp_num);
    const ibv_wc received = pair.b.Next();
    EXPECT_EQ(received.status, IBV_WC_SUCCESS);
    EXPECT_EQ(received.opcode, IBV_WC_RECV);
    EXPECT_EQ(received.wr_id, 5u);
    EXPECT_EQ(received.byte_len, size);
    EXPECT_EQ(received.qp_num, pair.b.qp->qp_num);
    EXPECT_EQ(received.src_qp, pair.a.qp->qp_num);
    EXPECT_EQ(received.wc_flags, 0u);
    EXPECT_TRUE(pair.b.Matches(0, size, seed));
  }
}

TEST_F(SendReceiveTest, KeepsOrderUnderPipelining) {
  Pair pair(device_.get());
  for (int round = 0; round < 200; ++round) {
    for (uint64_t i = 0; i < 32; ++i) ASSERT_EQ(pair.b.PostReceive(i, 1024 * i, 1024), 0);
    for (uint64_t i = 0; i < 32; ++i) {
      pair.a.Word(1024 * i) = round * 100 + i;
      ASSERT_EQ(pair.a.PostSend(i, 1024 * i, 8 + i), 0);
    }
    for (uint64_t i = 0; i < 32; ++i) {
      ASSERT_EQ(pair.a.Next().wr_id, i);
      const ibv_wc received = pair.b.Next();
      ASSERT_EQ(received.wr_id, i);
      ASSERT_EQ(received.byte_len, 8 + i);
      ASSERT_EQ(pair.b.Word(1024 * i), round * 100 + i);
    }
  }
}

TEST_F(SendReceiveTest, CarriesImmediateData) {
  Pair pair(device_.get());
  ASSERT_EQ(pair.b.PostReceive(1, 0, 64), 0);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = 0x12345678;
  ASSERT_EQ(pair.a.Post(wr, pair.a.Sge(0, 16)), 0);
  const ibv_wc received = pair.b.Next();
  EXPECT_EQ(received.wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(received.imm_data, 0x12345678u);
}

TEST_F(SendReceiveTest, GathersAndScatters) {
  Pair pair(device_.get());
  pair.a.Fill(0, 100, 3);
  ibv_sge from[] = {pair.a.Sge(0, 10), pair.a.Sge(10, 0), pair.a.Sge(10, 90)};
  ibv_sge to[] = {pair.b.Sge(0, 1), pair.b.Sge(1, 63), pair.b.Sge(64, 100)};
  ibv_recv_wr receive{1, nullptr, to, 3};
  ibv_recv_wr* bad_receive;
  ASSERT_EQ(ibv_post_recv(pair.b.qp.get(), &receive, &bad_receive), 0);
  ibv_send_wr send{};
  send.sg_list = from;
  send.num_sge = 3;
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad_send;
  ASSERT_EQ(ibv_post_send(pair.a.qp.get(), &send, &bad_send), 0);
  EXPECT_EQ(pair.b.Next().byte_len, 100u);
  EXPECT_TRUE(pair.b.Matches(0, 100, 3));
}

TEST_F(SendReceiveTest, InlineDataMayBeReusedAtOnceAndNeedNoKey) {
  Pair pair(device_.get());
  char text[] = "inline data of no region";
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  // No receive is posted yet: the data must survive in the queue until the retry.
  ASSERT_EQ(pair.a.Post(wr, {reinterpret_cast<uint64_t>(text), sizeof(text), 0}), 0);
  memset(text, 'x', sizeof(text));
  ASSERT_EQ(pair.b.PostReceive(1, 0, 64), 0);
  EXPECT_EQ(pair.b.Next().byte_len, sizeof(text));
  EXPECT_STREQ(reinterpret_cast<char*>(pair.b.memory.data()), "inline data of no region");
  EXPECT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
}

TEST_F(SendReceiveTest, RefusesWhatExceedsTheQueuePair) {
  SideOptions options;
  options.max_inline = 64;
  options.max_send_wr = 4;
  options.max_recv_wr = 4;
  Pair pair(device_.get(), options, options);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_INLINE;
  EXPECT_NE(pair.a.Post(wr, pair.a.Sge(0, 65)), 0);
  wr.opcode = IBV_WR_TSO;
  wr.send_flags = 0;
  EXPECT_NE(pair.a.Post(wr, pair.a.Sge(0, 8)), 0);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
  EXPECT_EQ(pair.b.PostReceive(4, 0, 64), ENOMEM);
}

TEST_F(SendReceiveTest, AChainStopsAtTheFirstBadRequest) {
  Pair pair(device_.get());
  for (int i = 0; i < 2; ++i) ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
  ibv_sge sge = pair.a.Sge(0, 8);
  ibv_send_wr chain[3] = {};
  for (int i = 0; i < 3; ++i) {
    chain[i].wr_id = 10 + i;
    chain[i].next = i < 2 ? &chain[i + 1] : nullptr;
    chain[i].sg_list = &sge;
    chain[i].num_sge = i == 1 ? 5 : 1;  // one more than max_send_sge
    chain[i].opcode = IBV_WR_SEND;
    chain[i].send_flags = IBV_SEND_SIGNALED;
  }
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(pair.a.qp.get(), chain, &bad), EINVAL);
  EXPECT_EQ(bad, &chain[1]);
  EXPECT_EQ(pair.a.Next().wr_id, 10u);
  EXPECT_EQ(pair.b.Next().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(pair.b.Idle());
}

TEST_F(SendReceiveTest, UnsignalledRequestsHoldTheirPlacesUntilASignalledOneIsPolled) {
  SideOptions options;
  options.max_send_wr = 8;
  Pair pair(device_.get(), options);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
  for (int i = 0; i < 7; ++i) ASSERT_EQ(pair.a.PostSend(i, 0, 8, 0), 0);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(pair.b.Next().status, IBV_WC_SUCCESS);
  ASSERT_EQ(pair.a.PostSend(7, 0, 8), 0);
  EXPECT_EQ(pair.a.PostSend(8, 0, 8), ENOMEM);
  EXPECT_EQ(pair.a.Next().wr_id, 7u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(pair.a.PostSend(10 + i, 0, 8), 0);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(pair.a.Next().wr_id, 10u + i);
}

TEST_F(SendReceiveTest, TheWrInterfacePostsABatch) {
  Pair pair(device_.get());
  for (int i = 0; i < 2; ++i) ASSERT_EQ(pair.b.PostReceive(i, 1024 * i, 1024), 0);
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(pair.a.qp.get());
  pair.a.Fill(0, 100, 9);
  char text[16] = "first";
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = 0;
  ibv_wr_send(qp);
  ibv_wr_set_inline_data(qp, text, sizeof(text));
  memset(text, 0, sizeof(text));
  qp->wr_id = 2;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(qp, 77);
  ibv_wr_set_sge(qp, pair.a.mr->lkey, pair.a.memory.address(), 100);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(pair.b.Next().byte_len, 16u);
  EXPECT_STREQ(reinterpret_cast<char*>(pair.b.memory.data()), "first");
  EXPECT_EQ(pair.b.Next().imm_data, 77u);
  EXPECT_TRUE(pair.b.Matches(1024, 100, 9));
  EXPECT_EQ(pair.a.Next().wr_id, 2u);
}

TEST_F(SendReceiveTest, RnrIsRetriedUntilAReceiveIsPosted) {
  Pair pair(device_.get());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(pair.a.PostSend(i, 8 * i, 8), 0);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pair.a.Idle());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(pair.b.PostReceive(i, 64 * i, 64), 0);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(pair.a.Next().wr_id, i);
    EXPECT_EQ(pair.b.Next().wr_id, i);
  }
}

TEST_F(SendReceiveTest, RnrRetriesRunOut) {
  for (uint8_t retries : {0, 3}) {
    ConnectOptions connect;
    connect.rnr_retry = retries;
    Pair pair(device_.get(), {}, {}, connect);
    ASSERT_EQ(pair.a.PostSend(1, 0, 8), 0);
    ASSERT_EQ(pair.a.PostSend(2, 0, 8), 0);
    EXPECT_EQ(pair.a.Next().status, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(pair.a.Next().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(pair.a.State(), IBV_QPS_ERR);
    EXPECT_EQ(pair.b.State(), IBV_QPS_RTS);
  }
}

TEST_F(SendReceiveTest, ASendWaitsForAPeerThatIsNotReadyYet) {
  Side a(device_.get(), {}), b(device_.get(), {});
  ConnectOptions connect;
  connect.timeout = 0;  // for ever
  a.Connect(b.address(), connect);
  ASSERT_EQ(a.PostSend(1, 0, 8), 0);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(a.Idle());
  b.ToRtr(a.address());
  ASSERT_EQ(b.PostReceive(2, 0, 64), 0);
  EXPECT_EQ(a.Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.Next().wr_id, 2u);
  EXPECT_EQ(NextEvent(device_.get()).event_type, IBV_EVENT_COMM_EST);
}

TEST_F(SendReceiveTest, NobodyThereExceedsTheRetries) {
  Side a(device_.get(), {});
  Address nowhere = a.address();
  nowhere.qp_num = 0xfffff1;
  a.Connect(nowhere);
  ASSERT_EQ(a.PostSend(1, 0, 8), 0);
  EXPECT_EQ(a.Next().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(a.State(), IBV_QPS_ERR);
}

TEST_F(SendReceiveTest, AWrongPsnIsNotAConnection) {
  Side a(device_.get(), {}), b(device_.get(), {});
  Address wrong = a.address();
  wrong.psn ^= 1;
  a.ToRtr(b.address());
  b.ToRtr(wrong);
  a.ToRts();
  ASSERT_EQ(b.PostReceive(1, 0, 64), 0);
  ASSERT_EQ(a.PostSend(2, 0, 8), 0);
  EXPECT_EQ(a.Next().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_TRUE(b.Idle());
}

TEST_F(SendReceiveTest, AMessageTooLongForItsReceiveBreaksBothEnds) {
  Pair pair(device_.get());
  ASSERT_EQ(pair.b.PostReceive(1, 0, 99), 0);
  ASSERT_EQ(pair.b.PostReceive(2, 0, 100), 0);
  ASSERT_EQ(pair.a.PostSend(3, 0, 100), 0);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(pair.b.Next().status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(pair.b.Next().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(pair.a.State(), IBV_QPS_ERR);
  EXPECT_EQ(pair.b.State(), IBV_QPS_ERR);
}

TEST_F(SendReceiveTest, AReceiveWithoutARightKeyIsTheReceiversError) {
  Pair pair(device_.get());
  ibv_sge sge = pair.b.Sge(0, 64);
  sge.lkey ^= 1u << 20;
  ibv_recv_wr receive{1, nullptr, &sge, 1};
  ibv_recv_wr* bad;
  ASSERT_EQ(ibv_post_recv(pair.b.qp.get(), &receive, &bad), 0);
  ASSERT_EQ(pair.a.PostSend(3, 0, 8), 0);
  EXPECT_EQ(pair.b.Next().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_REM_OP_ERR);
}

TEST_F(SendReceiveTest, ASendWithoutARightKeyIsItsOwnError) {
  Pair pair(device_.get());
  ASSERT_EQ(pair.b.PostReceive(1, 0, 64), 0);
  ibv_send_wr wr{};
  wr.wr_id = 4;
  wr.opcode = IBV_WR_SEND;
  ibv_sge sge = pair.a.Sge(pair.a.memory.size() - 7, 8);  // one byte too far
  ASSERT_EQ(pair.a.Post(wr, sge), 0);
  const ibv_wc failed = pair.a.Next();
  EXPECT_EQ(failed.status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(failed.wr_id, 4u);
  EXPECT_EQ(pair.a.State(), IBV_QPS_ERR);
  EXPECT_TRUE(pair.b.Idle());
}

TEST_F(SendReceiveTest, TheErrorStateFlushesBothQueuesInOrder) {
  Pair pair(device_.get());
  for (uint64_t i = 0; i < 5; ++i) ASSERT_EQ(pair.a.PostReceive(100 + i, 0, 64), 0);
  for (uint64_t i = 0; i < 5; ++i) ASSERT_EQ(pair.a.PostSend(i, 0, 8, 0), 0);  // RNR
  pair.a.ToError();
  uint64_t next_send = 0, next_receive = 100;
  for (int i = 0; i < 10; ++i) {
    const ibv_wc wc = pair.a.Next();
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc.wr_id, wc.wr_id < 100 ? next_send++ : next_receive++);
  }
  EXPECT_EQ(next_send, 5u);
  EXPECT_EQ(next_receive, 105u);
  // Requests posted afterwards are flushed too.
  ASSERT_EQ(pair.a.PostSend(7, 0, 8, 0), 0);
  ASSERT_EQ(pair.a.PostReceive(107, 0, 64), 0);
  EXPECT_EQ(pair.a.Next().wr_id, 7u);
  EXPECT_EQ(pair.a.Next().wr_id, 107u);
  EXPECT_TRUE(pair.a.Idle());
  // The peer notices when it sends.
  ASSERT_EQ(pair.b.PostSend(9, 0, 8), 0);
  EXPECT_EQ(pair.b.Next().status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(SendReceiveTest, PostsAreRefusedInTheWrongState) {
  Side a(device_.get(), {}), b(device_.get(), {});
  EXPECT_EQ(a.PostReceive(1, 0, 8), EINVAL);
  EXPECT_EQ(a.PostSend(1, 0, 8), EINVAL);
  a.ToRtr(b.address());
  EXPECT_EQ(a.PostReceive(1, 0, 8), 0);
  EXPECT_EQ(a.PostSend(1, 0, 8), EINVAL);
}

TEST_F(SendReceiveTest, AQueuePairCanBeResetAndConnectedAnew) {
  Pair pair(device_.get());
  ASSERT_EQ(pair.a.PostReceive(1, 0, 64), 0);
  for (Side* side : {&pair.a, &pair.b}) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(side->qp.get(), &attr, IBV_QP_STATE), 0);
  }
  EXPECT_TRUE(pair.a.Idle());
  pair.a.ToRtr(pair.b.address());
  pair.b.ToRtr(pair.a.address());
  pair.b.ToRts();
  ASSERT_EQ(pair.a.PostReceive(2, 0, 64), 0);
  ASSERT_EQ(pair.b.PostSend(3, 0, 8), 0);
  EXPECT_EQ(pair.a.Next().wr_id, 2u);
  EXPECT_EQ(pair.b.Next().wr_id, 3u);
}

}  // namespace
}  // namespace softverbs
