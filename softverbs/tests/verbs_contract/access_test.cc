// What a target refuses, and what follows from it: the initiator sees IBV_WC_REM_ACCESS_ERR
// (ibv_poll_cq(3)), its queue pair goes to ERR, later work is flushed, and the target's memory is
// untouched.
#include <tuple>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

constexpr size_t kBytes = 4096;
constexpr uint8_t kMark = 0x5a;
constexpr uint64_t kMarkedWord = 0x5a5a5a5a5a5a5a5a;

// A registration without the first and the last byte of its memory, so that even an aligned atomic
// can be out of bounds by one byte.
class Target {
 public:
  Target(ibv_pd* pd, int access) : bytes_(kBytes, kMark) {
    mr_ = ibv_reg_mr(pd, bytes_.data() + 1, kBytes - 2, access);
    EXPECT_NE(mr_, nullptr) << strerror(errno);
    rkey_ = mr_->rkey;
  }
  ~Target() { Deregister(); }

  uint64_t at(size_t offset) const { return reinterpret_cast<uint64_t>(bytes_.data()) + offset; }
  uint32_t rkey() const { return rkey_; }
  void Deregister() {
    if (mr_ != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    }
    mr_ = nullptr;
  }
  void ExpectUntouched() const {
    for (size_t i = 0; i < kBytes; ++i) ASSERT_EQ(bytes_[i], kMark) << "byte " << i;
  }

 private:
  std::vector<uint8_t> bytes_;
  ibv_mr* mr_ = nullptr;
  uint32_t rkey_ = 0;
};

// Returns the rights that a registration needs for an operation.
int RightFor(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_RDMA_READ) return IBV_ACCESS_REMOTE_READ;
  if (opcode == IBV_WR_RDMA_WRITE) return IBV_ACCESS_REMOTE_WRITE;
  return IBV_ACCESS_REMOTE_ATOMIC;
}

int AllAccess() {
  return TheDevice().has_atomics() ? kAllAccess : kAllAccess & ~IBV_ACCESS_REMOTE_ATOMIC;
}

class AccessTest : public ::testing::Test {
 protected:
  // Tries an operation of `length` bytes (8 for an atomic) at an address of a target.
  ibv_wc Try(ibv_wr_opcode opcode, uint64_t address, uint32_t rkey, uint32_t length = 64) {
    pair_.client().buffer->Fill(0xa5);
    ibv_sge sge = pair_.client().buffer->Sge(0, length);
    switch (opcode) {
      case IBV_WR_RDMA_READ:
        return Do(pair_.client(), verbs_contract::Read(&sge, address, rkey, 7));
      case IBV_WR_RDMA_WRITE:
        return Do(pair_.client(), Write(&sge, address, rkey, 7));
      default:
        return Do(pair_.client(), CompareAndSwap(&sge, address, rkey, kMarkedWord, 1, 7));
    }
  }

  void ExpectRefused(ibv_wr_opcode opcode, const ibv_wc& wc) {
    if (TheDevice().is_iwarp()) {
      // No NAK: the target ends the connection (RFC 5040, Terminate). A READ is flushed; a WRITE
      // may have completed, since it completes when it was sent.
      if (opcode == IBV_WR_RDMA_READ) {
        EXPECT_NE(wc.status, IBV_WC_SUCCESS);
      }
      ExpectEvent(pair_.client().events, RDMA_CM_EVENT_DISCONNECTED);
    } else {
      EXPECT_STREQ(ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR));
      EXPECT_EQ(wc.wr_id, 7u);
    }
    ExpectDead();
  }

  // The queue pair is in ERR, and later work is flushed. A device may also refuse the post.
  void ExpectDead() {
    ExpectErrorState(pair_.client());
    ibv_sge sge = pair_.client().buffer->Sge(0, 8);
    Buffer& good = *pair_.server().buffer;
    if (Post(pair_.client(), Read(&sge, good.address(), good.rkey(), 99)) != 0) return;
    ibv_wc later{};
    if (TheDevice().is_iwarp()) {
      if (!PollForAWhile(pair_.client().cq, &later)) return;  // siw takes the post and forgets it
    } else {
      later = NextCompletion(pair_.client().cq);
    }
    EXPECT_STREQ(ibv_wc_status_str(later.status), ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ(later.wr_id, 99u);
  }

  ibv_pd* server_pd() { return pair_.server().pd; }

  Pair pair_;
};

class RefusalTest : public AccessTest, public ::testing::WithParamInterface<ibv_wr_opcode> {
 protected:
  void SetUp() override {
    if (opcode() == IBV_WR_ATOMIC_CMP_AND_SWP) SKIP_WITHOUT_ATOMICS();
  }
  ibv_wr_opcode opcode() const { return GetParam(); }
  uint32_t length() const { return opcode() == IBV_WR_ATOMIC_CMP_AND_SWP ? 8 : 64; }

