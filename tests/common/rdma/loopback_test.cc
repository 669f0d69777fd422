#include "common/rdma/loopback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "common/base/clock.h"
#include "common/rdma/device_choice.h"
#include "tests/common/rdma/connected_pair.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

class LoopbackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!TestDevice().caps.has_atomics()) GTEST_SKIP() << TestDevice().name << " has no atomics";
    auto words = SharedMemory::Create({.name = "lock words", .bytes = 4096, .remote_write = true});
    ASSERT_TRUE(words.ok()) << words.status();
    words_ = std::make_unique<SharedMemory>(*std::move(words));
    pd_.reset(ibv_alloc_pd(TestDevice().verbs));
    ASSERT_NE(pd_, nullptr);
    auto mr = RegisterMemory(pd_.get(), words_->bytes(), RemoteAccess::kReadAtomic);
    ASSERT_TRUE(mr.ok()) << mr.status();
    mr_ = *std::move(mr);
    auto loopback = Loopback::Create(TestDevice(), {.pd = pd_.get(), .depth = 4});
    ASSERT_TRUE(loopback.ok()) << loopback.status();
    loopback_ = *std::move(loopback);
  }
  uint64_t AddressOf(int word) const {
    return reinterpret_cast<uint64_t>(words_->bytes().data()) + 8 * word;
  }
  uint64_t Word(int word) const {
    return __atomic_load_n(reinterpret_cast<const uint64_t*>(AddressOf(word)), __ATOMIC_ACQUIRE);
  }
  Loopback::Outcome Wait() {
    Loopback::Outcome outcome;
    const int64_t deadline_ns = MonotonicNs() + kTestTimeoutNs;
    while (MonotonicNs() < deadline_ns) {
      if (loopback_->Poll({&outcome, 1}) == 1) return outcome;
    }
    ADD_FAILURE() << "no outcome";
    return outcome;
  }

  std::unique_ptr<SharedMemory> words_;
  Handle<ibv_pd> pd_;
  Handle<ibv_mr> mr_;
  std::unique_ptr<Loopback> loopback_;
};

TEST_F(LoopbackTest, CarriesAByte) {
  const absl::Status status = loopback_->CarryByte();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(LoopbackTest, SwapsOnlyWhatWasExpected) {
  ASSERT_TRUE(loopback_->CompareAndSwap(AddressOf(3), mr_->rkey, 0, 42, 1));
  Loopback::Outcome outcome = Wait();
  EXPECT_EQ(outcome.tag, 1u);
  EXPECT_EQ(outcome.previous, 0u);
  EXPECT_EQ(Word(3), 42u);
  ASSERT_TRUE(loopback_->CompareAndSwap(AddressOf(3), mr_->rkey, 0, 43, 2));
  outcome = Wait();
  EXPECT_EQ(outcome.tag, 2u);
  EXPECT_EQ(outcome.previous, 42u);
  EXPECT_EQ(Word(3), 42u);
}

TEST_F(LoopbackTest, TakesItsDepthAndNoMoreUntilPolled) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(loopback_->CompareAndSwap(AddressOf(i), mr_->rkey, 0, 1, i));
  }
  EXPECT_EQ(loopback_->in_flight(), 4u);
  EXPECT_FALSE(loopback_->CompareAndSwap(AddressOf(4), mr_->rkey, 0, 1, 4));
  EXPECT_FALSE(loopback_->broken());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Wait().previous, 0u);
  EXPECT_TRUE(loopback_->CompareAndSwap(AddressOf(4), mr_->rkey, 0, 1, 4));
  EXPECT_EQ(Wait().tag, 4u);
}

TEST_F(LoopbackTest, ARefusedAccessBreaksIt) {
  ASSERT_TRUE(loopback_->CompareAndSwap(AddressOf(0), mr_->rkey + 12345, 0, 1, 1));
  const int64_t deadline_ns = MonotonicNs() + kTestTimeoutNs;
  Loopback::Outcome outcome;
  while (loopback_->in_flight() > 0 && MonotonicNs() < deadline_ns) {
    EXPECT_EQ(loopback_->Poll({&outcome, 1}), 0u);
  }
  EXPECT_TRUE(loopback_->broken());
  EXPECT_FALSE(loopback_->CompareAndSwap(AddressOf(0), mr_->rkey, 0, 1, 2));
}

TEST_F(LoopbackTest, DrainsWhileItsOwnerDoesOtherThings) {
  for (uint64_t tag = 1; tag <= 4; ++tag) {
    ASSERT_TRUE(loopback_->CompareAndSwap(AddressOf(5), mr_->rkey, 0, tag, tag));
  }
  loopback_->BeginDrain();
  EXPECT_TRUE(loopback_->broken());
  EXPECT_FALSE(loopback_->CompareAndSwap(AddressOf(6), mr_->rkey, 0, 5, 5));
  const int64_t deadline_ns = MonotonicNs() + kTestTimeoutNs;
  while (!loopback_->LookDrained()) ASSERT_LT(MonotonicNs(), deadline_ns);
  const uint64_t swapped = Word(5);
  loopback_.reset();
  EXPECT_EQ(Word(5), swapped) << "nothing is in flight behind the drain";
  EXPECT_EQ(Word(6), 0u);
}

TEST(DeviceTest, DescribesItself) {
  const DeviceCaps& caps = TestDevice().caps;
  EXPECT_GT(caps.max_qp_wr, 0u);
  EXPECT_GT(caps.max_sge, 0u);
  EXPECT_GT(caps.max_cqe, 0u);
  EXPECT_GT(caps.max_qp_rd_atom, 0);
  EXPECT_GE(caps.mtu_bytes, 256u);
  EXPECT_EQ(TestDevice().kind == DeviceKind::kSoftverbs, TestDevice().name == kSoftverbsDeviceName);
}

TEST(DeviceTest, WorksByProof) {
  const absl::Status status = ProbeDevice(TestDevice());
  EXPECT_TRUE(status.ok()) << status;
}

TEST(DeviceTest, IsChosenByNameAndAutomatically) {
  const auto by_name = ChooseDevice(TestDevice().name);
  ASSERT_TRUE(by_name.ok()) << by_name.status();
  ASSERT_TRUE(by_name->has_value());
  EXPECT_EQ((*by_name)->verbs, TestDevice().verbs);
  const auto automatic = ChooseDevice("auto");
  ASSERT_TRUE(automatic.ok()) << automatic.status();
  EXPECT_TRUE(automatic->has_value());
}

TEST(DeviceTest, AnUnknownNameListsWhatIsThere) {
  const auto device = ChooseDevice("nosuch0");
  ASSERT_FALSE(device.ok());
  EXPECT_THAT(std::string(device.status().message()), HasSubstr(TestDevice().name));
}

}  // namespace
}  // namespace gannet
