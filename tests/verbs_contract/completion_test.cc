// Completion queues and their channels: events are not lost, acknowledgements are counted.
#include <poll.h>

#include <atomic>
#include <thread>

#include "tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

bool Readable(int fd, int timeout_ms) {
  pollfd waiting{fd, POLLIN, 0};
  return poll(&waiting, 1, timeout_ms) == 1;
}

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
  ASSERT_TRUE(Readable(pair.client().channel->fd, 5000));
  TakeEvent(pair.client());
  EXPECT_EQ(NextCompletion(pair.client().cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(NextCompletion(pair.client().cq).status, IBV_WC_SUCCESS);
  EXPECT_FALSE(Readable(pair.client().channel->fd, 0)) << "one event an arming";
}

// ibv_get_cq_event(3): arm, poll again, then wait. A completion from before the arming needs no
// event; one after it must raise one, whatever the timing.
TEST(ChannelTest, NoWakeUpIsLostInArmThenPoll) {
  Pair pair({.recv_wrs = 256});
  constexpr uint32_t kCount = 500;
  for (uint32_t i = 0; i < 128; ++i) {
    ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(0, 64)), 0);
  }
  std::thread sender([&] {
    ibv_sge sge = pair.client().buffer->Sge(0, 8);
    for (uint32_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(Do(pair.client(), Send(&sge)).status, IBV_WC_SUCCESS);
    }
  });
  uint32_t received = 0;
  ibv_wc wc{};
  const auto drain = [&] {
    while (ibv_poll_cq(pair.server().cq, 1, &wc) == 1) {
      ++received;
      ASSERT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(0, 64)), 0);
    }
  };
  while (received < kCount) {
    drain();
    ASSERT_EQ(ibv_req_notify_cq(pair.server().cq, 0), 0);
    drain();
    if (received >= kCount) break;
    ASSERT_TRUE(Readable(pair.server().channel->fd, 5000)) << "lost at " << received;
    TakeEvent(pair.server());
  }
  sender.join();
  EXPECT_EQ(received, kCount);
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
  ASSERT_TRUE(Readable(pair.server().channel->fd, 5000));
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
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
  ASSERT_TRUE(Readable(channel->fd, 5000));
  ibv_cq* event_cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel, &event_cq, &context), 0);
  ASSERT_EQ(ibv_destroy_qp(qp), 0);

  std::atomic<bool> acknowledged{false};
  std::atomic<bool> early{false};
  std::thread destroyer([&] {
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    // Sequentially consistent: if destroy returned before the store below, it did not wait for it.
    early.store(!acknowledged.load());
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  acknowledged.store(true);
  ibv_ack_cq_events(event_cq, 1);
  destroyer.join();
  EXPECT_FALSE(early.load());
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST(CompletionQueueTest, TwoThreadsOnTwoQueuePairs) {
  Pair first;
  Pair second;
  const auto work = [](Pair& pair, uint8_t mark) {
    pair.server().buffer->Fill(mark);
    ibv_sge sge = pair.client().buffer->Sge(0, 256);
    for (int i = 0; i < 3000; ++i) {
      const ibv_wc wc = Do(
          pair.client(), Read(&sge, pair.server().buffer->address(), pair.server().buffer->rkey()));
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(pair.client().buffer->data()[255], mark);
    }
  };
  std::thread other(work, std::ref(second), 2);
  work(first, 1);
  other.join();
}

TEST(CompletionQueueTest, TwoThreadsPollOneQueue) {
  Pair pair;
  std::atomic<int> polled{0};
  constexpr int kCount = 2000;
  const auto poller = [&] {
    ibv_wc wc{};
    while (polled.load() < kCount) {
      if (ibv_poll_cq(pair.client().cq, 1, &wc) == 1) {
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        polled.fetch_add(1);
      }
    }
  };
  std::thread one(poller);
  std::thread two(poller);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  for (int posted = 0; posted < kCount;) {
    if (Post(pair.client(),
             Read(&sge, pair.server().buffer->address(), pair.server().buffer->rkey())) == 0) {
      ++posted;
    }
  }
  one.join();
  two.join();
  EXPECT_EQ(polled.load(), kCount);
}

}  // namespace
}  // namespace verbs_contract
