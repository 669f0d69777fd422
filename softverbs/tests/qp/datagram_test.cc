#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "softverbs/tests/support/datagram_side.h"

// UD queue pairs: what arrives, what is lost, what is refused. Here datagrams from one sender to
// one receiver keep their order. So the arrival of the next one shows that one was lost.

namespace softverbs {
namespace {

class DatagramTest : public ::testing::Test {
 protected:
  // Sends another datagram after one that must have been lost, and expects it in receive `wr_id` at
  // `offset`.
  void ExpectNextArrives(uint64_t wr_id, size_t offset) {
    EXPECT_EQ(sender_.Send(handle_.get(), receiver_.qp->qp_num, "next").status, IBV_WC_SUCCESS);
    const ibv_wc wc = receiver_.NextReceived();
    EXPECT_EQ(wc.wr_id, wr_id);
    EXPECT_EQ(receiver_.Text(offset, wc), "next");
    EXPECT_TRUE(receiver_.NothingReceived());
  }

  Owned<ibv_context> device_ = OpenDevice();
  DatagramSide sender_{device_.get()};
  DatagramSide receiver_{device_.get()};
  Owned<ibv_ah> handle_ = sender_.Handle();
};

TEST_F(DatagramTest, ArrivesBehindItsHeader) {
  const auto index = FindGidIndex(device_.get(), /*ipv4=*/false);
  if (!index) GTEST_SKIP() << "the host has no IPv6 address";
  const Owned<ibv_ah> handle = sender_.Handle(*index);
  ASSERT_EQ(receiver_.PostReceive(7, 0, 1024), 0);
  memcpy(sender_.memory.data(), "hello", 5);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = htonl(42);
  ASSERT_EQ(sender_.Post(wr, handle.get(), receiver_.qp->qp_num, sender_.Sge(0, 5)), 0);
  const ibv_wc sent = sender_.NextSent();
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent.opcode, IBV_WC_SEND);

  const ibv_wc wc = receiver_.NextReceived();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.byte_len, kHeader + 5);
  EXPECT_EQ(wc.qp_num, receiver_.qp->qp_num);
  EXPECT_EQ(wc.src_qp, sender_.qp->qp_num);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM));
  EXPECT_EQ(ntohl(wc.imm_data), 42u);
  EXPECT_EQ(receiver_.Text(0, wc), "hello");

  ibv_grh header;
  memcpy(&header, receiver_.memory.data(), sizeof(header));
  ibv_gid own;
  ASSERT_EQ(ibv_query_gid(device_.get(), 1, *index, &own), 0);
  EXPECT_EQ(ntohl(header.version_tclass_flow) >> 28, 6u);
  EXPECT_EQ(ntohs(header.paylen), 5u);
  EXPECT_EQ(header.hop_limit, 64);
  EXPECT_EQ(memcmp(&header.sgid, &own, sizeof(own)), 0);
  EXPECT_EQ(memcmp(&header.dgid, &own, sizeof(own)), 0);
}

TEST_F(DatagramTest, IsAnsweredFromItsCompletion) {
  for (const bool ipv4 : {false, true}) {
    const auto gid_index = FindGidIndex(device_.get(), ipv4);
    if (!gid_index) GTEST_SKIP() << "the host has no IPv6 address";
    ASSERT_EQ(receiver_.PostReceive(1, 0, 1024), 0);
    const Owned<ibv_ah> there = sender_.Handle(*gid_index);
    sender_.Send(there.get(), receiver_.qp->qp_num, "question");
    ibv_wc wc = receiver_.NextReceived();
    auto* header = reinterpret_cast<ibv_grh*>(receiver_.memory.data());
    const Owned<ibv_ah> back(ibv_create_ah_from_wc(receiver_.pd.get(), &wc, header, 1));
    ASSERT_NE(back, nullptr);
    ibv_ah_attr attr;
    ASSERT_EQ(ibv_init_ah_from_wc(device_.get(), 1, &wc, header, &attr), 0);
    EXPECT_EQ(attr.grh.sgid_index, *gid_index);
    ASSERT_EQ(sender_.PostReceive(2, 0, 1024), 0);
    receiver_.Send(back.get(), wc.src_qp, "answer");
    EXPECT_EQ(sender_.Text(0, sender_.NextReceived()), "answer");
  }
}

