#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "softverbs/tests/support/edges.h"
#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

bool Readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

void WaitReadable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  ASSERT_EQ(poll(&entry, 1, static_cast<int>(kTimeoutNs / 1'000'000)), 1);
}

class CompletionQueueTest : public ::testing::Test {
 protected:
  static SideOptions WithChannel() {
    SideOptions options;
    options.with_channel = true;
    return options;
  }

  // Takes and acknowledges the event of `side`.
  static void TakeEvent(Side& side) {
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(side.channel.get(), &cq, &cq_context), 0);
    EXPECT_EQ(cq, side.cq.get());
    ibv_ack_cq_events(cq, 1);
  }

  Owned<ibv_context> device_ = OpenDevice();
};

TEST_F(CompletionQueueTest, AnArmedCqRaisesOneEvent) {
  Pair pair(device_.get(), {}, WithChannel());
  const int fd = pair.b.channel->fd;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
  ASSERT_EQ(pair.a.PostSend(1, 0, 8), 0);
  EXPECT_EQ(pair.b.Next().wr_id, 0u);
  EXPECT_FALSE(Readable(fd)) << "not armed";
  ASSERT_EQ(ibv_req_notify_cq(pair.b.cq.get(), 0), 0);
  ASSERT_EQ(pair.a.PostSend(2, 0, 8), 0);
  WaitReadable(fd);
  TakeEvent(pair.b);
  EXPECT_FALSE(Readable(fd));
  ASSERT_EQ(pair.a.PostSend(3, 0, 8), 0);
  EXPECT_EQ(pair.b.Next().wr_id, 1u);
  EXPECT_EQ(pair.b.Next().wr_id, 2u);
  EXPECT_FALSE(Readable(fd)) << "armed once, due once";
}

TEST_F(CompletionQueueTest, SolicitedOnlyIgnoresOtherCompletions) {
  Pair pair(device_.get(), {}, WithChannel());
  const int fd = pair.b.channel->fd;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
  ASSERT_EQ(ibv_req_notify_cq(pair.b.cq.get(), 1), 0);
  ASSERT_EQ(pair.a.PostSend(1, 0, 8), 0);
  EXPECT_EQ(pair.b.Next().wr_id, 0u);
  EXPECT_FALSE(Readable(fd));
  ASSERT_EQ(pair.a.PostSend(2, 0, 8, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED), 0);
  WaitReadable(fd);
  TakeEvent(pair.b);
  ASSERT_EQ(ibv_req_notify_cq(pair.b.cq.get(), 1), 0);
  pair.b.ToError();  // an unsuccessful completion counts as solicited
  WaitReadable(fd);
  TakeEvent(pair.b);
}

