// What a target refuses, and what a refusal does: the initiator sees IBV_WC_REM_ACCESS_ERR
// (ibv_poll_cq(3)), its queue pair goes to ERR, later work is flushed, and the target's memory is
// untouched.
#include "tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

class AccessTest : public ::testing::Test {
 protected:
  AccessTest() {
    pair_.server().buffer->Fill(0x5a);
    pair_.client().buffer->Fill(0xa5);
  }

  // `wr` must be refused; afterwards the queue pair is dead and nothing was written.
  void ExpectRefused(ibv_send_wr wr) {
    if (IsIwarp(pair_.client().id->verbs)) {
      ExpectTerminated(wr);
    } else {
      const ibv_wc wc = Do(pair_.client(), wr);
      EXPECT_STREQ(ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR));
      EXPECT_EQ(wc.wr_id, wr.wr_id);
      EXPECT_EQ(StateOf(pair_.client().qp()), IBV_QPS_ERR);
      ibv_sge sge = pair_.client().buffer->Sge(0, 8);
      const ibv_wc later = Do(pair_.client(), Read(&sge, target().address(), target().rkey(), 99));
      EXPECT_EQ(later.status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(later.wr_id, 99u);
    }
    for (size_t i = 0; i < target().size(); ++i) ASSERT_EQ(target().data()[i], 0x5a) << i;
  }

  // iWARP has no NAK: the target ends the connection (RFC 5040, Terminate). A READ is flushed; a
  // WRITE may have completed, since it completes when it was sent.
  void ExpectTerminated(ibv_send_wr wr) {
    const ibv_wc wc = Do(pair_.client(), wr);
    if (wr.opcode == IBV_WR_RDMA_READ) {
      EXPECT_NE(wc.status, IBV_WC_SUCCESS);
    }
    ExpectEvent(pair_.client().events, RDMA_CM_EVENT_DISCONNECTED);
  }

  Buffer& target() { return *pair_.server().buffer; }
  Buffer& source() { return *pair_.client().buffer; }

  Pair pair_;
};

TEST_F(AccessTest, WrongRkeyIsRefused) {
  ibv_sge sge = source().Sge(0, 64);
  ExpectRefused(Read(&sge, target().address(), target().rkey() ^ 0x00ff00ff));
}

TEST_F(AccessTest, WriteWithWrongRkeyIsRefused) {
  ibv_sge sge = source().Sge(0, 64);
  ExpectRefused(Write(&sge, target().address(), target().rkey() + 1));
}