  // Expects that operations at `address` of `target` are refused and change nothing.
  void ExpectRefusedAt(const Target& target, uint64_t address, uint32_t rkey) {
    ExpectRefused(opcode(), Try(opcode(), address, rkey, length()));
    target.ExpectUntouched();
  }
};

TEST_P(RefusalTest, WrongRkey) {
  const Target target(server_pd(), AllAccess());
  ExpectRefusedAt(target, target.at(8), target.rkey() ^ 0x00ff00ff);
}

TEST_P(RefusalTest, NextRkey) {
  const Target target(server_pd(), AllAccess());
  ExpectRefusedAt(target, target.at(8), target.rkey() + 1);
}

TEST_P(RefusalTest, StaleRkeyAfterDereg) {
  Target target(server_pd(), AllAccess());
  if (opcode() == IBV_WR_RDMA_READ) {
    EXPECT_EQ(Try(opcode(), target.at(8), target.rkey(), length()).status, IBV_WC_SUCCESS);
  }
  target.Deregister();
  ExpectRefusedAt(target, target.at(8), target.rkey());
}

TEST_P(RefusalTest, OneBytePastTheEnd) {
  const Target target(server_pd(), AllAccess());
  ExpectRefusedAt(target, target.at(kBytes - length()), target.rkey());
}

TEST_P(RefusalTest, OneByteBeforeTheStart) {
  const Target target(server_pd(), AllAccess());
  ExpectRefusedAt(target, target.at(0), target.rkey());
}

TEST_P(RefusalTest, AddressThatWraps) {
  const Target target(server_pd(), AllAccess());
  ExpectRefusedAt(target, UINT64_MAX - 7, target.rkey());
}

TEST_P(RefusalTest, MissingRight) {
  const Target target(server_pd(), AllAccess() & ~RightFor(opcode()));
  ExpectRefusedAt(target, target.at(8), target.rkey());
}

TEST_P(RefusalTest, NoRemoteRightAtAll) {
  const Target target(server_pd(), IBV_ACCESS_LOCAL_WRITE);
  ExpectRefusedAt(target, target.at(8), target.rkey());
}

TEST_P(RefusalTest, RegionOfAnotherProtectionDomain) {
  ibv_pd* other = ibv_alloc_pd(pair_.server().id->verbs);
  ASSERT_NE(other, nullptr);
  {
    const Target target(other, AllAccess());
    ExpectRefusedAt(target, target.at(8), target.rkey());
  }
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

INSTANTIATE_TEST_SUITE_P(All, RefusalTest,
                         ::testing::Values(IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
                                           IBV_WR_ATOMIC_CMP_AND_SWP),
                         [](const auto& info) {
                           return info.param == IBV_WR_RDMA_READ    ? "Read"
                                  : info.param == IBV_WR_RDMA_WRITE ? "Write"
                                                                    : "CompareAndSwap";
                         });

TEST_F(AccessTest, TheFirstAndTheLastByteAreInBounds) {
  const Target target(server_pd(), AllAccess());
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE}) {
    EXPECT_EQ(Try(opcode, target.at(1), target.rkey()).status, IBV_WC_SUCCESS);
    EXPECT_EQ(Try(opcode, target.at(kBytes - 1 - 64), target.rkey()).status, IBV_WC_SUCCESS);
  }
}

// A misaligned atomic: InfiniBand says NAK invalid request; devices that check the rkey first say
// access error; ibv_post_send(3) allows the post to be refused, as Soft-RoCE does.
TEST_F(AccessTest, MisalignedAtomicIsRefused) {
  SKIP_WITHOUT_ATOMICS();
  const Target target(server_pd(), AllAccess());
  ibv_sge sge = pair_.client().buffer->Sge(0, 8);
  const ibv_send_wr wr = CompareAndSwap(&sge, target.at(12), target.rkey(), kMarkedWord, 1, 7);
  if (const int error = Post(pair_.client(), wr)) {
    EXPECT_EQ(error, EINVAL);
  } else {
    const ibv_wc wc = NextCompletion(pair_.client().cq);
    EXPECT_TRUE(wc.status == IBV_WC_REM_INV_REQ_ERR || wc.status == IBV_WC_REM_ACCESS_ERR)
        << ibv_wc_status_str(wc.status);
    ExpectDead();
  }
  target.ExpectUntouched();
}

