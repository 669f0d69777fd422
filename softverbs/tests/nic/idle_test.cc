#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include "softverbs/tests/support/verbs_fixture.h"
#include "softverbs/tests/support/yield_count.h"

namespace softverbs {
namespace {

struct Usage {
  int64_t cpu_us;
  int64_t switches;  // of all threads, to and from anything
};

int64_t Microseconds(const timeval& time) {
  return int64_t{time.tv_sec} * 1'000'000 + time.tv_usec;
}

Usage UsageNow() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return {Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime),
          usage.ru_nvcsw + usage.ru_nivcsw};
}

// Measures this process while its application does nothing for 200 ms. An adapter that polled, or
// woke up every millisecond, would show as hundreds of switches, or as much CPU time.
Usage UsageOfIdleSpell() {
  const Usage before = UsageNow();
  poll(nullptr, 0, 200);
  const Usage after = UsageNow();
  return {after.cpu_us - before.cpu_us, after.switches - before.switches};
}

// The adapter may poll for a few milliseconds more, and on a busy machine later than it wants. So
// the first spell need not be idle yet.
void ExpectToFallIdle() {
  constexpr int kSpells = 25;
  constexpr Usage kMost{5'000, 10};
  Usage usage{};
  for (int spell = 0; spell < kSpells; ++spell) {
    usage = UsageOfIdleSpell();
    if (usage.cpu_us <= kMost.cpu_us && usage.switches <= kMost.switches) return;
  }
  ADD_FAILURE() << "still " << usage.cpu_us << " us of CPU and " << usage.switches << " switches";
}

class IdleTest : public ::testing::TestWithParam<MemoryKind> {
 protected:
  void Transfer(Pair& pair) {
    for (uint64_t i = 0; i < 100; ++i) {
      ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
      ASSERT_EQ(pair.a.PostSend(i, 0, 64), 0);
      ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
      ASSERT_EQ(pair.b.Next().status, IBV_WC_SUCCESS);
      ASSERT_EQ(pair.a.Read(i, 0, 64, pair.b.address(), 0), 0);
      ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
    }
  }

  Owned<ibv_context> device_ = OpenDevice();
};

INSTANTIATE_TEST_SUITE_P(Memory, IdleTest,
                         ::testing::Values(MemoryKind::kPrivate, MemoryKind::kMapped),
                         [](const auto& info) {
                           return info.param == MemoryKind::kMapped ? "Mapped" : "Private";
                         });

TEST_P(IdleTest, ConnectionsUseNoCpuAfterTheirOwnersStoppedPolling) {
  SideOptions options;
  options.kind = GetParam();
  Pair first(device_.get(), options, options), second(device_.get(), options, options);
  Transfer(first);
  Transfer(second);
  ExpectToFallIdle();
}

TEST_P(IdleTest, ArmedConnectionsUseNoCpuAndWakeForTheirCompletion) {
  SideOptions options;
  options.kind = GetParam();
  options.with_channel = true;
  Pair pair(device_.get(), options, options);
  Transfer(pair);
  ASSERT_EQ(ibv_req_notify_cq(pair.b.cq.get(), 0), 0);
  ExpectToFallIdle();

  ASSERT_EQ(pair.b.PostReceive(7, 0, 64), 0);
  ASSERT_EQ(pair.a.PostSend(7, 0, 64), 0);
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(pair.b.channel.get(), &cq, &context), 0);
  ibv_ack_cq_events(cq, 1);
  EXPECT_EQ(pair.b.Next().wr_id, 7u);
  EXPECT_EQ(pair.a.Next().wr_id, 7u);
}

// Between hosts it yields: yield_test.cc.
TEST(PollTest, AThreadThatPollsInVainOnOneHostKeepsItsCore) {
  constexpr int kPolls = 1000;
  const Owned<ibv_context> device = OpenDevice();
  Pair pair(device.get());
  const uint64_t before = YieldsOfThisThread();
  for (int i = 0; i < kPolls; ++i) ASSERT_TRUE(pair.a.Idle());
  // A lock that the loop thread holds may cost some.
  EXPECT_LT(YieldsOfThisThread() - before, kPolls / 10);
}

}  // namespace
}  // namespace softverbs
