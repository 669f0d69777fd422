// Memory windows (ibv_alloc_mw(3), ibv_bind_mw(3), IBTA 10.6.7.2): what a bound window opens to
// peers, and how it is closed again. Windows of type 2 are those of type 2B here: open to the queue
// pair that bound them.
#include <algorithm>

#include "softverbs/tests/verbs_contract/device.h"
#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

constexpr size_t kRegionBytes = 4096;
constexpr size_t kFirst = 1024;  // of the window in its region
constexpr size_t kLength = 512;
constexpr uint8_t kBefore = 0x5a;
constexpr unsigned kRegionAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
constexpr unsigned kReadWrite = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

// A region of the server, without a remote right, and a window.
class WindowFixture : public ::testing::Test {
 protected:
  void MakeWindow(ibv_mw_type type, unsigned region_access = kRegionAccess) {
    const unsigned needed =
        type == IBV_MW_TYPE_1 ? IBV_DEVICE_MEM_WINDOW : IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    if ((TheDevice().attr.device_cap_flags & needed) == 0) GTEST_SKIP() << "it has no such windows";
    pair_ = std::make_unique<Pair>();
    bytes_.assign(kRegionBytes, kBefore);
    mr_ = ibv_reg_mr(pair_->server().pd, bytes_.data(), kRegionBytes,
                     static_cast<int>(region_access));
    ASSERT_NE(mr_, nullptr) << strerror(errno);
    mw_ = ibv_alloc_mw(pair_->server().pd, type);
    ASSERT_NE(mw_, nullptr) << strerror(errno);
    key_ = mw_->rkey;
  }
  void TearDown() override {
    if (mw_ != nullptr) {
      EXPECT_EQ(ibv_dealloc_mw(mw_), 0);
    }
    if (mr_ != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    }
  }

  End& client() { return pair_->client(); }
  End& server() { return pair_->server(); }
  uint64_t at(size_t offset) const { return reinterpret_cast<uint64_t>(bytes_.data()) + offset; }

  ibv_mw_bind_info Info(size_t first, size_t length, unsigned access) {
    return {mr_, at(first), length, access};
  }
  // Binds the window, and returns how that completed. Its key changes.
  ibv_wc Bind(End& end, const ibv_mw_bind_info& info) {
    if (mw_->type == IBV_MW_TYPE_1) {
      ibv_mw_bind bind{.wr_id = 3, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
      EXPECT_EQ(ibv_bind_mw(end.qp(), mw_, &bind), 0);
      key_ = mw_->rkey;
    } else {
      key_ = ibv_inc_rkey(key_);
      EXPECT_EQ(Post(end, BindRequest(info)), 0);
    }
    return NextCompletion(end.cq);
  }
  ibv_send_wr BindRequest(const ibv_mw_bind_info& info) {
    ibv_send_wr wr{};
    wr.wr_id = 3;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = mw_;
    wr.bind_mw.rkey = key_;
    wr.bind_mw.bind_info = info;
    return wr;
  }
  void ExpectBound(unsigned access = kReadWrite) {
    const ibv_wc wc = Bind(server(), Info(kFirst, kLength, access));
    ASSERT_STREQ(ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_SUCCESS));
    EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);
    EXPECT_EQ(wc.wr_id, 3u);
  }
  void ExpectNotBound(const ibv_mw_bind_info& info) {
    const ibv_wc wc = Bind(server(), info);
    EXPECT_STREQ(ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_MW_BIND_ERR));
    ExpectErrorState(server());
  }

  ibv_wc_status ReadFrom(End& end, uint64_t address, uint32_t key, uint32_t length = 64) {
    ibv_sge sge = end.buffer->Sge(0, length);
    return Do(end, Read(&sge, address, key)).status;
  }
  ibv_wc_status WriteTo(uint64_t address, uint32_t key) {
    client().buffer->Fill(0xa5);
    ibv_sge sge = client().buffer->Sge(0, 64);
    return Do(client(), Write(&sge, address, key)).status;
  }
  void ExpectRefused(uint64_t address, uint32_t key, uint32_t length = 64) {
    EXPECT_EQ(ReadFrom(client(), address, key, length), IBV_WC_REM_ACCESS_ERR);
    ExpectErrorState(client());
  }
  void ExpectUntouched() const {
    EXPECT_TRUE(std::ranges::all_of(bytes_, [](uint8_t byte) { return byte == kBefore; }));
  }

  std::unique_ptr<Pair> pair_;
  std::vector<uint8_t> bytes_;
  ibv_mr* mr_ = nullptr;
  ibv_mw* mw_ = nullptr;
  uint32_t key_ = 0;
};

