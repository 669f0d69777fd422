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
  // All but the first polls, and those behind the clocks that the hosts exchange.
  EXPECT_GT(YieldsOfThisThread() - before, kPolls / 2);
}

}  // namespace
}  // namespace softverbs