TEST_F(CompletionQueueTest, AnyIsNotWeakenedBySolicitedOnly) {
  Pair pair(device_.get(), {}, WithChannel());
  ASSERT_EQ(pair.b.PostReceive(0, 0, 64), 0);
  ASSERT_EQ(ibv_req_notify_cq(pair.b.cq.get(), 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(pair.b.cq.get(), 1), 0);
  ASSERT_EQ(pair.a.PostSend(1, 0, 8), 0);
  WaitReadable(pair.b.channel->fd);
  TakeEvent(pair.b);
}

// A kernel channel wakes its waiters for each event, also while older ones are unread. Applications
// that wait with EPOLLET depend on it.
TEST_F(CompletionQueueTest, EachEventIsAnEdgeAlsoWhileOlderOnesAreUnread) {
  constexpr int kEvents = 20;
  for (const int flags : {0, O_NONBLOCK}) {
    Pair pair(device_.get(), {}, WithChannel());
    const int fd = pair.b.channel->fd;
    ASSERT_EQ(fcntl(fd, F_SETFL, flags), 0);
    const Edges edges(fd);
    for (int i = 0; i < kEvents; ++i) {
      ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
      ASSERT_EQ(ibv_req_notify_cq(pair.b.cq.get(), 0), 0);
      ASSERT_EQ(pair.a.PostSend(i, 0, 8), 0);
      ASSERT_TRUE(edges.Next()) << i;
      ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
      ASSERT_EQ(pair.b.Next().wr_id, static_cast<uint64_t>(i));
    }
    for (int i = 0; i < kEvents; ++i) TakeEvent(pair.b);
    EXPECT_FALSE(Readable(fd));
  }
}

TEST_F(CompletionQueueTest, ANonBlockingChannelAnswersEagain) {
  Side side(device_.get(), WithChannel());
  ASSERT_EQ(fcntl(side.channel->fd, F_SETFL, O_NONBLOCK), 0);
  ibv_cq* cq;
  void* cq_context;
  errno = 0;
  EXPECT_EQ(ibv_get_cq_event(side.channel.get(), &cq, &cq_context), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(CompletionQueueTest, ArmThenPollLosesNoWakeUp) {
  constexpr uint64_t kMessages = 5000;
  Pair pair(device_.get(), {}, WithChannel());
  for (uint64_t i = 0; i < 60; ++i) ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
  std::thread receiver([&] {
    uint64_t received = 0;
    while (received < kMessages) {
      ASSERT_EQ(ibv_req_notify_cq(pair.b.cq.get(), 0), 0);
      ibv_wc wc;
      bool any = false;
      while (ibv_poll_cq(pair.b.cq.get(), 1, &wc) == 1) {
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
        ASSERT_EQ(pair.b.PostReceive(received++, 0, 64), 0);
        any = true;
      }
      if (any || received == kMessages) continue;
      WaitReadable(pair.b.channel->fd);
      TakeEvent(pair.b);
    }
  });
  for (uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(pair.a.PostSend(i, 0, 8), 0);
    ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  }
  receiver.join();
}

TEST_F(CompletionQueueTest, DestroyWaitsForTheAcknowledgement) {
  Owned<ibv_comp_channel> channel(ibv_create_comp_channel(device_.get()));
  Pair pair(device_.get());
  ibv_cq* cq = ibv_create_cq(device_.get(), 8, nullptr, channel.get(), 0);
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap.max_recv_wr = attr.cap.max_recv_sge = attr.cap.max_send_wr = 1;
  Owned<ibv_qp> qp(ibv_create_qp(pair.a.pd, &attr));
  EXPECT_EQ(ibv_destroy_cq(cq), EBUSY) << "a queue pair uses it";
  ibv_qp_attr to_error{};
  to_error.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp.get(), &to_error, IBV_QP_STATE), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  ibv_recv_wr wr{};
  ibv_recv_wr* bad;
  ASSERT_EQ(ibv_post_recv(qp.get(), &wr, &bad), 0);  // flushed at once
  ibv_cq* due;
  void* cq_context;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &due, &cq_context), 0);
  qp.reset();
  std::atomic<bool> acknowledged{false};
  std::thread destroyer([&] {
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_TRUE(acknowledged);
  });
  std::this_thread::yield();
  acknowledged = true;
  ibv_ack_cq_events(due, 1);
  destroyer.join();
}

TEST_F(CompletionQueueTest, EventsOfADestroyedCqAreDropped) {
  Owned<ibv_comp_channel> channel(ibv_create_comp_channel(device_.get()));
  Pair pair(device_.get());
  ibv_cq* cq = ibv_create_cq(device_.get(), 8, nullptr, channel.get(), 0);
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap.max_recv_wr = 1;
  Owned<ibv_qp> qp(ibv_create_qp(pair.a.pd, &attr));
  ibv_qp_attr to_error{};
  to_error.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp.get(), &to_error, IBV_QP_STATE), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  ibv_recv_wr wr{};
  ibv_recv_wr* bad;
  ASSERT_EQ(ibv_post_recv(qp.get(), &wr, &bad), 0);
  EXPECT_TRUE(Readable(channel->fd));
  qp.reset();
  EXPECT_EQ(ibv_destroy_comp_channel(channel.get()), EBUSY);
  ASSERT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_FALSE(Readable(channel->fd));
}

TEST_F(CompletionQueueTest, OverrunIsReportedOnce) {
  SideOptions options;
  options.cqe = 4;
  Pair pair(device_.get(), {}, options);
  for (int i = 0; i < 6; ++i) ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(pair.a.PostSend(i, 0, 8), 0);
    ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  }
  const ibv_async_event event = NextEvent(device_.get());
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, pair.b.cq.get());
  EXPECT_FALSE(HasEvent(device_.get()));
}

