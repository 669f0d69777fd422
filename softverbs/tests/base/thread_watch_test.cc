#include "softverbs/base/thread_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace softverbs {
namespace {

TEST(ThreadWatchTest, WithoutAThreadNothingRuns) {
  const ThreadWatch watch;
  EXPECT_EQ(watch.CpuNs(), 0);
  EXPECT_FALSE(watch.Runnable());
}

TEST(ThreadWatchTest, TellsOneThatComputesFromOneThatWaits) {
  ThreadWatch watch;
  std::atomic<int> step{0};
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  std::thread other([&] {
    watch.WatchThisThread();
    step = 1;
    while (step == 1) {
    }
    char byte;
    EXPECT_EQ(read(fds[0], &byte, 1), 1);
  });
  while (step == 0) {
  }
  EXPECT_TRUE(watch.Runnable()) << "it runs, or waits for a core";
  const int64_t used_ns = watch.CpuNs();
  while (watch.CpuNs() == used_ns) {
  }
  step = 2;
  while (watch.Runnable()) {
  }
  const int64_t used_in_all_ns = watch.CpuNs();
  EXPECT_GT(used_in_all_ns, used_ns);
  EXPECT_EQ(watch.CpuNs(), used_in_all_ns) << "it waits";
  EXPECT_EQ(write(fds[1], "x", 1), 1);
  other.join();
  EXPECT_FALSE(watch.Runnable());
  EXPECT_EQ(watch.CpuNs(), 0);
  close(fds[0]);
  close(fds[1]);
}

}  // namespace
}  // namespace softverbs
