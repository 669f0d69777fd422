#include "softverbs/nic/loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/unique_fd.h"
#include "softverbs/tests/support/sanitizer.h"

namespace softverbs {
namespace {

void Signal(int fd) {
  const uint64_t one = 1;
  ASSERT_EQ(write(fd, &one, sizeof(one)), 8);
}

TEST(LoopTest, RunsPostedWorkOnItsThread) {
  std::promise<bool> on_loop;
  Loop::Get().Post([&] { on_loop.set_value(Loop::Get().OnLoopThread()); });
  EXPECT_TRUE(on_loop.get_future().get());
  EXPECT_FALSE(Loop::Get().OnLoopThread());
}

TEST(LoopTest, CallsTheHandlerOfAReadableDescriptor) {
  UniqueFd fd(eventfd(0, EFD_NONBLOCK));
  std::promise<uint32_t> events;
  const Loop::Watch watch = Loop::Get().Add(fd.get(), EPOLLIN, [&](uint32_t bits) {
    uint64_t value;
    ASSERT_EQ(read(fd.get(), &value, 8), 8);
    events.set_value(bits);
  });
  Signal(fd.get());
  EXPECT_EQ(events.get_future().get(), uint32_t{EPOLLIN});
  Loop::Get().Remove(watch);
}

TEST(LoopTest, RemoveWaitsForTheRunningHandler) {
  UniqueFd fd(eventfd(0, EFD_NONBLOCK));
  std::promise<void> entered, leave;
  std::atomic<bool> left{false};
  const Loop::Watch watch = Loop::Get().Add(fd.get(), EPOLLIN, [&](uint32_t) {
    uint64_t value;
    ASSERT_EQ(read(fd.get(), &value, 8), 8);
    entered.set_value();
    leave.get_future().wait();
    left = true;
  });
  Signal(fd.get());
  entered.get_future().wait();
  std::thread remover([&] {
    Loop::Get().Remove(watch);
    EXPECT_TRUE(left);
  });
  leave.set_value();
  remover.join();
}

// It is no watch's and no timer's number, and must not be taken for what runs while nothing does.
TEST(LoopTest, ZeroIsIgnored) {
  Loop::Get().Remove(0);
  Loop::Get().Cancel(0);
}

TEST(LoopTest, AHandlerMayRemoveItself) {
  UniqueFd fd(eventfd(0, EFD_NONBLOCK));
  Loop::Watch watch = 0;
  std::promise<void> added, done;
  auto added_future = added.get_future();
  watch = Loop::Get().Add(fd.get(), EPOLLIN, [&](uint32_t) {
    added_future.wait();
    Loop::Get().Remove(watch);
    done.set_value();  // a second call would throw
  });
  added.set_value();
  Signal(fd.get());
  done.get_future().wait();
  std::promise<void> turned;
  Loop::Get().Post([&] { turned.set_value(); });
  turned.get_future().wait();
}

TEST(LoopTest, TimersRunInOrderOfDeadline) {
  std::promise<void> done;
  std::vector<int> order;  // the loop thread's until done
  const int64_t now = MonotonicNs();
  Loop::Get().RunAt(now + 3'000'000, [&] {
    order.push_back(3);
    done.set_value();
  });
  Loop::Get().RunAt(now + 1'000'000, [&] { order.push_back(1); });
  const Loop::Timer cancelled = Loop::Get().RunAt(now + 2'000'000, [&] { order.push_back(2); });
  Loop::Get().Cancel(cancelled);
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{1, 3}));
  EXPECT_GE(MonotonicNs(), now + 3'000'000);
}

TEST(LoopTest, AForkedChildGetsALoopOfItsOwn) {
  if (test_support::kThreadSanitizer) GTEST_SKIP() << "TSan does not support threads after fork";
  Loop* parents = &Loop::Get();
  const pid_t child = fork();
  if (child == 0) {
    std::promise<void> ran;
    if (&Loop::Get() == parents) _exit(1);
    Loop::Get().Post([&] { ran.set_value(); });
    ran.get_future().wait();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::promise<void> ran;
  Loop::Get().Post([&] { ran.set_value(); });
  ran.get_future().wait();
}

}  // namespace
}  // namespace softverbs
