// The operations themselves: bytes arrive, in order, once.
#include "tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

class TransferTest : public ::testing::Test {
 protected:
  Buffer& target() { return *pair_.server().buffer; }
  Buffer& source() { return *pair_.client().buffer; }
  Pair pair_;
};

TEST_F(TransferTest, ReadBringsTheTargetsBytes) {
  for (size_t i = 0; i < 4096; ++i) target().data()[i] = static_cast<uint8_t>(i * 7);
  for (const uint32_t bytes : {1u, 7u, 8u, 63u, 64u, 255u, 4096u}) {
    source().Fill(0);
    ibv_sge sge = source().Sge(16, bytes);
    const ibv_wc wc = Do(pair_.client(), Read(&sge, target().address(), target().rkey(), 5));
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
    EXPECT_EQ(wc.wr_id, 5u);
    EXPECT_EQ(wc.qp_num, pair_.client().qp()->qp_num);
    EXPECT_EQ(std::memcmp(source().data() + 16, target().data(), bytes), 0);
    EXPECT_EQ(source().data()[16 + bytes], 0) << "bytes past the end";
    EXPECT_EQ(source().data()[15], 0);
  }
}

TEST_F(TransferTest, ReadOfAWholeBufferIsWhole) {
  for (size_t i = 0; i < target().size(); ++i)
    target().data()[i] = static_cast<uint8_t>(i * 31 >> 3);
  ibv_sge sge = source().Sge(0, static_cast<uint32_t>(source().size()));
  const ibv_wc wc = Do(pair_.client(), Read(&sge, target().address(), target().rkey()));
  ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(source().data(), target().data(), source().size()), 0);
}

TEST_F(TransferTest, WriteThenReadBack) {
  source().Fill(0x3c);
  ibv_sge sge = source().Sge(0, 1000);
  ASSERT_EQ(Do(pair_.client(), Write(&sge, target().address() + 8, target().rkey())).status,
            IBV_WC_SUCCESS);
  ibv_sge back = source().Sge(8192, 1016);
  ASSERT_EQ(Do(pair_.client(), Read(&back, target().address(), target().rkey())).status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(source().data()[8192 + 7], 0);
  EXPECT_EQ(std::memcmp(source().data() + 8200, source().data(), 1000), 0);
  EXPECT_EQ(source().data()[8200 + 1000], 0);
}

TEST_F(TransferTest, SendArrivesInTheReceive) {
  ASSERT_EQ(PostReceive(pair_.server(), target().Sge(0, 4096), 42), 0);
  source().Fill(0x77);
  ibv_sge sge = source().Sge(0, 300);
  EXPECT_EQ(Do(pair_.client(), Send(&sge)).status, IBV_WC_SUCCESS);
  const ibv_wc wc = NextCompletion(pair_.server().cq);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.wr_id, 42u);
  EXPECT_EQ(wc.byte_len, 300u);
  EXPECT_EQ(wc.qp_num, pair_.server().qp()->qp_num);
  EXPECT_EQ(std::memcmp(target().data(), source().data(), 300), 0);
  EXPECT_EQ(target().data()[300], 0);
}

TEST_F(TransferTest, SendsArriveInOrder) {
  constexpr uint32_t kCount = 50;
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(PostReceive(pair_.server(), target().Sge(i * 64, 64), i), 0);
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    source().data()[i * 64] = static_cast<uint8_t>(i + 1);
    ibv_sge sge = source().Sge(i * 64, 1 + i);
    ASSERT_EQ(Post(pair_.client(), Send(&sge, i)), 0);
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    const ibv_wc sent = NextCompletion(pair_.client().cq);
    EXPECT_EQ(sent.wr_id, i);
    const ibv_wc wc = NextCompletion(pair_.server().cq);
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(wc.byte_len, 1 + i);
    EXPECT_EQ(target().data()[i * 64], i + 1);
  }
}

TEST_F(TransferTest, InlineDataMayBeReusedAtOnce) {
  ASSERT_EQ(PostReceive(pair_.server(), target().Sge(0, 64)), 0);
  uint8_t unregistered[48];
  std::memset(unregistered, 0x11, sizeof(unregistered));
  ibv_sge sge{reinterpret_cast<uint64_t>(unregistered), sizeof(unregistered), 0};
  ibv_send_wr wr = Send(&sge);
  wr.send_flags |= IBV_SEND_INLINE;
  ASSERT_EQ(Post(pair_.client(), wr), 0);
  std::memset(unregistered, 0xee, sizeof(unregistered));
  EXPECT_EQ(NextCompletion(pair_.server().cq).status, IBV_WC_SUCCESS);
  for (size_t i = 0; i < sizeof(unregistered); ++i) ASSERT_EQ(target().data()[i], 0x11);
  EXPECT_EQ(NextCompletion(pair_.client().cq).status, IBV_WC_SUCCESS);
}

TEST_F(TransferTest, InlineOverTheLimitIsRefusedAtThePost) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(pair_.client().qp(), &attr, IBV_QP_CAP, &init), 0);
  ASSERT_GE(init.cap.max_inline_data, 64u);
  std::vector<uint8_t> bytes(init.cap.max_inline_data + 1);
  ibv_sge sge{reinterpret_cast<uint64_t>(bytes.data()), static_cast<uint32_t>(bytes.size()), 0};
  ibv_send_wr wr = Send(&sge);
  wr.send_flags |= IBV_SEND_INLINE;
  EXPECT_NE(Post(pair_.client(), wr), 0);
}