TEST_F(AccessTest, WorkBehindARefusalIsFlushedInOrder) {
  SKIP_ON_IWARP("no NAK says which request was refused");
  const Target target(server_pd(), AllAccess());
  ibv_sge sge = pair_.client().buffer->Sge(0, 64);
  Buffer& good = *pair_.server().buffer;
  good.Fill(kMark);
  ibv_send_wr wrs[4] = {Read(&sge, good.address(), good.rkey(), 0),
                        Read(&sge, target.at(8), target.rkey() ^ 0x00ff00ff, 1),
                        Write(&sge, good.address(), good.rkey(), 2),
                        Write(&sge, good.address(), good.rkey(), 3)};
  for (int i = 0; i < 3; ++i) wrs[i].next = &wrs[i + 1];
  ASSERT_EQ(Post(pair_.client(), wrs[0]), 0);
  for (uint64_t i = 0; i < 4; ++i) {
    const ibv_wc wc = NextCompletion(pair_.client().cq);
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(wc.status, i == 0   ? IBV_WC_SUCCESS
                         : i == 1 ? IBV_WC_REM_ACCESS_ERR
                                  : IBV_WC_WR_FLUSH_ERR)
        << i << ": " << ibv_wc_status_str(wc.status);
  }
  EXPECT_EQ(good.Word(0), kMarkedWord) << "flushed work must not be executed";
}

class LocalKeyTest : public AccessTest {
 protected:
  // Expects that a READ into `sge` fails as a local error and breaks the queue pair. Some devices
  // check at the post, most when they execute the work request.
  void ExpectLocalError(ibv_sge sge) {
    Buffer& target = *pair_.server().buffer;
    if (Post(pair_.client(), Read(&sge, target.address(), target.rkey())) != 0) return;
    const ibv_wc wc = NextCompletion(pair_.client().cq);
    EXPECT_TRUE(wc.status == IBV_WC_LOC_PROT_ERR || wc.status == IBV_WC_LOC_LEN_ERR ||
                wc.status == IBV_WC_LOC_QP_OP_ERR)
        << ibv_wc_status_str(wc.status);
    ExpectErrorState(pair_.client());
  }
};

TEST_F(LocalKeyTest, ThatDoesNotExistIsALocalError) {
  ibv_sge sge = pair_.client().buffer->Sge(0, 64);
  sge.lkey ^= 0x00ff00ff;
  ExpectLocalError(sge);
}

TEST_F(LocalKeyTest, OfADeregisteredRegionIsALocalError) {
  Buffer gone(pair_.client().pd, kBytes, IBV_ACCESS_LOCAL_WRITE);
  gone.Deregister();
  ExpectLocalError(gone.Sge(0, 64));
  EXPECT_EQ(gone.Word(0), 0u);
}

TEST_F(LocalKeyTest, OfAnotherProtectionDomainIsALocalError) {
  ibv_pd* other_pd = ibv_alloc_pd(pair_.client().id->verbs);
  ASSERT_NE(other_pd, nullptr);
  {
    Buffer other(other_pd, kBytes, IBV_ACCESS_LOCAL_WRITE);
    pair_.server().buffer->Fill(kMark);
    ExpectLocalError(other.Sge(0, 64));
    EXPECT_EQ(other.Word(0), 0u);
  }
  EXPECT_EQ(ibv_dealloc_pd(other_pd), 0);
}

TEST_F(LocalKeyTest, OneBytePastItsRegionIsALocalError) {
  Buffer& source = *pair_.client().buffer;
  ExpectLocalError(source.Sge(source.size() - 63, 64));
}

TEST_F(LocalKeyTest, WithoutLocalWriteIsNoSinkOfAREAD) {
  Buffer read_only(pair_.client().pd, kBytes, 0);
  pair_.server().buffer->Fill(kMark);
  ExpectLocalError(read_only.Sge(0, 64));
  EXPECT_EQ(read_only.Word(0), 0u);
}

// ibv_reg_mr(3): remote write and remote atomic need local write.
TEST_F(AccessTest, RemoteWriteWithoutLocalWriteCannotBeRegistered) {
  std::vector<uint8_t> bytes(kBytes);
  const int access = IBV_ACCESS_REMOTE_WRITE;
  EXPECT_EQ(ibv_reg_mr(server_pd(), bytes.data(), kBytes, access), nullptr);
  EXPECT_NE(errno, 0);
}

// rdma_connect(3): with no initiator depth a READ is refused at the post, fails, or (Soft-RoCE)
// waits for ever; it never brings bytes.
TEST_F(AccessTest, QueuePairWithoutResponderResourcesServesNoReads) {
  Pair pair({.responder_resources = 0, .initiator_depth = 0});
  pair.server().buffer->Fill(kMark);
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
