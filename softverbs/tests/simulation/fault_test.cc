#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "softverbs/tests/simulation/fault_fixture.h"

// Every fault of a plan, seen through plain verbs on the simulated device.

namespace softverbs {
namespace {

constexpr size_t kBytes = 4096;

TEST_F(FaultTest, TornReadsMixWordsOfDifferentTimesAndNeverHalfAWord) {
  const auto scenario = [this](uint64_t seed) {
    Begin("tear_read=1:50us", seed);
    std::fill_n(b().memory.data(), kBytes, uint8_t{0x11});
    EXPECT_EQ(a().Read(1, 0, kBytes, b().address(), 0), 0);
    // After the READ began and before it ends.
    while (softverbs_now_ns() < 1'000'020'000 && softverbs_step() != 0) {
    }
    std::fill_n(b().memory.data(), kBytes, uint8_t{0x22});
    EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
    std::string seen;
    for (size_t at = 0; at < kBytes; at += 8) {
      const uint64_t word = a().Word(at);
      EXPECT_TRUE(word == 0x1111111111111111 || word == 0x2222222222222222) << word;
      seen += word == 0x1111111111111111 ? '1' : '2';
    }
    // In any order: neither side of the change is one piece.
    EXPECT_NE(seen.find("12"), std::string::npos);
    EXPECT_NE(seen.find("21"), std::string::npos);
    EXPECT_EQ(softverbs_fault_count("tear_read"), 1u);
    return seen;
  };
  EXPECT_TRUE(Replays(scenario));
}

TEST_F(FaultTest, TornReadsOfQuietMemoryAreRight) {
  Begin("tear_read=1");
  b().Fill(0, 200'000, 5);
  ASSERT_EQ(a().Read(1, 0, 199'993, b().address(), 3), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(memcmp(a().memory.data(), b().memory.data() + 3, 199'993), 0);
}

TEST_F(FaultTest, RequestsBehindATornReadWaitForIt) {
  Begin("tear_read=1:1ms");
  b().Word(0) = 1;
  ASSERT_EQ(a().Read(1, 0, 8, b().address(), 0), 0);
  ASSERT_EQ(a().FetchAdd(2, 8, b().address(), 0, 10), 0);
  const std::vector<ibv_wc> all = Drain(simulation(), a());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].wr_id, 1u);
  EXPECT_EQ(a().Word(0), 1u);
  EXPECT_EQ(b().Word(0), 11u);
}

TEST_F(FaultTest, DelayedCompletionsAreOvertakenByThoseOfOtherQueuePairs) {
  const auto scenario = [this](uint64_t seed) {
    Begin("delay_completion=1/2:200us", seed);
    ibv_cq* shared = a().cq.get();
    // A second connection whose completions go to the same CQ.
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = shared;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {.max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    Owned<ibv_qp> second(ibv_create_qp(a().pd, &attr));
    Side target(device_.get(), {});
    Address own = a().address();
    own.qp_num = second->qp_num;
    own.psn = own.qp_num * 7 & 0xffffff;  // as a Side chooses it
    a().qp.swap(second);
    a().ToRtr(target.address());
    target.ToRtr(own);
    a().ToRts();
    target.ToRts();
    a().qp.swap(second);
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(a().Write(i, 0, 64, b().address(), 0), 0);
      a().qp.swap(second);
      EXPECT_EQ(a().Write(100 + i, 0, 64, target.address(), 0), 0);
      a().qp.swap(second);
    }
    const std::vector<ibv_wc> all = Drain(simulation(), a());
    EXPECT_EQ(all.size(), 40u);
    std::vector<uint64_t> first, other;
    for (const ibv_wc& wc : all) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      (wc.wr_id < 100 ? first : other).push_back(wc.wr_id);
    }
    EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
    EXPECT_TRUE(std::is_sorted(other.begin(), other.end()));
    EXPECT_GT(softverbs_fault_count("delay_completion"), 0u);
    return Statuses(all);
  };
  EXPECT_TRUE(Replays(scenario));
}

TEST_F(FaultTest, ConnectionIsDroppedAfterSoManyRequests) {
  Begin("drop_connection_after=5");
  const auto all =
      Run(8, [this](int i) { EXPECT_EQ(a().Write(i, 0, 8, b().address(), 8 * i), 0); });
  ASSERT_EQ(all.size(), 8u);
  for (int i = 0; i < 8; ++i) {
    const ibv_wc_status expected = i < 5    ? IBV_WC_SUCCESS
                                   : i == 5 ? IBV_WC_RETRY_EXC_ERR
                                            : IBV_WC_WR_FLUSH_ERR;
    EXPECT_EQ(all[i].status, expected) << i;
  }
  EXPECT_EQ(a().State(), IBV_QPS_ERR);
  EXPECT_EQ(b().State(), IBV_QPS_RTS) << "half open: nobody told the peer";
}