TEST_F(CompletionQueueTest, ResizeKeepsCompletions) {
  Pair pair(device_.get());
  for (int i = 0; i < 6; ++i) ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(pair.a.PostSend(i, 0, 8), 0);
    ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  }
  EXPECT_NE(ibv_resize_cq(pair.b.cq.get(), 5), 0);
  ASSERT_EQ(ibv_resize_cq(pair.b.cq.get(), 1000), 0);
  EXPECT_GE(pair.b.cq->cqe, 1000);
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(pair.b.Next().wr_id, i);
}

TEST_F(CompletionQueueTest, ExtendedPollingReadsTheSameThings) {
  ibv_cq_init_attr_ex init{};
  init.cqe = 16;
  init.wc_flags = IBV_WC_STANDARD_FLAGS | uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
  ibv_cq_ex* cq = ibv_create_cq_ex(device_.get(), &init);
  ASSERT_NE(cq, nullptr);
  ibv_poll_cq_attr poll_attr{};
  EXPECT_EQ(ibv_start_poll(cq, &poll_attr), ENOENT);
  {
    Side a(device_.get(), {});
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_recv_wr = attr.cap.max_recv_sge = 2;
    Side b(device_.get(), {});
    b.qp.reset(ibv_create_qp(b.pd, &attr));
    a.ToRtr(b.address());
    b.ToRtr(a.address());
    a.ToRts();
    for (int i = 0; i < 2; ++i) ASSERT_EQ(b.PostReceive(70 + i, 0, 64), 0);
    ASSERT_EQ(a.PostSend(1, 0, 8), 0);
    ASSERT_EQ(a.PostSend(2, 0, 9), 0);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(a.Next().status, IBV_WC_SUCCESS);
    ASSERT_EQ(ibv_start_poll(cq, &poll_attr), 0);
    EXPECT_EQ(cq->wr_id, 70u);
    EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
    EXPECT_EQ(ibv_wc_read_byte_len(cq), 8u);
    EXPECT_EQ(ibv_wc_read_qp_num(cq), b.qp->qp_num);
    EXPECT_EQ(ibv_wc_read_src_qp(cq), a.qp->qp_num);
    EXPECT_GT(ibv_wc_read_completion_ts(cq), 0u);
    ASSERT_EQ(b.PostReceive(72, 0, 64), 0) << "posting between start and end must not hang";
    ASSERT_EQ(ibv_next_poll(cq), 0);
    EXPECT_EQ(ibv_wc_read_byte_len(cq), 9u);
    EXPECT_EQ(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
  }
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(CompletionQueueTest, TwoThreadsMayPollAndPostAtOnce) {
  constexpr int kEach = 3000;
  Pair first(device_.get()), second(device_.get());
  const auto run = [](Pair* pair) {
    for (int i = 0; i < kEach; ++i) {
      ASSERT_EQ(pair->b.PostReceive(i, 0, 64), 0);
      ASSERT_EQ(pair->a.PostSend(i, 0, 8), 0);
      ASSERT_EQ(pair->a.Next().status, IBV_WC_SUCCESS);
      ASSERT_EQ(pair->b.Next().status, IBV_WC_SUCCESS);
    }
  };
  std::thread other(run, &second);
  run(&first);
  other.join();
}

TEST_F(CompletionQueueTest, TwoThreadsMayPollOneCq) {
  constexpr int kMessages = 4000;
  Pair pair(device_.get());
  std::atomic<int> received{0};
  const auto drain = [&] {
    while (received < kMessages) {
      ibv_wc wc;
      if (ibv_poll_cq(pair.b.cq.get(), 1, &wc) != 1) continue;
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ++received;
      ASSERT_EQ(pair.b.PostReceive(0, 0, 64), 0);
    }
  };
  for (int i = 0; i < 32; ++i) ASSERT_EQ(pair.b.PostReceive(i, 0, 64), 0);
  std::thread one(drain), two(drain);
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(pair.a.PostSend(i, 0, 8), 0);
    ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  }
  one.join();
  two.join();
}

}  // namespace
}  // namespace softverbs
