// A thread that polls in vain, with a link to another host, gives its core to others.
#include <gtest/gtest.h>

#include "tests/softverbs/nic/remote_fixture.h"
#include "tests/softverbs/support/yield_count.h"

namespace softverbs {
namespace {

constexpr int kPolls = 1000;

TEST_F(RemoteTest, AThreadThatPollsInVainYields) {
  Start();
  ASSERT_EQ(Read(), IBV_WC_SUCCESS);
  const uint64_t before = YieldsOfThisThread();
  for (int i = 0; i < kPolls; ++i) ASSERT_TRUE(side_->Idle());
  // Not the first polls, nor those behind the clocks that the hosts exchange, nor those that find
  // the engine with the loop thread. On one host there are fewer (idle_test.cc).
  EXPECT_GT(YieldsOfThisThread() - before, kPolls / 10);
}

}  // namespace
}  // namespace softverbs