TEST_F(TransferTest, CompareAndSwapReturnsTheOldWord) {
  SKIP_WITHOUT_ATOMICS(pair_);
  ibv_sge sge = source().Sge(0, 8);
  const uint64_t word = target().address() + 64;
  EXPECT_EQ(Do(pair_.client(), CompareAndSwap(&sge, word, target().rkey(), 0, 7)).status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(source().Word(0), 0u);
  EXPECT_EQ(target().Word(64), 7u);
  EXPECT_EQ(Do(pair_.client(), CompareAndSwap(&sge, word, target().rkey(), 0, 9)).status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(source().Word(0), 7u);
  EXPECT_EQ(target().Word(64), 7u);
}

TEST_F(TransferTest, FetchAndAddReturnsTheOldWord) {
  SKIP_WITHOUT_ATOMICS(pair_);
  ibv_sge sge = source().Sge(0, 8);
  for (uint64_t i = 0; i < 5; ++i) {
    const ibv_wc wc = Do(pair_.client(), FetchAndAdd(&sge, target().address(), target().rkey(), 3));
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_FETCH_ADD);
    EXPECT_EQ(source().Word(0), 3 * i);
  }
  EXPECT_EQ(target().Word(0), 15u);
}

// The store's lock-and-get relies on it: a READ posted after a CAS on one queue pair sees what the
// CAS did.
TEST_F(TransferTest, ReadAfterCasSeesTheSwap) {
  SKIP_WITHOUT_ATOMICS(pair_);
  for (uint64_t i = 0; i < 200; ++i) {
    ibv_sge old = source().Sge(0, 8);
    ibv_sge now = source().Sge(8, 8);
    ibv_send_wr read = Read(&now, target().address(), target().rkey(), 2);
    ibv_send_wr cas = CompareAndSwap(&old, target().address(), target().rkey(), i, i + 1, 1);
    cas.next = &read;
    ASSERT_EQ(Post(pair_.client(), cas), 0);
    EXPECT_EQ(NextCompletion(pair_.client().cq).wr_id, 1u);
    EXPECT_EQ(NextCompletion(pair_.client().cq).wr_id, 2u);
    ASSERT_EQ(source().Word(0), i);
    ASSERT_EQ(source().Word(8), i + 1);
  }
}

TEST_F(TransferTest, ImmediateDataArrivesWithTheWrite) {
  if (IsIwarp(pair_.client().id->verbs)) GTEST_SKIP() << "iWARP has no immediate data";
  ASSERT_EQ(PostReceive(pair_.server(), target().Sge(0, 0), 3), 0);
  source().Fill(0x44);
  ibv_sge sge = source().Sge(0, 128);
  ibv_send_wr wr = Write(&sge, target().address() + 256, target().rkey());
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = 0x01020304;
  EXPECT_EQ(Do(pair_.client(), wr).status, IBV_WC_SUCCESS);
  const ibv_wc wc = NextCompletion(pair_.server().cq);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.imm_data, 0x01020304u);
  EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_IMM);
  EXPECT_EQ(target().data()[256], 0x44);
}

// ibv_post_send(3): an unsignaled work request's slot is free only when a later signaled one was
// polled.
TEST_F(TransferTest, UnsignaledWorkCompletesSilently) {
  ibv_sge sge = source().Sge(0, 64);
  for (int i = 0; i < 10; ++i) {
    ibv_send_wr wr = Read(&sge, target().address(), target().rkey(), 7);
    wr.send_flags = 0;
    ASSERT_EQ(Post(pair_.client(), wr), 0);
  }
  EXPECT_TRUE(NoCompletion(pair_.client().cq));
  EXPECT_EQ(Do(pair_.client(), Read(&sge, target().address(), target().rkey(), 8)).wr_id, 8u);
}

// More READs than the negotiated depth are posted: the device holds them back, none is lost.
TEST_F(TransferTest, MoreReadsThanTheDepthAllComplete) {
  Pair pair({.responder_resources = 1, .initiator_depth = 1});
  for (size_t i = 0; i < 64; ++i) pair.server().buffer->data()[i * 8] = static_cast<uint8_t>(i);
  std::vector<ibv_sge> sges(60);
  for (uint32_t i = 0; i < 60; ++i) {
    sges[i] = pair.client().buffer->Sge(i * 8, 8);
    const uint64_t from = pair.server().buffer->address() + i * 8;
    ASSERT_EQ(Post(pair.client(), Read(&sges[i], from, pair.server().buffer->rkey(), i)), 0);
  }
  for (uint32_t i = 0; i < 60; ++i) {
    const ibv_wc wc = NextCompletion(pair.client().cq);
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, i);
    ASSERT_EQ(pair.client().buffer->data()[i * 8], i);
  }
}

TEST_F(TransferTest, MessageLongerThanTheReceiveIsAnErrorAtBothEnds) {
  ASSERT_EQ(PostReceive(pair_.server(), target().Sge(0, 16)), 0);
  ibv_sge sge = source().Sge(0, 64);
  // InfiniBand: invalid request, local length error; Soft-RoCE: operation error, local protection
  // error.
  const ibv_wc_status sent = Do(pair_.client(), Send(&sge)).status;
  EXPECT_TRUE(sent == IBV_WC_REM_INV_REQ_ERR || sent == IBV_WC_REM_OP_ERR)
      << ibv_wc_status_str(sent);
  const ibv_wc_status received = NextCompletion(pair_.server().cq).status;
  EXPECT_TRUE(received == IBV_WC_LOC_LEN_ERR || received == IBV_WC_LOC_PROT_ERR ||
              received == IBV_WC_LOC_QP_OP_ERR)
      << ibv_wc_status_str(received);
  EXPECT_EQ(StateOf(pair_.client().qp()), IBV_QPS_ERR);
}

}  // namespace
}  // namespace verbs_contract
