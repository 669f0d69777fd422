// A thread that polls in vain, with a link to another host, gives its core to others.
#include <gtest/gtest.h>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/tests/nic/remote_fixture.h"
#include "softverbs/tests/support/yield_count.h"

namespace softverbs {
namespace {

constexpr int64_t kPatienceNs = 20'000'000'000;
constexpr uint64_t kYields = 100;

TEST_F(RemoteTest, AThreadThatPollsInVainYields) {
  Start();
  ASSERT_EQ(Read(), IBV_WC_SUCCESS);
  const uint64_t before = YieldsOfThisThread();
  // Not the first polls, nor those behind the clocks that the hosts exchange, nor those that find
  // the engine with the loop thread: on a busy machine many. On one host there are fewer
  // (idle_test.cc).
  for (const int64_t begin = MonotonicNs();
       YieldsOfThisThread() - before < kYields && MonotonicNs() - begin < kPatienceNs;) {
    ASSERT_TRUE(side_->Idle());
  }
  EXPECT_GE(YieldsOfThisThread() - before, kYields);
}

}  // namespace
}  // namespace softverbs