TEST_F(FaultTest, PeerThatStallsAnswersLater) {
  Begin("stall_peer=1:10ms");
  const int64_t began = softverbs_now_ns();
  ASSERT_EQ(a().Write(1, 0, 8, b().address(), 0), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
  EXPECT_GT(softverbs_now_ns() - began, 100'000);
  EXPECT_EQ(softverbs_fault_count("stall_peer"), 1u);
}

TEST_F(FaultTest, ReceiverThatIsSaidNotToBeReadyIsTriedAgain) {
  Begin("rnr=1/2", kSeed, {.rnr_retry = 7});
  for (int i = 0; i < 20; ++i) ASSERT_EQ(b().PostReceive(i, 64 * i, 64), 0);
  const auto all = Run(20, [this](int i) { EXPECT_EQ(a().PostSend(i, 0, 64), 0); });
  EXPECT_EQ(all.size(), 20u);
  EXPECT_TRUE(std::ranges::all_of(all, [](const ibv_wc& wc) { return wc.status == 0; }));
  EXPECT_GT(softverbs_fault_count("rnr"), 0u);
}

TEST_F(FaultTest, ReceiverThatIsNeverReadyFailsTheSend) {
  Begin("rnr=1", kSeed, {.rnr_retry = 3});
  ASSERT_EQ(b().PostReceive(1, 0, 64), 0);
  ASSERT_EQ(a().PostSend(1, 0, 64), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(softverbs_fault_count("rnr"), 4u) << "once, and three times more";
}

TEST_F(FaultTest, ErrorStrikesTheOpcodeItIsForAndNothingHappens) {
  Begin("error=read:1:rem_op");
  b().Word(0) = 1;
  ASSERT_EQ(a().FetchAdd(1, 0, b().address(), 0, 1), 0);
  ASSERT_EQ(a().Read(2, 8, 8, b().address(), 0), 0);
  ASSERT_EQ(a().FetchAdd(3, 0, b().address(), 0, 1), 0);
  const auto all = Drain(simulation(), a());
  EXPECT_EQ(Statuses(all),
            "wr 1 success\nwr 2 remote operation error\n"
            "wr 3 Work Request Flushed Error\n");
  EXPECT_EQ(b().Word(0), 2u);
  EXPECT_EQ(softverbs_fault_count("error"), 1u);
}

TEST_F(FaultTest, LostAcknowledgementFailsWhatWasApplied) {
  Begin("lost_ack=cas:1");
  b().Word(0) = 3;
  a().Word(0) = 77;
  ASSERT_EQ(a().CompareSwap(1, 0, b().address(), 0, 3, 4), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(b().Word(0), 4u) << "it happened";
  EXPECT_EQ(a().Word(0), 77u) << "and nobody was told";
  EXPECT_EQ(a().State(), IBV_QPS_ERR);
  EXPECT_EQ(softverbs_fault_count("lost_ack"), 1u);
}

TEST_F(FaultTest, LostAcknowledgementOfAWrite) {
  Begin("lost_ack=write:1");
  a().Word(0) = 5;
  ASSERT_EQ(a().Write(1, 0, 8, b().address(), 64), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(b().Word(64), 5u) << "it happened";
  EXPECT_EQ(a().State(), IBV_QPS_ERR);
  EXPECT_EQ(b().State(), IBV_QPS_RTS) << "half open: nobody told the peer";
  EXPECT_EQ(softverbs_fault_count("lost_ack"), 1u);
}

TEST_F(FaultTest, LostAcknowledgementOfASend) {
  Begin("lost_ack=send:1");
  a().Word(0) = 5;
  ASSERT_EQ(b().PostReceive(2, 64, 8), 0);
  ASSERT_EQ(a().PostSend(1, 0, 8), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(Statuses(Drain(simulation(), b())), "wr 2 success\n") << "it happened";
  EXPECT_EQ(b().Word(64), 5u);
  EXPECT_EQ(a().State(), IBV_QPS_ERR);
  EXPECT_EQ(b().State(), IBV_QPS_RTS);
  EXPECT_EQ(softverbs_fault_count("lost_ack"), 1u);
}

TEST_F(FaultTest, RegistrationFails) {
  Begin("fail_reg_mr=0");
  ASSERT_EQ(softverbs_set_faults("seed=1,fail_reg_mr=1", nullptr, 0), 0);
  TestMemory memory(MemoryKind::kPrivate, 4096);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(a().pd, memory.data(), memory.size(), static_cast<int>(kAllAccess)),
            nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(softverbs_fault_count("fail_reg_mr"), 1u);
}

TEST_F(FaultTest, DeviceWithoutAtomicsSaysSoAndRefusesThem) {
  Begin("atomics=none");
  ibv_device_attr attr;
  ASSERT_EQ(ibv_query_device(device_.get(), &attr), 0);
  EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_NONE);
  EXPECT_EQ(a().CompareSwap(1, 0, b().address(), 0, 0, 1), EINVAL);
  EXPECT_EQ(a().FetchAdd(1, 0, b().address(), 0, 1), EINVAL);
  EXPECT_EQ(a().Read(2, 0, 8, b().address(), 0), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
}

TEST_F(FaultTest, AtomicsOfTheAdapterAreNotAtomicForTheProcessor) {
  Begin("atomics=hca");
  ibv_device_attr attr;
  ASSERT_EQ(ibv_query_device(device_.get(), &attr), 0);
  EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_HCA);
  b().Word(0) = 10;
  softverbs_set_atomic_window(
      [](void* word) { __atomic_fetch_add(static_cast<uint64_t*>(word), 100, __ATOMIC_SEQ_CST); },
      &b().Word(0));
  ASSERT_EQ(a().FetchAdd(1, 0, b().address(), 0, 1), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
  softverbs_set_atomic_window(nullptr, nullptr);
  EXPECT_EQ(a().Word(0), 10u);
  EXPECT_EQ(b().Word(0), 11u) << "what the processor added in between is lost";
}

TEST_F(FaultTest, ClearedFaultsStrikeNoMore) {
  Begin("error=any:1,delay_completion=1:1s,delay_post=1:1s");
  softverbs_clear_faults();
  ASSERT_EQ(a().Write(1, 0, 8, b().address(), 0), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
}

TEST_F(FaultTest, FaultsHoldForMemoryThatWasSharedBefore) {
  Begin("");
  ASSERT_EQ(a().Read(1, 0, 64, b().address(), 0), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
  ASSERT_EQ(softverbs_set_faults("tear_read=1", nullptr, 0), 0);
  ASSERT_EQ(a().Read(2, 0, 64, b().address(), 0), 0);
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(softverbs_fault_count("tear_read"), 1u);
}

// The walk found these two: one hung, the other wrote garbage.
TEST_F(FaultTest, PeerThatBreaksRefusesTheAnswerItOwes) {
  Begin("tear_read=1:1ms");
  ASSERT_EQ(a().Read(1, 0, 64, b().address(), 0), 0);
  while (simulation().log().find("type 3") == std::string::npos) {  // until the READ began
    ASSERT_NE(softverbs_step(), 0);
  }
  b().ToError();
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(FaultTest, WriteWhoseSourceIsDeregisteredInTimeWritesNothing) {
  Begin("delay_post=1:1ms");
  b().Word(0) = 5;
  ASSERT_EQ(a().Write(1, 0, 64, b().address(), 0), 0);
  a().mr.reset();
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(b().Word(0), 5u);
}

class StrictTest : public FaultTest {};

TEST_F(StrictTest, SinksArePoisonedUntilTheReadIsComplete) {
  Begin("strict=1");
  b().Fill(0, 64, 9);
  a().Fill(0, 64, 1);
  ASSERT_EQ(a().Read(1, 0, 64, b().address(), 0), 0);
  EXPECT_TRUE(std::all_of(a().memory.data(), a().memory.data() + 64,
                          [](uint8_t byte) { return byte == 0xdb; }));
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(a().Matches(0, 64, 9));
}

TEST_F(StrictTest, SourcesAreCopiedAfterThePost) {
  Begin("strict=1");
  a().Word(0) = 1;
  ASSERT_EQ(a().Write(1, 0, 8, b().address(), 0), 0);
  a().Word(0) = 2;  // the application's mistake
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(b().Word(0), 2u);
}

TEST_F(StrictTest, InlineDataIsTakenAtThePost) {
  Begin("strict=1");
  a().Word(0) = 1;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  wr.wr.rdma.remote_addr = b().memory.address();
  wr.wr.rdma.rkey = b().mr->rkey;
  ASSERT_EQ(a().Post(wr, a().Sge(0, 8)), 0);
  a().Word(0) = 2;
  EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(b().Word(0), 1u);
}

TEST_F(StrictTest, MisuseIsReported) {
  Begin("strict=1");
  const auto misuses = [before = softverbs_misuse_count()] {
    return softverbs_misuse_count() - before;
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(a().PostSend(1, a().memory.size() - 8, 64), 0);  // an SGE outside of its region
  EXPECT_EQ(misuses(), 1u);
  EXPECT_EQ(a().PostSend(1, 0, 4096, IBV_SEND_INLINE), EINVAL);
  EXPECT_EQ(misuses(), 2u);
  Side reset(device_.get(), {});
  EXPECT_EQ(reset.PostSend(1, 0, 8), EINVAL);
  EXPECT_EQ(misuses(), 3u);
  Owned<ibv_mr> other(ibv_reg_mr(b().pd, b().memory.data(), 64, static_cast<int>(kAllAccess)));
  ibv_sge sge{b().memory.address(), 8, other->lkey};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  EXPECT_EQ(b().Post(wr, sge), 0);
  other.reset();
  EXPECT_EQ(misuses(), 4u);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("misuse: queue pair"), std::string::npos) << said;
  EXPECT_NE(said.find("ibv_dereg_mr: a posted request uses the region"), std::string::npos) << said;
}

}  // namespace
}  // namespace softverbs
