#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "softverbs/tests/simulation/fault_fixture.h"

// The seed of a plan decides which requests meet its faults: the same ones every time. (For torn
// reads and delayed completions the seed decides more; fault_test.cc replays those.)

namespace softverbs {
namespace {

class FaultReplayTest : public FaultTest {
 protected:
  static constexpr int kRequests = 48;

  // Returns how often the fault struck during each of the requests, in their order.
  std::string Struck(const char* fault, const std::function<void(int)>& make) {
    std::string counts;
    for (int i = 0; i < kRequests; ++i) {
      const uint64_t before = softverbs_fault_count(fault);
      make(i);
      counts += std::to_string(softverbs_fault_count(fault) - before) + " ";
    }
    EXPECT_NE(softverbs_fault_count(fault), 0u);
    EXPECT_NE(counts.find("0 "), std::string::npos) << "all of them were struck";
    return counts;
  }

  // Leaves 1000 + i in the i-th word of the target.
  void PostOne(ibv_wr_opcode opcode, int i) {
    const size_t at = 8 * static_cast<size_t>(i);
    a().Word(at) = 1000 + static_cast<uint64_t>(i);
    if (opcode == IBV_WR_SEND) {
      EXPECT_EQ(b().PostReceive(static_cast<uint64_t>(i), at, 8), 0);
      EXPECT_EQ(a().PostSend(static_cast<uint64_t>(i), at, 8), 0);
    } else if (opcode == IBV_WR_RDMA_WRITE) {
      EXPECT_EQ(a().Write(static_cast<uint64_t>(i), at, 8, b().address(), at), 0);
    } else {
      EXPECT_EQ(
          a().CompareSwap(static_cast<uint64_t>(i), 4096 + at, b().address(), at, 0, a().Word(at)),
          0);
    }
  }

  // Makes one request after another until the answer to one is lost. Returns that one's number.
  std::string FirstLost(const std::string& plan, ibv_wr_opcode opcode, uint64_t seed) {
    Begin(plan, seed);
    for (int i = 0; i < kRequests; ++i) {
      PostOne(opcode, i);
      const ibv_wc wc = Only(simulation(), a());
      EXPECT_EQ(b().Word(8 * static_cast<size_t>(i)), 1000u + static_cast<uint64_t>(i))
          << "request " << i << " did not happen";
      if (wc.status == IBV_WC_SUCCESS) continue;
      EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
      EXPECT_EQ(softverbs_fault_count("lost_ack"), 1u);
      return std::to_string(i);
    }
    return "none";
  }
};

TEST_F(FaultReplayTest, Errors) {
  EXPECT_TRUE(Replays([this](uint64_t seed) {
    Begin("error=any:0.05", seed);
    return Statuses(Run(40, [this](int i) { a().Write(i, 0, 8, b().address(), 0); }));
  }));
}

TEST_F(FaultReplayTest, Stalls) {
  EXPECT_TRUE(Replays([this](uint64_t seed) {
    Begin("stall_peer=1/4:1ms", seed);
    return Struck("stall_peer", [this](int) {
      EXPECT_EQ(a().Write(1, 0, 8, b().address(), 0), 0);
      EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
    });
  }));
}

TEST_F(FaultReplayTest, ReceiversNotReady) {
  EXPECT_TRUE(Replays([this](uint64_t seed) {
    Begin("rnr=1/4", seed, {.rnr_retry = 7});
    return Struck("rnr", [this](int) {
      EXPECT_EQ(b().PostReceive(1, 0, 64), 0);
      EXPECT_EQ(a().PostSend(1, 0, 64), 0);
      EXPECT_EQ(Only(simulation(), a()).status, IBV_WC_SUCCESS);
    });
  }));
}

TEST_F(FaultReplayTest, FailedRegistrations) {
  EXPECT_TRUE(Replays([this](uint64_t seed) {
    Begin("", seed);
    const std::string plan = "fail_reg_mr=1/4,seed=" + std::to_string(seed);
    EXPECT_EQ(softverbs_set_faults(plan.c_str(), nullptr, 0), 0);
    TestMemory memory(MemoryKind::kPrivate, 4096);
    return Struck("fail_reg_mr", [&](int) {
      const uint64_t before = softverbs_fault_count("fail_reg_mr");
      const Owned<ibv_mr> mr(
          ibv_reg_mr(a().pd, memory.data(), memory.size(), static_cast<int>(kAllAccess)));
      EXPECT_EQ(mr == nullptr, softverbs_fault_count("fail_reg_mr") != before);
    });
  }));
}

// The seed decides nothing here: the fault strikes the N+1st request of each connection.
TEST_F(FaultReplayTest, DroppedConnections) {
  const auto scenario = [this](uint64_t seed) {
    Begin("drop_connection_after=5", seed);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(a().Write(i, 0, 8, b().address(), 0), 0);
    std::string all = Statuses(Drain(simulation(), a()));
    Pair second(device_.get());
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(second.a.Write(i, 0, 8, second.b.address(), 0), 0);
    }
    EXPECT_EQ(Statuses(Drain(simulation(), second.a)), all) << "each connection has its own count";
    return all;
  };
  EXPECT_FALSE(Replays(scenario));
  const std::string all = scenario(kSeed);
  EXPECT_NE(all.find("wr 4 success\nwr 5 transport retry counter exceeded\nwr 6 Work Request F"),
            std::string::npos)
      << all;
}

TEST_F(FaultReplayTest, LostAcknowledgements) {
  struct Case {
    const char* name;
    ibv_wr_opcode opcode;
  };
  for (const Case& it : {Case{"send", IBV_WR_SEND}, Case{"write", IBV_WR_RDMA_WRITE},
                         Case{"cas", IBV_WR_ATOMIC_CMP_AND_SWP}}) {
    SCOPED_TRACE(it.name);
    const std::string plan = std::string("lost_ack=") + it.name + ":1/8";
    const auto scenario = [&](uint64_t seed) { return FirstLost(plan, it.opcode, seed); };
    EXPECT_TRUE(Replays(scenario)) << scenario(kSeed);
    EXPECT_NE(scenario(kSeed), "none");
  }
}

}  // namespace
}  // namespace softverbs
