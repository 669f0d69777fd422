#include "softverbs/nic/event_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

namespace softverbs {
namespace {

bool Readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(EventQueueTest, IsReadableExactlyWhileEventsAreQueued) {
  EventQueue<int> queue;
  EXPECT_FALSE(Readable(queue.fd()));
  queue.Push(1);
  queue.Push(2);
  EXPECT_TRUE(Readable(queue.fd()));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_TRUE(Readable(queue.fd()));
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_FALSE(Readable(queue.fd()));
}

TEST(EventQueueTest, HonoursNonBlocking) {
  EventQueue<int> queue;
  ASSERT_EQ(fcntl(queue.fd(), F_SETFL, O_NONBLOCK), 0);
  errno = 0;
  EXPECT_EQ(queue.Pop(), std::nullopt);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(EventQueueTest, PurgeTakesTheTokensToo) {
  EventQueue<int> queue;
  for (int i = 0; i < 6; ++i) queue.Push(i);
  EXPECT_EQ(queue.Purge([](int value) { return value % 2 == 0; }), 3u);
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Purge([](int) { return true; }), 2u);
  EXPECT_FALSE(Readable(queue.fd()));
}

TEST(EventQueueTest, APopThatLosesItsEventToAPurgeWaitsForTheNext) {
  constexpr int kRounds = 500;
  constexpr int kLast = -1;
  EventQueue<int> queue;
  int popped = 0;
  std::thread reader([&] {
    while (queue.Pop() != kLast) ++popped;
  });
  int purged = 0;
  for (int i = 0; i < kRounds; ++i) {
    queue.Push(i);
    purged += queue.Purge([i](int value) { return value == i; });
  }
  queue.Push(kLast);
  reader.join();
  EXPECT_EQ(popped + purged, kRounds);
  EXPECT_FALSE(Readable(queue.fd()));
}

}  // namespace
}  // namespace softverbs
