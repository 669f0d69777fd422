#include <gtest/gtest.h>

#include <cerrno>

#include "softverbs/tests/support/verbs_fixture.h"

// UC queue pairs: a request is complete when it is sent; a message that cannot be taken is lost
// without notice.

namespace softverbs {
namespace {

SideOptions Unreliable() {
  SideOptions options;
  options.type = IBV_QPT_UC;
  return options;
}

// Reads a word that a peer's WRITE may be changing. ThreadSanitizer would call that a race: the
// device copies with plain stores, as a NIC does.
__attribute__((no_sanitize("thread"))) uint64_t LoadWord(const uint64_t& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

class UnreliableTest : public ::testing::Test {
 protected:
  // Waits until b's device has taken everything that a sent so far: requests of one queue pair are
  // taken in order, and a WRITE that comes after them needs no receive.
  void AwaitTaken() {
    constexpr uint64_t kMark = 3'000;
    pair_.a.Word(kMark) = 1;
    ASSERT_EQ(pair_.a.Write(98, kMark, 8, pair_.b.address(), kMark), 0);
    EXPECT_EQ(pair_.a.Next().status, IBV_WC_SUCCESS);
    while (LoadWord(pair_.b.Word(kMark)) != 1) EXPECT_TRUE(pair_.b.Idle());
  }

  // Expects that both ends still work: a message sent now arrives in the receive `wr_id`.
  void ExpectNextArrives(uint64_t wr_id) {
    pair_.a.Fill(0, 100, 77);
    ASSERT_EQ(pair_.a.PostSend(99, 0, 100), 0);
    const ibv_wc sent = pair_.a.Next();
    EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
    const ibv_wc received = pair_.b.Next();
    EXPECT_EQ(received.status, IBV_WC_SUCCESS);
    EXPECT_EQ(received.wr_id, wr_id);
    EXPECT_EQ(received.byte_len, 100u);
    EXPECT_TRUE(pair_.b.Matches(0, 100, 77));
    EXPECT_TRUE(pair_.b.Idle());
    EXPECT_EQ(pair_.a.State(), IBV_QPS_RTS);
    EXPECT_EQ(pair_.b.State(), IBV_QPS_RTS);
    EXPECT_FALSE(HasEvent(device_.get())) << "a lost message raises none";
  }

  Owned<ibv_context> device_ = OpenDevice();
  Pair pair_{device_.get(), Unreliable(), Unreliable()};
};

TEST_F(UnreliableTest, LongMessagesArrive) {
  constexpr size_t kLong = 500'000;  // many packets, more than a ring
  pair_.a.Fill(0, kLong, 5);
  ASSERT_EQ(pair_.b.PostReceive(1, 0, kLong), 0);
  ASSERT_EQ(pair_.a.PostSend(2, 0, kLong), 0);
  const ibv_wc received = pair_.b.Next();
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.byte_len, kLong);
  EXPECT_TRUE(pair_.b.Matches(0, kLong, 5));
  EXPECT_EQ(pair_.a.Next().status, IBV_WC_SUCCESS);
}

TEST_F(UnreliableTest, WritesArriveWithTheirImmediate) {
  pair_.a.Fill(0, 64, 6);
  ASSERT_EQ(pair_.b.PostReceive(1, 0, 0), 0);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = 9;
  wr.wr.rdma.remote_addr = pair_.b.address().memory + 128;
  wr.wr.rdma.rkey = pair_.b.address().rkey;
  ASSERT_EQ(pair_.a.Post(wr, pair_.a.Sge(0, 64)), 0);
  const ibv_wc received = pair_.b.Next();
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received.imm_data, 9u);
  EXPECT_TRUE(pair_.b.Matches(128, 64, 6));
  EXPECT_EQ(pair_.a.Next().opcode, IBV_WC_RDMA_WRITE);
}

TEST_F(UnreliableTest, MessageWithoutReceiveIsLost) {
  ASSERT_EQ(pair_.a.PostSend(1, 0, 50), 0);
  EXPECT_EQ(pair_.a.Next().status, IBV_WC_SUCCESS);
  AwaitTaken();
  ASSERT_EQ(pair_.b.PostReceive(2, 0, 100), 0);
  ExpectNextArrives(2);
}

TEST_F(UnreliableTest, MessageLongerThanTheReceiveIsLostAndTheReceiveServesTheNext) {
  ASSERT_EQ(pair_.b.PostReceive(2, 0, 100), 0);
  ASSERT_EQ(pair_.a.PostSend(1, 0, 50'000), 0);
  EXPECT_EQ(pair_.a.Next().status, IBV_WC_SUCCESS);
  ExpectNextArrives(2);
}

TEST_F(UnreliableTest, WriteWithAWrongKeyIsLost) {
  Address wrong = pair_.b.address();
  wrong.rkey ^= 0x55;
  pair_.b.Fill(200, 64, 8);
  ASSERT_EQ(pair_.a.Write(1, 0, 64, wrong, 200), 0);
  EXPECT_EQ(pair_.a.Next().status, IBV_WC_SUCCESS);
  ASSERT_EQ(pair_.b.PostReceive(2, 0, 100), 0);
  ExpectNextArrives(2);
  EXPECT_TRUE(pair_.b.Matches(200, 64, 8));
}

TEST_F(UnreliableTest, CannotReadNorDoAtomics) {
  EXPECT_EQ(pair_.a.Read(1, 0, 8, pair_.b.address(), 0), EINVAL);
  EXPECT_EQ(pair_.a.FetchAdd(1, 0, pair_.b.address(), 0, 1), EINVAL);
}

TEST_F(UnreliableTest, FailingToBeSentStopsSendsOnly) {
  ibv_sge foreign = pair_.a.Sge(0, 8);
  foreign.lkey = pair_.b.mr->lkey;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(pair_.a.Post(wr, foreign), 0);
  EXPECT_EQ(pair_.a.Next().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(pair_.a.State(), IBV_QPS_SQE);
  ASSERT_EQ(pair_.a.PostReceive(3, 0, 100), 0);
  ASSERT_EQ(pair_.b.PostSend(4, 0, 10), 0);
  EXPECT_EQ(pair_.a.Next().wr_id, 3u);
  EXPECT_EQ(pair_.b.Next().wr_id, 4u);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(ibv_modify_qp(pair_.a.qp.get(), &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(pair_.b.PostReceive(2, 0, 100), 0);
  ExpectNextArrives(2);
}

// Nobody answers for a reliable connection here, so the reliable end gives up.
TEST_F(UnreliableTest, ReliableRequestsAreNotTaken) {
  ConnectOptions soon;
  soon.retry_cnt = 1;
  Side reliable(device_.get(), {});
  reliable.Connect(pair_.b.address(), soon);
  ASSERT_EQ(reliable.PostSend(1, 0, 8), 0);
  EXPECT_EQ(reliable.Next().status, IBV_WC_RETRY_EXC_ERR);
}

TEST(CapabilityTest, WhatIsNotThereIsRefused) {
  const Owned<ibv_context> device = OpenDevice();
  const Owned<ibv_pd> pd(ibv_alloc_pd(device.get()));
  const Owned<ibv_cq> cq(ibv_create_cq(device.get(), 8, nullptr, nullptr, 0));
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq.get();
  attr.cap = {4, 4, 1, 1, 0};
  for (ibv_qp_type type :
       {IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_DRIVER}) {
    attr.qp_type = type;
    errno = 0;
    EXPECT_EQ(ibv_create_qp(pd.get(), &attr), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP) << type;
  }
  ibv_device_attr caps;
  ASSERT_EQ(ibv_query_device(device.get(), &caps), 0);
  constexpr unsigned kLacking =
      IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_RAW_MULTI | IBV_DEVICE_SRQ_RESIZE;
  EXPECT_EQ(caps.device_cap_flags & kLacking, 0u);
  EXPECT_EQ(caps.max_raw_ipv6_qp, 0);
  ibv_xrcd_init_attr domain{};
  domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  domain.fd = -1;
  errno = 0;
  EXPECT_EQ(ibv_open_xrcd(device.get(), &domain), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  errno = 0;
  EXPECT_EQ(ibv_import_device(-1), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  errno = 0;
  EXPECT_EQ(ibv_import_pd(device.get(), pd->handle), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  errno = 0;
  EXPECT_EQ(ibv_import_mr(pd.get(), 0), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace softverbs