class WindowTest : public WindowFixture, public ::testing::WithParamInterface<ibv_mw_type> {
 protected:
  void SetUp() override { MakeWindow(GetParam()); }
  // Window and region are of different domains. libibverbs sees this itself for the first type.
  void ExpectDomainsDiffer() {
    const ibv_mw_bind_info info = Info(kFirst, kLength, kReadWrite);
    if (GetParam() == IBV_MW_TYPE_2) return ExpectNotBound(info);
    ibv_mw_bind bind{.wr_id = 3, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
    EXPECT_EQ(ibv_bind_mw(server().qp(), mw_, &bind), EPERM);
  }
};

TEST_P(WindowTest, OpensItsPartOfARegionWithoutRemoteRights) {
  ExpectBound();
  EXPECT_EQ(ReadFrom(client(), at(kFirst), key_), IBV_WC_SUCCESS);
  EXPECT_EQ(client().buffer->data()[63], kBefore);
  EXPECT_EQ(WriteTo(at(kFirst + kLength - 64), key_), IBV_WC_SUCCESS);
  EXPECT_EQ(bytes_[kFirst + kLength - 1], 0xa5);
  EXPECT_EQ(bytes_[kFirst + kLength], kBefore);
}

TEST_P(WindowTest, ServesAtomics) {
  SKIP_WITHOUT_ATOMICS();
  ExpectBound(kReadWrite | IBV_ACCESS_REMOTE_ATOMIC);
  ibv_sge sge = client().buffer->Sge(0, 8);
  EXPECT_EQ(Do(client(), FetchAndAdd(&sge, at(kFirst), key_, 1)).status, IBV_WC_SUCCESS);
  EXPECT_EQ(bytes_[kFirst], kBefore + 1);
}

TEST_P(WindowTest, RefusesOneByteBeforeIt) {
  ExpectBound();
  ExpectRefused(at(kFirst - 1), key_);
}

TEST_P(WindowTest, RefusesOneByteBehindIt) {
  ExpectBound();
  ExpectRefused(at(kFirst + kLength - 63), key_);
}

TEST_P(WindowTest, RefusesWhatItsRightsDoNotAllow) {
  ExpectBound(IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(WriteTo(at(kFirst), key_), IBV_WC_REM_ACCESS_ERR);
  ExpectUntouched();
}

TEST_P(WindowTest, RefusesEverythingUntilItIsBound) { ExpectRefused(at(kFirst), key_); }

TEST_P(WindowTest, HasAKeyThatIsNoLocalKey) {
  ExpectBound();
  ibv_sge sge{at(kFirst), 64, key_};
  Buffer& target = *client().buffer;
  if (Post(server(), Write(&sge, target.address(), target.rkey())) != 0) return;
  EXPECT_NE(NextCompletion(server().cq).status, IBV_WC_SUCCESS);
}

TEST_P(WindowTest, IsClosedWhenItIsFreed) {
  ExpectBound();
  EXPECT_EQ(ibv_dealloc_mw(std::exchange(mw_, nullptr)), 0);
  ExpectRefused(at(kFirst), key_);
}

TEST_P(WindowTest, KeepsItsRegionRegistered) {
  ExpectBound();
  EXPECT_NE(ibv_dereg_mr(mr_), 0);
  EXPECT_EQ(ReadFrom(client(), at(kFirst), key_), IBV_WC_SUCCESS);
}

TEST_P(WindowTest, KeepsItsProtectionDomain) {
  ibv_pd* pd = ibv_alloc_pd(server().id->verbs);
  ibv_mw* mw = ibv_alloc_mw(pd, GetParam());
  ASSERT_NE(mw, nullptr) << strerror(errno);
  EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_P(WindowTest, IsNotBoundToARegionOfAnotherDomain) {
  // Linux 6.1's rxe compares the domain of such a window with its queue pair's only.
  if (TheDevice().is_of_kernel() && GetParam() == IBV_MW_TYPE_2) {
    GTEST_SKIP() << "Soft-RoCE does not compare the domains of window and region";
  }
  ibv_pd* const pd = ibv_alloc_pd(server().id->verbs);
  ibv_mr* const own = std::exchange(
      mr_, ibv_reg_mr(pd, bytes_.data(), kRegionBytes, static_cast<int>(kRegionAccess)));
  ASSERT_NE(mr_, nullptr) << strerror(errno);
  ExpectDomainsDiffer();
  EXPECT_EQ(ibv_dereg_mr(std::exchange(mr_, own)), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_P(WindowTest, OfAnotherDomainIsNotBound) {
  ibv_pd* const pd = ibv_alloc_pd(server().id->verbs);
  ibv_mw* const own = std::exchange(mw_, ibv_alloc_mw(pd, GetParam()));
  ASSERT_NE(mw_, nullptr) << strerror(errno);
  key_ = mw_->rkey;
  ExpectDomainsDiffer();
  EXPECT_EQ(ibv_dealloc_mw(std::exchange(mw_, own)), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_P(WindowTest, IsNotBoundOutsideItsRegion) {
  ExpectNotBound(Info(kRegionBytes - kLength + 1, kLength, kReadWrite));
}

TEST_P(WindowTest, IsNotBoundByAQueuePairInError) {
  ToState(server().qp(), IBV_QPS_ERR);
  EXPECT_EQ(Bind(server(), Info(kFirst, kLength, kReadWrite)).status, IBV_WC_WR_FLUSH_ERR);
}

INSTANTIATE_TEST_SUITE_P(Types, WindowTest, ::testing::Values(IBV_MW_TYPE_1, IBV_MW_TYPE_2),
                         [](const auto& info) {
                           return info.param == IBV_MW_TYPE_1 ? "One" : "Two";
                         });

class RegionForWindowTest : public WindowFixture,
                            public ::testing::WithParamInterface<ibv_mw_type> {};

TEST_P(RegionForWindowTest, NeedsTheRightToBind) {
  MakeWindow(GetParam(), kAllAccess & ~(TheDevice().has_atomics() ? 0 : IBV_ACCESS_REMOTE_ATOMIC));
  if (IsSkipped()) return;
  ExpectNotBound(Info(kFirst, kLength, IBV_ACCESS_REMOTE_READ));
}

TEST_P(RegionForWindowTest, NeedsLocalWriteForWindowsThatAreWritten) {
  MakeWindow(GetParam(), IBV_ACCESS_MW_BIND);
  if (IsSkipped()) return;
  ExpectBound(IBV_ACCESS_REMOTE_READ);
}

TEST_P(RegionForWindowTest, WithoutLocalWriteTakesNoWindowForWriting) {
  MakeWindow(GetParam(), IBV_ACCESS_MW_BIND);
  if (IsSkipped()) return;
  ExpectNotBound(Info(kFirst, kLength, IBV_ACCESS_REMOTE_WRITE));
}

INSTANTIATE_TEST_SUITE_P(Types, RegionForWindowTest,
                         ::testing::Values(IBV_MW_TYPE_1, IBV_MW_TYPE_2), [](const auto& info) {
                           return info.param == IBV_MW_TYPE_1 ? "One" : "Two";
                         });

class FirstTypeTest : public WindowFixture {
 protected:
  void SetUp() override { MakeWindow(IBV_MW_TYPE_1); }
};

TEST_F(FirstTypeTest, IsOpenToEveryQueuePairOfItsDomain) {
  ExpectBound();
  Pair other({}, *pair_);
  EXPECT_EQ(ReadFrom(other.client(), at(kFirst), key_), IBV_WC_SUCCESS);
}

TEST_F(FirstTypeTest, IsBoundAnewUnderAnotherKey) {
  ExpectBound();
  const uint32_t old_key = key_;
  EXPECT_EQ(Bind(server(), Info(0, 128, kReadWrite)).status, IBV_WC_SUCCESS);
  EXPECT_NE(key_, old_key);
  EXPECT_EQ(ReadFrom(client(), at(0), key_), IBV_WC_SUCCESS);
  ExpectRefused(at(0), old_key);
}

TEST_F(FirstTypeTest, IsUnboundByALengthOfZero) {
  ExpectBound();
  const uint32_t old_key = key_;
  EXPECT_EQ(Bind(server(), Info(0, 0, 0)).status, IBV_WC_SUCCESS);
  ExpectRefused(at(kFirst), old_key);
  EXPECT_EQ(ibv_dereg_mr(std::exchange(mr_, nullptr)), 0);
}

class SecondTypeTest : public WindowFixture {
 protected:
  void SetUp() override { MakeWindow(IBV_MW_TYPE_2); }

  ibv_send_wr Invalidation(ibv_wr_opcode opcode, uint32_t key) {
    ibv_send_wr wr{};
    wr.wr_id = 4;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = key;
    return wr;
  }
};

TEST_F(SecondTypeTest, IsClosedToOtherQueuePairs) {
  ExpectBound();
  Pair other({}, *pair_);
  EXPECT_EQ(ReadFrom(other.client(), at(kFirst), key_), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(SecondTypeTest, IsNotBoundToNothing) { ExpectNotBound(Info(kFirst, 0, kReadWrite)); }

TEST_F(SecondTypeTest, IsNotBoundTwice) {
  ExpectBound();
  ExpectNotBound(Info(0, kLength, kReadWrite));
}

TEST_F(SecondTypeTest, IsBoundAgainAfterALocalInvalidation) {
  ExpectBound();
  const uint32_t old_key = key_;
  const ibv_wc wc = Do(server(), Invalidation(IBV_WR_LOCAL_INV, key_));
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_LOCAL_INV);
  ExpectBound();
  EXPECT_EQ(ReadFrom(client(), at(kFirst), key_), IBV_WC_SUCCESS);
  ExpectRefused(at(kFirst), old_key);
}

TEST_F(SecondTypeTest, IsInvalidatedByItsPeersSend) {
  ExpectBound();
  ASSERT_EQ(PostReceive(server(), server().buffer->Sge(0, 64), 9), 0);
  ibv_sge sge = client().buffer->Sge(0, 16);
  ibv_send_wr wr = Invalidation(IBV_WR_SEND_WITH_INV, key_);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  EXPECT_EQ(Do(client(), wr).status, IBV_WC_SUCCESS);
  const ibv_wc wc = NextCompletion(server().cq);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, 9u);
  EXPECT_EQ(wc.byte_len, 16u);
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_INV, 0u);
  EXPECT_EQ(wc.invalidated_rkey, key_);
  ExpectRefused(at(kFirst), key_);
}

TEST_F(SecondTypeTest, SendThatInvalidatesAnotherKeyFailsAtBothEnds) {
  ExpectBound();
  ASSERT_EQ(PostReceive(server(), server().buffer->Sge(0, 64), 9), 0);
  ASSERT_EQ(Post(client(), Invalidation(IBV_WR_SEND_WITH_INV, key_ ^ 0xff00)), 0);
  const ibv_wc wc = NextCompletion(server().cq);
  EXPECT_NE(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, 9u);
  EXPECT_NE(NextCompletion(client().cq).status, IBV_WC_SUCCESS);
}

TEST_F(SecondTypeTest, LocalInvalidationOfAnotherKeyFails) {
  ExpectBound();
  EXPECT_NE(Do(server(), Invalidation(IBV_WR_LOCAL_INV, key_ ^ 0xff00)).status, IBV_WC_SUCCESS);
  ExpectErrorState(server());
}

// A request behind a bind sees the window bound, and the SEND tells the peer its key.
TEST_F(SecondTypeTest, IsBoundBeforeTheSendBehindTheBindArrives) {
  ASSERT_EQ(PostReceive(client(), client().buffer->Sge(0, 64), 9), 0);
  key_ = ibv_inc_rkey(key_);
  ibv_send_wr bind = BindRequest(Info(kFirst, kLength, kReadWrite));
  ibv_sge sge = server().buffer->Sge(0, 16);
  ibv_send_wr send = Send(&sge, 5);
  bind.next = &send;
  ASSERT_EQ(Post(server(), bind), 0);
  EXPECT_EQ(NextCompletion(client().cq).wr_id, 9u);
  EXPECT_EQ(ReadFrom(client(), at(kFirst), key_), IBV_WC_SUCCESS);
  EXPECT_EQ(NextCompletion(server().cq).opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(NextCompletion(server().cq).opcode, IBV_WC_SEND);
}

TEST_F(SecondTypeTest, CountsAddressesFromZeroIfAskedTo) {
  ExpectBound(kReadWrite | IBV_ACCESS_ZERO_BASED);
  bytes_[kFirst] = 0x77;
  EXPECT_EQ(ReadFrom(client(), 0, key_), IBV_WC_SUCCESS);
  EXPECT_EQ(client().buffer->data()[0], 0x77);
}

}  // namespace
}  // namespace verbs_contract
