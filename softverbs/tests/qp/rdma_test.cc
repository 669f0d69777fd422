#include <gtest/gtest.h>

#include <cerrno>

#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

// Every case runs against memory that the initiator maps and against memory that it does not.
class RdmaTest : public ::testing::TestWithParam<MemoryKind> {
 protected:
  SideOptions Target() {
    SideOptions options;
    options.kind = GetParam();
    return options;
  }

  // Expects that the initiator got `status`, both ends are in the error state, the target got the
  // event, and its memory is untouched.
  void ExpectRefused(Pair& pair, ibv_wc_status status, ibv_event_type event) {
    EXPECT_EQ(pair.a.Next().status, status);
    EXPECT_EQ(pair.a.State(), IBV_QPS_ERR);
    EXPECT_EQ(NextEvent(device_.get()).event_type, event);
    EXPECT_EQ(pair.b.State(), IBV_QPS_ERR);
    EXPECT_TRUE(pair.b.Matches(0, pair.b.memory.size(), kPattern));
  }
  void ExpectAccessError(Pair& pair) {
    ExpectRefused(pair, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }

  static constexpr uint8_t kPattern = 55;
  Owned<ibv_context> device_ = OpenDevice();
};

INSTANTIATE_TEST_SUITE_P(Memory, RdmaTest,
                         ::testing::Values(MemoryKind::kPrivate, MemoryKind::kMapped),
                         [](const auto& info) {
                           return info.param == MemoryKind::kMapped ? "Mapped" : "Private";
                         });

TEST_P(RdmaTest, ReadsEverySizeAndAlignment) {
  Pair pair(device_.get(), {}, Target());
  pair.b.Fill(0, pair.b.memory.size(), kPattern);
  for (size_t size : {0, 1, 8, 64, 255, 4096, 16384, 16385, 300'000}) {
    for (size_t skew : {0, 1, 7}) {
      SCOPED_TRACE(testing::Message() << size << " at " << skew);
      memset(pair.a.memory.data(), 0, size + 8);
      ASSERT_EQ(pair.a.Read(9, skew, size, pair.b.address(), 3 * skew), 0);
      const ibv_wc wc = pair.a.Next();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
      EXPECT_EQ(wc.byte_len, size);
      EXPECT_EQ(memcmp(pair.a.memory.data() + skew, pair.b.memory.data() + 3 * skew, size), 0);
      EXPECT_EQ(pair.a.memory.data()[skew + size], 0);
    }
  }
}

TEST_P(RdmaTest, WritesEverySizeAndAlignment) {
  Pair pair(device_.get(), {}, Target());
  pair.a.Fill(0, pair.a.memory.size(), 7);
  for (size_t size : {0, 1, 8, 64, 255, 4096, 16384, 16385, 300'000}) {
    for (size_t skew : {0, 1, 7}) {
      SCOPED_TRACE(testing::Message() << size << " at " << skew);
      memset(pair.b.memory.data(), 0, size + 32);
      ASSERT_EQ(pair.a.Write(9, skew, size, pair.b.address(), 3 * skew), 0);
      const ibv_wc wc = pair.a.Next();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
      EXPECT_EQ(memcmp(pair.a.memory.data() + skew, pair.b.memory.data() + 3 * skew, size), 0);
      EXPECT_EQ(pair.b.memory.data()[3 * skew + size], 0);
    }
  }
  EXPECT_TRUE(pair.b.Idle());
}

TEST_P(RdmaTest, WriteWithImmediateTakesAReceive) {
  Pair pair(device_.get(), {}, Target());
  pair.a.Fill(0, 40'000, 7);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = 4242;
  wr.wr.rdma.remote_addr = pair.b.memory.address();
  wr.wr.rdma.rkey = pair.b.mr->rkey;
  ASSERT_EQ(pair.a.Post(wr, pair.a.Sge(0, 40'000)), 0);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(pair.a.Idle());  // receiver not ready
  ASSERT_EQ(pair.b.PostReceive(8, 0, 0), 0);
  const ibv_wc received = pair.b.Next();
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received.wr_id, 8u);
  EXPECT_EQ(received.imm_data, 4242u);
  EXPECT_EQ(received.byte_len, 40'000u);
  EXPECT_TRUE(pair.b.Matches(0, 40'000, 7));
  EXPECT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
}

TEST_P(RdmaTest, AtomicsReturnTheOriginalValue) {
  Pair pair(device_.get(), {}, Target());
  pair.b.Word(64) = 100;
  ASSERT_EQ(pair.a.CompareSwap(1, 0, pair.b.address(), 64, 99, 7), 0);
  ibv_wc wc = pair.a.Next();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(pair.a.Word(0), 100u);
  EXPECT_EQ(pair.b.Word(64), 100u);
  ASSERT_EQ(pair.a.CompareSwap(2, 0, pair.b.address(), 64, 100, 7), 0);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(pair.a.Word(0), 100u);
  EXPECT_EQ(pair.b.Word(64), 7u);
  ASSERT_EQ(pair.a.FetchAdd(3, 8, pair.b.address(), 64, ~uint64_t{0}), 0);
  wc = pair.a.Next();
  EXPECT_EQ(wc.opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(pair.a.Word(8), 7u);
  EXPECT_EQ(pair.b.Word(64), 6u);
}

TEST_P(RdmaTest, AReadAfterACompareSwapSeesIt) {
  Pair pair(device_.get(), {}, Target());
  for (uint64_t i = 0; i < 500; ++i) {
    ASSERT_EQ(pair.a.CompareSwap(1, 0, pair.b.address(), 64, i, i + 1), 0);
    ASSERT_EQ(pair.a.Read(2, 8, 8, pair.b.address(), 64), 0);
    ASSERT_EQ(pair.a.Next().wr_id, 1u);
    ASSERT_EQ(pair.a.Next().wr_id, 2u);
    ASSERT_EQ(pair.a.Word(0), i);
    ASSERT_EQ(pair.a.Word(8), i + 1);
  }
}

TEST_P(RdmaTest, AReadDoesNotOvertakeTheSendBeforeIt) {
  Pair pair(device_.get(), {}, Target());
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(pair.b.PostReceive(7, 64, 8), 0);
    pair.a.Word(0) = i;
    ASSERT_EQ(pair.a.PostSend(1, 0, 8), 0);
    ASSERT_EQ(pair.a.Read(2, 8, 8, pair.b.address(), 64), 0);  // where the SEND is received
    ASSERT_EQ(pair.a.Next().wr_id, 1u);
    ASSERT_EQ(pair.a.Next().wr_id, 2u);
    ASSERT_EQ(pair.a.Word(8), static_cast<uint64_t>(i));
    ASSERT_EQ(pair.b.Next().wr_id, 7u);
  }
}

TEST_P(RdmaTest, MoreReadsThanTheDepthAllComplete) {
  ConnectOptions connect;
  connect.max_rd_atomic = 2;
  connect.max_dest_rd_atomic = 2;
  Pair pair(device_.get(), {}, Target(), connect);
  pair.b.Fill(0, 64 * 1000, kPattern);
  for (uint64_t i = 0; i < 60; ++i) {
    ASSERT_EQ(pair.a.Read(i, 1000 * i, 1000, pair.b.address(), 1000 * i), 0);
  }
  for (uint64_t i = 0; i < 60; ++i) {
    const ibv_wc wc = pair.a.Next();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, i);
  }
  EXPECT_TRUE(pair.a.Matches(0, 60'000, kPattern));
}

TEST_P(RdmaTest, WrongKey) {
  Pair pair(device_.get(), {}, Target());
  pair.b.Fill(0, pair.b.memory.size(), kPattern);
  Address wrong = pair.b.address();
  wrong.rkey ^= 1u << 30;
  ASSERT_EQ(pair.a.Read(1, 0, 8, wrong, 0), 0);
  ExpectAccessError(pair);
}

TEST_P(RdmaTest, StaleKeyAfterDeregistration) {
  Pair pair(device_.get(), {}, Target());
  pair.b.Fill(0, pair.b.memory.size(), kPattern);
  ASSERT_EQ(pair.a.Read(1, 0, 8, pair.b.address(), 0), 0);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  const Address stale = pair.b.address();
  pair.b.mr.reset();
  ASSERT_EQ(pair.a.Write(2, 0, 8, stale, 0), 0);
  ExpectAccessError(pair);
}

TEST_P(RdmaTest, OneByteOutOfBounds) {
  const size_t size = SideOptions{}.memory;
  struct {
    size_t at, length;
  } const cases[] = {{size - 7, 8}, {size, 1}, {size_t(-1), 8}, {0, size + 1}};
  for (const auto& bad : cases) {
    SideOptions big;
    big.memory = 2 * size;
    Pair pair(device_.get(), big, Target());
    pair.b.Fill(0, size, kPattern);
    ASSERT_EQ(pair.a.Read(1, 0, 8, pair.b.address(), size - 8), 0);
    EXPECT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
    ASSERT_EQ(pair.a.Write(2, 0, bad.length, pair.b.address(), bad.at), 0);
    ExpectAccessError(pair);
  }
}

TEST_P(RdmaTest, MissingRightOfTheRegion) {
  struct {
    unsigned access;
    int operation;
  } const cases[] = {{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0},
                     {IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 1},
                     {IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 2}};
  for (const auto& bad : cases) {
    SideOptions target = Target();
    target.access = bad.access;
    Pair pair(device_.get(), {}, target);
    pair.b.Fill(0, pair.b.memory.size(), kPattern);
    const Address peer = pair.b.address();
    const int posted = bad.operation == 0   ? pair.a.Read(1, 0, 8, peer, 0)
                       : bad.operation == 1 ? pair.a.Write(1, 0, 8, peer, 0)
                                            : pair.a.CompareSwap(1, 0, peer, 0, 0, 1);
    ASSERT_EQ(posted, 0);
    ExpectAccessError(pair);
  }
}

TEST_P(RdmaTest, MissingRightOfTheQueuePair) {
  ConnectOptions connect;
  connect.access = IBV_ACCESS_REMOTE_READ;
  Pair pair(device_.get(), {}, Target(), connect);
  pair.b.Fill(0, pair.b.memory.size(), kPattern);
  ASSERT_EQ(pair.a.Read(1, 0, 8, pair.b.address(), 0), 0);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  ASSERT_EQ(pair.a.Write(2, 0, 8, pair.b.address(), 0), 0);
  ExpectAccessError(pair);
}

TEST_P(RdmaTest, RegionOfAnotherProtectionDomain) {
  Pair pair(device_.get(), {}, Target());
  pair.b.Fill(0, pair.b.memory.size(), kPattern);
  Owned<ibv_pd> other(ibv_alloc_pd(device_.get()));
  Owned<ibv_mr> mr(ibv_reg_mr(other.get(), pair.b.memory.data(), pair.b.memory.size(),
                              static_cast<int>(kAllAccess)));
  Address peer = pair.b.address();
  peer.rkey = mr->rkey;
  ASSERT_EQ(pair.a.Write(1, 0, 8, peer, 0), 0);
  ExpectAccessError(pair);
}

TEST_P(RdmaTest, MisalignedAtomic) {
  Pair pair(device_.get(), {}, Target());
  pair.b.Fill(0, pair.b.memory.size(), kPattern);
  ASSERT_EQ(pair.a.FetchAdd(1, 0, pair.b.address(), 4, 1), 0);
  ExpectRefused(pair, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

TEST_P(RdmaTest, RequestsAfterARefusedOneAreFlushed) {
  Pair pair(device_.get(), {}, Target());
  pair.b.Fill(0, pair.b.memory.size(), kPattern);
  Address wrong = pair.b.address();
  wrong.rkey ^= 1u << 30;
  ASSERT_EQ(pair.a.Read(1, 0, 8, pair.b.address(), 0), 0);
  ASSERT_EQ(pair.a.Read(2, 0, 8, wrong, 0), 0);
  const int posted = pair.a.Write(3, 0, 8, pair.b.address(), 0);
  ASSERT_EQ(posted, 0);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_REM_ACCESS_ERR);
  const ibv_wc flushed = pair.a.Next();
  EXPECT_EQ(flushed.wr_id, 3u);
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(NextEvent(device_.get()).event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_TRUE(pair.b.Matches(0, 8, kPattern));
}

TEST_P(RdmaTest, AQueuePairInErrorGivesNoAccess) {
  Pair pair(device_.get(), {}, Target());
  pair.b.Fill(0, pair.b.memory.size(), kPattern);
  ASSERT_EQ(pair.a.Read(1, 0, 8, pair.b.address(), 0), 0);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  pair.b.ToError();
  ASSERT_EQ(pair.a.Write(2, 0, 8, pair.b.address(), 0), 0);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_TRUE(pair.b.Matches(0, 8, kPattern));
}

TEST_P(RdmaTest, AReadIntoMemoryThatIsNotWritableIsItsOwnError) {
  SideOptions read_only;
  read_only.access = 0;
  Pair pair(device_.get(), read_only, Target());
  ASSERT_EQ(pair.a.Read(1, 0, 8, pair.b.address(), 0), 0);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(pair.b.State(), IBV_QPS_RTS);
}

TEST_P(RdmaTest, RemoteAddressesAreRelativeToTheIova) {
  Pair pair(device_.get(), {}, Target());
  pair.b.Fill(0, pair.b.memory.size(), kPattern);
  constexpr uint64_t kIova = 0x100000;
  Owned<ibv_mr> mr(ibv_reg_mr_iova(pair.b.pd, pair.b.memory.data(), pair.b.memory.size(), kIova,
                                   static_cast<int>(kAllAccess)));
  Address peer = pair.b.address();
  peer.rkey = mr->rkey;
  peer.memory = kIova;
  ASSERT_EQ(pair.a.Read(1, 0, 1000, peer, 333), 0);
  EXPECT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(memcmp(pair.a.memory.data(), pair.b.memory.data() + 333, 1000), 0);
}

TEST_P(RdmaTest, AFenceWaitsForTheReadsBefore) {
  Pair pair(device_.get(), {}, Target());
  for (uint64_t i = 0; i < 100; ++i) {
    pair.b.Word(0) = i;
    ASSERT_EQ(pair.a.Read(1, 64, 8, pair.b.address(), 0), 0);
    ibv_send_wr wr{};
    wr.wr_id = 2;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    wr.wr.rdma.remote_addr = pair.b.memory.address();
    wr.wr.rdma.rkey = pair.b.mr->rkey;
    pair.a.Word(0) = 1'000'000;
    ASSERT_EQ(pair.a.Post(wr, pair.a.Sge(0, 8)), 0);
    ASSERT_EQ(pair.a.Next().wr_id, 1u);
    ASSERT_EQ(pair.a.Next().wr_id, 2u);
    ASSERT_EQ(pair.a.Word(64), i);
    ASSERT_EQ(pair.b.Word(0), 1'000'000u);
  }
}

}  // namespace
}  // namespace softverbs
