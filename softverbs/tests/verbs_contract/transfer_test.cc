// The operations themselves: bytes arrive in order and once.
#include "softverbs/tests/verbs_contract/pair.h"

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

TEST_F(TransferTest, CompareAndSwapReturnsTheOldWord) {
  SKIP_WITHOUT_ATOMICS();
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
  SKIP_WITHOUT_ATOMICS();
  ibv_sge sge = source().Sge(0, 8);
  for (uint64_t i = 0; i < 5; ++i) {
    const ibv_wc wc = Do(pair_.client(), FetchAndAdd(&sge, target().address(), target().rkey(), 3));
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_FETCH_ADD);
    EXPECT_EQ(source().Word(0), 3 * i);
  }
  EXPECT_EQ(target().Word(0), 15u);
}

// The store's lock-and-get relies on this: a READ posted after a CAS on the same queue pair sees
// what the CAS did.
TEST_F(TransferTest, ReadAfterCasSeesTheSwap) {
  SKIP_WITHOUT_ATOMICS();
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
  SKIP_ON_IWARP("no immediate data");
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

}  // namespace
}  // namespace verbs_contract