// RoCE v2 annex A17: an IPv4 header in the last 20 bytes.
TEST_F(DatagramTest, HasAnIpv4HeaderBetweenIpv4Addresses) {
  ASSERT_EQ(receiver_.PostReceive(1, 0, 1024), 0);
  const uint8_t index = FindGidIndex(device_.get(), /*ipv4=*/true).value();
  const Owned<ibv_ah> handle = sender_.Handle(index);
  sender_.Send(handle.get(), receiver_.qp->qp_num, "four");
  EXPECT_EQ(receiver_.Text(0, receiver_.NextReceived()), "four");
  const uint8_t* ipv4 = receiver_.memory.data() + 20;
  EXPECT_EQ(ipv4[0], 0x45);
  ibv_gid own;
  ASSERT_EQ(ibv_query_gid(device_.get(), 1, index, &own), 0);
  EXPECT_EQ(memcmp(ipv4 + 12, own.raw + 12, 4), 0);
  EXPECT_EQ(memcmp(ipv4 + 16, own.raw + 12, 4), 0);
  uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += ipv4[i] << 8 | ipv4[i + 1];
  EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu) << "checksum";
}

// UCX ends like that, if a datagram is still under way.
TEST_F(DatagramTest, IsRefusedByMemoryThatIsUnmapped) {
  const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const int access = IBV_ACCESS_LOCAL_WRITE;
  const Owned<ibv_mr> mr(ibv_reg_mr(receiver_.pd.get(), pages, bytes, access));
  ASSERT_NE(mr, nullptr);
  ibv_sge sge{reinterpret_cast<uintptr_t>(pages), static_cast<uint32_t>(bytes), mr->lkey};
  ibv_recv_wr receive{.wr_id = 5, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad;
  ASSERT_EQ(ibv_post_recv(receiver_.qp.get(), &receive, &bad), 0);
  ASSERT_EQ(munmap(pages, bytes), 0);
  EXPECT_EQ(sender_.Send(handle_.get(), receiver_.qp->qp_num, "gone").status, IBV_WC_SUCCESS);
  const ibv_wc wc = receiver_.NextReceived();
  EXPECT_EQ(wc.wr_id, 5u);
  EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(DatagramTest, IsLostWithoutReceive) {
  EXPECT_EQ(sender_.Send(handle_.get(), receiver_.qp->qp_num, "lost").status, IBV_WC_SUCCESS);
  // It may only be executed when the receiver is driven.
  EXPECT_TRUE(receiver_.NothingReceived());
  ASSERT_EQ(receiver_.PostReceive(1, 0, 1024), 0);
  ExpectNextArrives(1, 0);
}

TEST_F(DatagramTest, IsLostWithAnotherQkey) {
  ASSERT_EQ(receiver_.PostReceive(1, 0, 1024), 0);
  const ibv_wc sent = sender_.Send(handle_.get(), receiver_.qp->qp_num, "lost", kQkey + 1);
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  ExpectNextArrives(1, 0);
}

// IBTA 10.2.5.
TEST_F(DatagramTest, WithTheTopBitOfTheQkeyCarriesTheSendersOwn) {
  ASSERT_EQ(receiver_.PostReceive(1, 0, 1024), 0);
  sender_.Send(handle_.get(), receiver_.qp->qp_num, "own", 0x80000000);
  EXPECT_EQ(receiver_.Text(0, receiver_.NextReceived()), "own");
}

TEST_F(DatagramTest, LongerThanTheReceiveIsLostAndTheReceiveServesTheNext) {
  ASSERT_EQ(receiver_.PostReceive(1, 0, kHeader + 9), 0);
  EXPECT_EQ(sender_.Send(handle_.get(), receiver_.qp->qp_num, "ten bytes.").status, IBV_WC_SUCCESS);
  ExpectNextArrives(1, 0);
  EXPECT_EQ(receiver_.State(), IBV_QPS_RTS);
}

TEST_F(DatagramTest, UpToTheMtuArrivesAndLongerIsNotSent) {
  ASSERT_EQ(receiver_.PostReceive(1, 0, kHeader + kMtu), 0);
  ASSERT_EQ(receiver_.PostReceive(2, 8192, kHeader + kMtu + 8), 0);
  const std::string longest(kMtu, 'x');
  sender_.Send(handle_.get(), receiver_.qp->qp_num, longest);
  EXPECT_EQ(receiver_.Text(0, receiver_.NextReceived()), longest);
  // IBTA C10-93.1.1: no packet, and no error either.
  const ibv_wc sent = sender_.Send(handle_.get(), receiver_.qp->qp_num, longest + "x");
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  ExpectNextArrives(2, 8192);
}

TEST_F(DatagramTest, ToNobodyIsSentAllTheSame) {
  const uint32_t unknown_index = receiver_.qp->qp_num ^ 0x1000;
  const uint32_t unknown_slot = receiver_.qp->qp_num ^ 0x800000;
  EXPECT_EQ(sender_.Send(handle_.get(), unknown_index, "lost").status, IBV_WC_SUCCESS);
  EXPECT_EQ(sender_.Send(handle_.get(), unknown_slot, "lost").status, IBV_WC_SUCCESS);
  EXPECT_EQ(sender_.State(), IBV_QPS_RTS);
}

TEST_F(DatagramTest, GoesToASharedReceiveQueue) {
  ibv_srq_init_attr init{};
  init.attr.max_wr = 4;
  init.attr.max_sge = 1;
  const Owned<ibv_srq> srq(ibv_create_srq(receiver_.pd.get(), &init));
  DatagramSide sharing(device_.get(), kQkey, srq.get());
  ibv_sge sge = receiver_.Sge(0, 1024);  // of the queue's protection domain
  ibv_recv_wr wr{3, nullptr, &sge, 1};
  ibv_recv_wr* bad;
  ASSERT_EQ(ibv_post_srq_recv(srq.get(), &wr, &bad), 0);
  sender_.Send(handle_.get(), sharing.qp->qp_num, "shared");
  EXPECT_EQ(receiver_.Text(0, sharing.NextReceived()), "shared");
}

TEST_F(DatagramTest, IsPostedByTheNewCallsToo) {
  ASSERT_EQ(receiver_.PostReceive(1, 0, 1024), 0);
  memcpy(sender_.memory.data(), "built", 5);
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(sender_.qp.get());
  ibv_wr_start(qp);
  qp->wr_id = 5;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  ibv_wr_set_ud_addr(qp, handle_.get(), receiver_.qp->qp_num, kQkey);
  ibv_wr_set_sge(qp, sender_.mr->lkey, sender_.memory.address(), 5);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(sender_.NextSent().wr_id, 5u);
  EXPECT_EQ(receiver_.Text(0, receiver_.NextReceived()), "built");
}

TEST_F(DatagramTest, CannotBeAWriteOrARead) {
  for (ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    EXPECT_EQ(sender_.Post(wr, handle_.get(), receiver_.qp->qp_num, sender_.Sge(0, 8)), EINVAL);
  }
}

// IBTA 10.3.1: a failed send stops the send queue only.
TEST_F(DatagramTest, FailingToBeSentStopsSendsUntilTheQueuePairIsMended) {
  ibv_sge foreign = sender_.Sge(0, 8);
  foreign.lkey = receiver_.mr->lkey;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  ASSERT_EQ(sender_.Post(wr, handle_.get(), receiver_.qp->qp_num, foreign), 0);
  EXPECT_EQ(sender_.NextSent().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(sender_.State(), IBV_QPS_SQE);
  EXPECT_EQ(sender_.Send(handle_.get(), receiver_.qp->qp_num, "no").status, IBV_WC_WR_FLUSH_ERR);

  ASSERT_EQ(sender_.PostReceive(1, 0, 1024), 0);
  const Owned<ibv_ah> back = receiver_.Handle();
  receiver_.Send(back.get(), sender_.qp->qp_num, "still there?");
  EXPECT_EQ(sender_.Text(0, sender_.NextReceived()), "still there?");

  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(ibv_modify_qp(sender_.qp.get(), &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(receiver_.PostReceive(1, 0, 1024), 0);
  ExpectNextArrives(1, 0);
}

TEST_F(DatagramTest, NeedsAHandleOfItsOwnDomain) {
  const Owned<ibv_ah> foreign = receiver_.Handle();
  const ibv_wc sent = sender_.Send(foreign.get(), receiver_.qp->qp_num, "no");
  EXPECT_EQ(sent.status, IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(DatagramTest, HandlesAreForThisHost) {
  ibv_ah_attr attr{};
  attr.port_num = 1;
  EXPECT_EQ(ibv_create_ah(sender_.pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL) << "without a global route";
  attr.is_global = 1;
  ASSERT_EQ(inet_pton(AF_INET6, "2001:db8::1", &attr.grh.dgid), 1);
  EXPECT_EQ(ibv_create_ah(sender_.pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, EHOSTUNREACH);
  ASSERT_EQ(ibv_query_gid(device_.get(), 1, 0, &attr.grh.dgid), 0);
  attr.grh.sgid_index = 200;
  EXPECT_EQ(ibv_create_ah(sender_.pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL) << "from a GID the port does not have";
}

}  // namespace
}  // namespace softverbs