TEST_F(AccessTest, StaleRkeyIsRefusedAfterDereg) {
  Buffer other(pair_.server().pd, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  const uint32_t rkey = other.rkey();
  ibv_sge sge = source().Sge(0, 64);
  EXPECT_EQ(Do(pair_.client(), Read(&sge, other.address(), rkey)).status, IBV_WC_SUCCESS);
  other.Deregister();
  ExpectRefused(Read(&sge, other.address(), rkey));
}

TEST_F(AccessTest, ReadOneBytePastTheEndIsRefused) {
  ibv_sge sge = source().Sge(0, 64);
  const uint64_t end = target().address() + target().size();
  EXPECT_EQ(Do(pair_.client(), Read(&sge, end - 64, target().rkey())).status, IBV_WC_SUCCESS);
  ExpectRefused(Read(&sge, end - 63, target().rkey()));
}

TEST_F(AccessTest, ReadOneByteBeforeTheStartIsRefused) {
  ibv_sge sge = source().Sge(0, 64);
  ExpectRefused(Read(&sge, target().address() - 1, target().rkey()));
}

TEST_F(AccessTest, WriteOneBytePastTheEndIsRefused) {
  ibv_sge sge = source().Sge(0, 64);
  ExpectRefused(Write(&sge, target().address() + target().size() - 63, target().rkey()));
}

TEST_F(AccessTest, AddressThatWrapsIsRefused) {
  ibv_sge sge = source().Sge(0, 64);
  ExpectRefused(Read(&sge, UINT64_MAX - 8, target().rkey()));
}

struct RightCase {
  const char* name;
  int rights;  // of the target
  ibv_wr_opcode opcode;
};

class RightTest : public AccessTest, public ::testing::WithParamInterface<RightCase> {};

TEST_P(RightTest, MissingRightIsRefused) {
  if (GetParam().opcode == IBV_WR_ATOMIC_CMP_AND_SWP) SKIP_WITHOUT_ATOMICS(pair_);
  Buffer other(pair_.server().pd, 4096, GetParam().rights);
  ibv_sge sge = source().Sge(0, 8);
  switch (GetParam().opcode) {
    case IBV_WR_RDMA_READ:
      ExpectRefused(Read(&sge, other.address(), other.rkey()));
      break;
    case IBV_WR_RDMA_WRITE:
      ExpectRefused(Write(&sge, other.address(), other.rkey()));
      break;
    default:
      ExpectRefused(CompareAndSwap(&sge, other.address(), other.rkey(), 0, 1));
      break;
  }
  EXPECT_EQ(other.Word(0), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, RightTest,
    ::testing::Values(
        RightCase{"Read", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ},
        RightCase{"Write", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE},
        RightCase{"Atomic",
                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                  IBV_WR_ATOMIC_CMP_AND_SWP}),
    [](const auto& info) { return info.param.name; });

// An atomic must be 8-byte aligned: InfiniBand says NAK invalid request; devices that check the
// rkey first may say access error, and Soft-RoCE
// refuses the post.
TEST_F(AccessTest, MisalignedAtomicIsRefused) {
  SKIP_WITHOUT_ATOMICS(pair_);
  ibv_sge sge = source().Sge(0, 8);
  const uint64_t misaligned = target().address() + 4;
  if (Post(pair_.client(), CompareAndSwap(&sge, misaligned, target().rkey(), 0, 1)) == 0) {
    const ibv_wc wc = NextCompletion(pair_.client().cq);
    EXPECT_TRUE(wc.status == IBV_WC_REM_INV_REQ_ERR || wc.status == IBV_WC_REM_ACCESS_ERR)
        << ibv_wc_status_str(wc.status);
    EXPECT_EQ(StateOf(pair_.client().qp()), IBV_QPS_ERR);
  }
  EXPECT_EQ(target().Word(0), 0x5a5a5a5a5a5a5a5au);
}

TEST_F(AccessTest, RegionOfAnotherProtectionDomainIsRefused) {
  ibv_pd* other_pd = ibv_alloc_pd(pair_.server().id->verbs);
  {
    Buffer other(other_pd, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    ibv_sge sge = source().Sge(0, 64);
    ExpectRefused(Read(&sge, other.address(), other.rkey()));
  }
  EXPECT_EQ(ibv_dealloc_pd(other_pd), 0);
}

TEST_F(AccessTest, LocalKeyThatDoesNotExistIsALocalError) {
  ibv_sge sge = source().Sge(0, 64);
  sge.lkey ^= 0x00ff00ff;
  ibv_send_wr wr = Read(&sge, target().address(), target().rkey());
  ibv_send_wr* bad = nullptr;
  // Some devices check at the post, most when the work request is executed.
  if (ibv_post_send(pair_.client().qp(), &wr, &bad) == 0) {
    EXPECT_EQ(NextCompletion(pair_.client().cq).status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(StateOf(pair_.client().qp()), IBV_QPS_ERR);
  }
}

TEST_F(AccessTest, ReadIntoMemoryWithoutLocalWriteIsALocalError) {
  Buffer read_only(pair_.client().pd, 4096, 0);
  ibv_sge sge = read_only.Sge(0, 64);
  const ibv_wc wc = Do(pair_.client(), Read(&sge, target().address(), target().rkey()));
  EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR) << ibv_wc_status_str(wc.status);
  EXPECT_EQ(read_only.data()[0], 0);
}

// rdma_connect(3): with no initiator depth a READ is refused at the post, fails, or (Soft-RoCE)
// waits for ever; it never brings bytes.
TEST_F(AccessTest, QueuePairWithoutResponderResourcesServesNoReads) {
  Pair pair({.responder_resources = 0, .initiator_depth = 0});
  pair.server().buffer->Fill(0x5a);
  ibv_sge sge = pair.client().buffer->Sge(0, 64);
  ibv_send_wr wr = Read(&sge, pair.server().buffer->address(), pair.server().buffer->rkey());
  ibv_wc wc{};
  wc.status = IBV_WC_GENERAL_ERR;
  if (Post(pair.client(), wr) == 0) {
    for (int i = 0; i < 20000 && ibv_poll_cq(pair.client().cq, 1, &wc) == 0; ++i) {
    }
  }
  EXPECT_NE(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(pair.client().buffer->Word(0), 0u);
}

}  // namespace
}  // namespace verbs_contract
