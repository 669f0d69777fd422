#include "common/rdma/completion.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "tests/common/rdma/connected_pair.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

using CompletionTest = ConnectedPairTest;

bool Readable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

TEST_F(CompletionTest, ArmedQueueWakesForACompletionAndOnlyThen) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  CompletionQueue& queue = *server_.completions;
  server_.PostReceive(passive_->qp(), 1, 0, 64);
  server_.PostReceive(passive_->qp(), 2, 64, 64);
  ASSERT_TRUE(queue.Arm().ok());
  ibv_wc done;
  ASSERT_EQ(queue.Poll({&done, 1}), 0u);
  EXPECT_FALSE(Readable(queue.fd(), 0));

  ibv_sge sge = client_.buffer.Sge(0, 8);
  ibv_send_wr send = SendRequest(1, &sge, IBV_SEND_SIGNALED);
  ASSERT_EQ(PostSend(active_->connection()->qp(), &send), PostResult::kPosted);
  EXPECT_EQ(client_.Next().status, IBV_WC_SUCCESS);
  ASSERT_TRUE(Readable(queue.fd(), kTestTimeoutNs / 1'000'000));
  queue.TakeEvent();
  EXPECT_FALSE(Readable(queue.fd(), 0));
  EXPECT_EQ(queue.Poll({&done, 1}), 1u);

  // Not armed again: the next one wakes nobody.
  ASSERT_EQ(PostSend(active_->connection()->qp(), &send), PostResult::kPosted);
  EXPECT_EQ(server_.Next().status, IBV_WC_SUCCESS);
  EXPECT_FALSE(Readable(queue.fd(), 0));
}

TEST_F(CompletionTest, DestructionWithAnEventPendingDoesNotWait) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  server_.PostReceive(passive_->qp(), 1, 0, 64);
  ASSERT_TRUE(server_.completions->Arm().ok());
  ibv_sge sge = client_.buffer.Sge(0, 8);
  ibv_send_wr send = SendRequest(1, &sge, IBV_SEND_SIGNALED);
  ASSERT_EQ(PostSend(active_->connection()->qp(), &send), PostResult::kPosted);
  ASSERT_TRUE(Readable(server_.completions->fd(), kTestTimeoutNs / 1'000'000));
  Close();
  server_.completions.reset();
  EXPECT_EQ(server_.completions, nullptr);
}

TEST(CompletionQueueTest, ReservationsNeverExceedItsCapacity) {
  auto queue = CompletionQueue::Create(TestDevice().verbs, 100, false);
  ASSERT_TRUE(queue.ok()) << queue.status();
  const uint32_t capacity = (*queue)->capacity();
  EXPECT_GE(capacity, 100u);
  EXPECT_TRUE((*queue)->Reserve(capacity - 1).ok());
  EXPECT_EQ((*queue)->Reserve(2).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ((*queue)->reserved(), capacity - 1);
  (*queue)->Release(10);
  EXPECT_TRUE((*queue)->Reserve(11).ok());
  EXPECT_EQ((*queue)->reserved(), capacity);
}

TEST(CompletionQueueTest, MoreThanTheDeviceCanIsCut) {
  auto queue = CompletionQueue::Create(TestDevice().verbs, ~0u, false);
  if (!queue.ok()) GTEST_SKIP() << "not enough memory for the device's largest queue";
  EXPECT_LE((*queue)->capacity(), TestDevice().caps.max_cqe);
}

}  // namespace
}  // namespace gannet
