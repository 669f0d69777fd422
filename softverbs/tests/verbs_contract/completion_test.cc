// Completion queues and their channels: events are not lost, acknowledgements are counted.
#include <atomic>
#include <thread>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

void TakeEvent(End& end) {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(end.channel, &cq, &context), 0);
  EXPECT_EQ(cq, end.cq);
  ibv_ack_cq_events(cq, 1);
}

TEST(ChannelTest, NoEventUnlessArmed) {
  Pair pair;
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  Buffer& target = *pair.server().buffer;
  EXPECT_EQ(Do(pair.client(), Read(&sge, target.address(), target.rkey())).status, IBV_WC_SUCCESS);
  EXPECT_FALSE(Readable(pair.client().channel->fd, 0));
}

TEST(ChannelTest, ArmedQueueRaisesOneEvent) {
  Pair pair;
  ASSERT_EQ(ibv_req_notify_cq(pair.client().cq, 0), 0);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  Buffer& target = *pair.server().buffer;
  ASSERT_EQ(Post(pair.client(), Read(&sge, target.address(), target.rkey())), 0);
  ASSERT_EQ(Post(pair.client(), Read(&sge, target.address(), target.rkey())), 0);
  ASSERT_TRUE(Readable(pair.client().channel->fd, kPatienceMs));
  TakeEvent(pair.client());
  EXPECT_EQ(NextCompletion(pair.client().cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(NextCompletion(pair.client().cq).status, IBV_WC_SUCCESS);
  EXPECT_FALSE(Readable(pair.client().channel->fd, 0)) << "one event an arming";
}

// ibv_get_cq_event(3): arm, poll again, then wait. A completion from before the arming needs no
// event; one after it must raise one, whatever the timing.
class ArmThenPollTest : public ::testing::Test {
 protected:
  // Polls all completions, and posts a receive for each.
  void Drain() {
    ibv_wc wc{};
    while (ibv_poll_cq(pair_.server().cq, 1, &wc) == 1) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(PostReceive(pair_.server(), pair_.server().buffer->Sge(0, 64)), 0);
      // Release: the sender's next message finds the receive posted.
      received_.fetch_add(1, std::memory_order_release);
    }
  }

  void ReceiveAll(uint32_t count) {
    const auto received = [&] { return received_.load(std::memory_order_relaxed); };
    for (;;) {
      Drain();
      ASSERT_EQ(ibv_req_notify_cq(pair_.server().cq, 0), 0);
      const uint32_t before = received();
      Drain();
      if (received() == count) return;
      if (received() != before) {
        // It may have raised the event, which then must not stand in for a later one that is lost.
        while (Readable(pair_.server().channel->fd, 0)) TakeEvent(pair_.server());
        continue;
      }
      ASSERT_TRUE(Readable(pair_.server().channel->fd, kPatienceMs)) << "lost after " << before;
      TakeEvent(pair_.server());
    }
  }

  void SendOne() {
    ibv_sge sge = pair_.client().buffer->Sge(0, 8);
    EXPECT_EQ(Do(pair_.client(), Send(&sge)).status, IBV_WC_SUCCESS);
  }

  Pair pair_;
  std::atomic<uint32_t> received_{0};
};

TEST_F(ArmThenPollTest, NoWakeUpIsLostInAStream) {
  constexpr uint32_t kCount = 1000;
  for (uint32_t i = 0; i < 64; ++i) {
    ASSERT_EQ(PostReceive(pair_.server(), pair_.server().buffer->Sge(0, 64)), 0);
  }
  std::thread sender([&] {
    for (uint32_t i = 0; i < kCount; ++i) {
      // Waits so as not to run out of receives, because iWARP does not wait for one.
      while (i >= received_.load(std::memory_order_acquire) + 64) std::this_thread::yield();
      SendOne();
    }
  });
  ReceiveAll(kCount);
  sender.join();
}

// Sends one message at a time, each a little later after the receiver began to arm. So messages
// arrive between all of its steps.
TEST_F(ArmThenPollTest, NoWakeUpIsLostWhateverTheMoment) {
  constexpr uint32_t kRounds = 1000;
  ASSERT_EQ(PostReceive(pair_.server(), pair_.server().buffer->Sge(0, 64)), 0);
  std::thread sender([&] {
    for (uint32_t i = 0; i < kRounds; ++i) {
      while (received_.load(std::memory_order_acquire) < i) std::this_thread::yield();
      for (uint32_t delay = 0; delay < i * 7 % 1009; ++delay) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
      }
      SendOne();
    }
  });
  ReceiveAll(kRounds);
  sender.join();
}

