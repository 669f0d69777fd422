#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

class SharedReceiveQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ibv_srq_init_attr attr{};
    attr.attr.max_wr = 16;
    attr.attr.max_sge = 1;
    srq_.reset(ibv_create_srq(pd_.get(), &attr));
    ASSERT_NE(srq_, nullptr);
    memory_.reset(ibv_reg_mr(pd_.get(), buffer_, sizeof(buffer_), int{IBV_ACCESS_LOCAL_WRITE}));
    receiver_.srq = srq_.get();
    receiver_.pd = pd_.get();
  }

  int Post(uint64_t wr_id) {
    ibv_sge sge{reinterpret_cast<uint64_t>(buffer_), sizeof(buffer_), memory_->lkey};
    ibv_recv_wr wr{wr_id, nullptr, &sge, 1};
    ibv_recv_wr* bad;
    return ibv_post_srq_recv(srq_.get(), &wr, &bad);
  }

  void SetLimit(uint32_t limit) {
    ibv_srq_attr attr{};
    attr.srq_limit = limit;
    ASSERT_EQ(ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_LIMIT), 0);
  }

  uint32_t Limit() {
    ibv_srq_attr attr{};
    EXPECT_EQ(ibv_query_srq(srq_.get(), &attr), 0);
    return attr.srq_limit;
  }

  Owned<ibv_context> device_ = OpenDevice();
  Owned<ibv_pd> pd_{ibv_alloc_pd(device_.get())};
  char buffer_[64] = {};
  Owned<ibv_srq> srq_;
  Owned<ibv_mr> memory_;
  SideOptions receiver_;
};

// ibv_create_srq(3): the queue belongs to a protection domain, and with it its receives.
TEST_F(SharedReceiveQueueTest, ReceivesAreCheckedAgainstTheQueuesDomain) {
  const Owned<ibv_pd> other(ibv_alloc_pd(device_.get()));
  receiver_.pd = other.get();  // of the queue pair
  Pair pair(device_.get(), {}, receiver_);
  ASSERT_EQ(Post(1), 0);
  ASSERT_EQ(pair.a.PostSend(1, 0, 8), 0);
  EXPECT_EQ(pair.b.Next().status, IBV_WC_SUCCESS);
  // Memory of the queue pair's domain is none of the queue's.
  ibv_sge sge = pair.b.Sge(0, 64);
  ibv_recv_wr wr{2, nullptr, &sge, 1};
  ibv_recv_wr* bad;
  ASSERT_EQ(ibv_post_srq_recv(srq_.get(), &wr, &bad), 0);
  ASSERT_EQ(pair.a.PostSend(2, 0, 8), 0);
  EXPECT_EQ(pair.b.Next().status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(SharedReceiveQueueTest, ServesManyQueuePairsInOrder) {
  Pair one(device_.get(), {}, receiver_), two(device_.get(), {}, receiver_);
  for (uint64_t i = 0; i < 16; ++i) ASSERT_EQ(Post(i), 0);
  EXPECT_EQ(Post(16), ENOMEM);
  for (uint64_t i = 0; i < 16; ++i) {
    Pair& pair = i % 3 == 0 ? one : two;
    ASSERT_EQ(pair.a.PostSend(i, 0, 8), 0);
    ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
    const ibv_wc received = pair.b.Next();
    EXPECT_EQ(received.wr_id, i);
    EXPECT_EQ(received.qp_num, pair.b.qp->qp_num);
  }
  ConnectOptions once;
  once.rnr_retry = 0;
  Pair three(device_.get(), {}, receiver_, once);
  ASSERT_EQ(three.a.PostSend(1, 0, 8), 0);
  EXPECT_EQ(three.a.Next().status, IBV_WC_RNR_RETRY_EXC_ERR) << "empty";
}

TEST_F(SharedReceiveQueueTest, ReceivesOnItsQueuePairsAreRefused) {
  Side side(device_.get(), receiver_);
  EXPECT_NE(side.PostReceive(1, 0, 8), 0);
}

TEST_F(SharedReceiveQueueTest, TheLimitEventComesOnceBelowTheLimit) {
  Pair pair(device_.get(), {}, receiver_);
  for (uint64_t i = 0; i < 6; ++i) ASSERT_EQ(Post(i), 0);
  SetLimit(5);
  EXPECT_EQ(Limit(), 5u);
  const auto send = [&] {
    ASSERT_EQ(pair.a.PostSend(1, 0, 8), 0);
    ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  };
  send();  // 5 left: not below the limit
  EXPECT_FALSE(HasEvent(device_.get()));
  send();
  const ibv_async_event event = NextEvent(device_.get());
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq_.get());
  EXPECT_EQ(Limit(), 0u) << "disarmed";
  send();
  EXPECT_FALSE(HasEvent(device_.get()));
  SetLimit(4);
  send();
  EXPECT_EQ(NextEvent(device_.get()).event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
}

TEST_F(SharedReceiveQueueTest, ErrorLeavesTheReceivesToTheOthersAndSaysWhenItIsDone) {
  auto one = std::make_unique<Pair>(device_.get(), SideOptions{}, receiver_);
  Pair two(device_.get(), {}, receiver_);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(Post(i), 0);
  one->b.ToError();
  const ibv_async_event event = NextEvent(device_.get());
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, one->b.qp.get());
  EXPECT_TRUE(one->b.Idle());
  one.reset();
  ASSERT_EQ(two.a.PostSend(1, 0, 8), 0);
  EXPECT_EQ(two.b.Next().wr_id, 0u);
}

TEST_F(SharedReceiveQueueTest, CannotBeDestroyedWhileInUse) {
  Side side(device_.get(), receiver_);
  EXPECT_EQ(ibv_destroy_srq(srq_.get()), EBUSY);
}

}  // namespace
}  // namespace softverbs