TEST(ChannelTest, SolicitedArmingIgnoresOrdinarySends) {
  Pair pair;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(0, 64)), 0);
  }
  ASSERT_EQ(ibv_req_notify_cq(pair.server().cq, 1), 0);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  EXPECT_EQ(Do(pair.client(), Send(&sge)).status, IBV_WC_SUCCESS);
  EXPECT_EQ(NextCompletion(pair.server().cq).status, IBV_WC_SUCCESS);
  EXPECT_FALSE(Readable(pair.server().channel->fd, 0));
  ibv_send_wr solicited = Send(&sge);
  solicited.send_flags |= IBV_SEND_SOLICITED;
  EXPECT_EQ(Do(pair.client(), solicited).status, IBV_WC_SUCCESS);
  ASSERT_TRUE(Readable(pair.server().channel->fd, kPatienceMs));
  TakeEvent(pair.server());
}

// ibv_destroy_cq(3), ibv_ack_cq_events(3): destruction waits for the acknowledgement of every event
// taken.
TEST(ChannelTest, DestroyWaitsForAcknowledgement) {
  Pair pair;
  ibv_context* verbs = pair.client().id->verbs;
  ibv_comp_channel* channel = ibv_create_comp_channel(verbs);
  ibv_cq* cq = ibv_create_cq(verbs, 16, nullptr, channel, 0);
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.cap = {4, 4, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  ibv_qp* qp = ibv_create_qp(pair.client().pd, &attr);
  ASSERT_NE(qp, nullptr);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  // A receive posted in INIT and flushed in ERR is the simplest completion there is.
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(qp, &init,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  ibv_recv_wr wr{1, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
  ToState(qp, IBV_QPS_ERR);
  ASSERT_TRUE(Readable(channel->fd, kPatienceMs));
  ibv_cq* event_cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel, &event_cq, &context), 0);
  ASSERT_EQ(ibv_destroy_qp(qp), 0);

  ExpectWaitsFor([&] { ibv_ack_cq_events(event_cq, 1); },
                 [&] { EXPECT_EQ(ibv_destroy_cq(cq), 0); });
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

// ibv_get_async_event(3): IBV_EVENT_CQ_ERR is "CQ overrun". ibv_create_cq(3): the queue may be
// larger than asked for, never smaller.
TEST(CompletionQueueTest, OverrunRaisesAnEvent) {
  Pair pair({.send_wrs = 64, .cq_entries = 16});
  const int places = pair.client().cq->cqe;
  ASSERT_GE(places, 16);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  Buffer& target = *pair.server().buffer;
  // The queue is never polled. An overrun is possible because the queue pair is larger than the
  // queue.
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(pair.client().qp(), &attr, IBV_QP_CAP, &init), 0);
  if (init.cap.max_send_wr <= static_cast<uint32_t>(places)) {
    GTEST_SKIP() << "its smallest queue has " << places << " places, more than the send queue";
  }
  for (int i = 0; i < places + 1; ++i) {
    // A device that has overrun may refuse the rest.
    if (Post(pair.client(), Read(&sge, target.address(), target.rkey())) != 0) break;
  }
  ibv_async_event event{};
  ASSERT_TRUE(AwaitAsyncEvent(pair.client().id->verbs, IBV_EVENT_CQ_ERR, &event));
  EXPECT_EQ(event.element.cq, pair.client().cq);
  ibv_ack_async_event(&event);
}

// ibv_destroy_cq(3): fails with EBUSY while a queue pair uses it.
TEST(CompletionQueueTest, InUseIsNotDestroyed) {
  Pair pair;
  EXPECT_EQ(std::abs(ibv_destroy_cq(pair.client().cq)), EBUSY);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  Buffer& target = *pair.server().buffer;
  EXPECT_EQ(Do(pair.client(), Read(&sge, target.address(), target.rkey())).status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace verbs_contract
