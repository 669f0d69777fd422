// Shared receive queues: many queue pairs, one queue of receives, its limit event.
#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

class SrqTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TheDevice().attr.max_srq == 0) GTEST_SKIP() << "its max_srq is 0";
    pairs_.push_back(std::make_unique<Pair>(kOptions));
  }
  End& server(size_t i = 0) { return pairs_[i]->server(); }
  End& client(size_t i = 0) { return pairs_[i]->client(); }

  void PostReceives(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(PostReceive(server(), server().buffer->Sge(i * 64, 64), i), 0);
    }
  }
  void SendOne(size_t from, uint8_t mark = 1) {
    client(from).buffer->data()[0] = mark;
    ibv_sge sge = client(from).buffer->Sge(0, 16);
    ASSERT_EQ(Do(client(from), Send(&sge)).status, IBV_WC_SUCCESS);
  }
  void SetLimit(uint32_t limit) {
    ibv_srq_attr attr{};
    attr.srq_limit = limit;
    ASSERT_EQ(std::abs(ibv_modify_srq(server().srq, &attr, IBV_SRQ_LIMIT)), 0);
  }
  bool AwaitLimitEvent(ibv_async_event* event, int patience_ms = kPatienceMs) {
    return AwaitAsyncEvent(server().id->verbs, IBV_EVENT_SRQ_LIMIT_REACHED, event, patience_ms);
  }

  static constexpr PairOptions kOptions = {.server_srq = true};
  std::vector<std::unique_ptr<Pair>> pairs_;
};

TEST_F(SrqTest, ManyQueuePairsTakeFromOneQueue) {
  constexpr size_t kPairs = 8;
  constexpr uint32_t kRounds = 5;
  while (pairs_.size() < kPairs) pairs_.push_back(Pair::ToServerOf(kOptions, *pairs_[0]));
  PostReceives(kPairs * kRounds);
  std::vector<bool> used(kPairs * kRounds);
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kPairs; ++i) {
      SendOne(i, static_cast<uint8_t>(i + 1));
      const ibv_wc wc = NextCompletion(server().cq);
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.qp_num, server(i).qp()->qp_num);
      ASSERT_LT(wc.wr_id, used.size());
      EXPECT_FALSE(used[wc.wr_id]) << "a receive is used once";
      used[wc.wr_id] = true;
      EXPECT_EQ(server().buffer->data()[wc.wr_id * 64], i + 1);
    }
  }
}

TEST_F(SrqTest, OneQueuePairInErrorLeavesTheQueueToTheOthers) {
  pairs_.push_back(Pair::ToServerOf(kOptions, *pairs_[0]));
  PostReceives(4);
  ToState(server(1).qp(), IBV_QPS_ERR);
  EXPECT_TRUE(NoCompletion(server().cq)) << "receives of a shared queue are not flushed";
  for (int i = 0; i < 4; ++i) {
    SendOne(0);
    EXPECT_EQ(NextCompletion(server().cq).status, IBV_WC_SUCCESS);
  }
}

TEST_F(SrqTest, FullQueueRefusesThePost) {
  uint32_t posted = 0;
  int error = 0;
  while (posted < 10000 && (error = PostReceive(server(), server().buffer->Sge(0, 64))) == 0) {
    ++posted;
  }
  EXPECT_EQ(error, ENOMEM);
  EXPECT_GE(posted, kOptions.recv_wrs);
}

TEST_F(SrqTest, LimitRaisesOneEvent) {
  PostReceives(8);
  SetLimit(6);
  for (int i = 0; i < 4; ++i) SendOne(0);
  ibv_async_event event{};
  ASSERT_TRUE(AwaitLimitEvent(&event)) << "no SRQ limit event";
  EXPECT_EQ(event.element.srq, server().srq);
  ibv_ack_async_event(&event);
  // ibv_modify_srq(3): armed for one event.
  EXPECT_FALSE(AwaitLimitEvent(&event, 50));
  ibv_srq_attr attr{};
  const int error = std::abs(ibv_query_srq(server().srq, &attr));
  if (error == EOPNOTSUPP) return;  // siw cannot be asked
  ASSERT_EQ(error, 0);
  EXPECT_EQ(attr.srq_limit, 0u);
}

TEST_F(SrqTest, LimitMayBeArmedAgain) {
  ibv_async_event event{};
  for (int round = 0; round < 3; ++round) {
    PostReceives(4);
    SetLimit(2);
    for (int i = 0; i < 4; ++i) SendOne(0);
    ASSERT_TRUE(AwaitLimitEvent(&event)) << "round " << round;
    ibv_ack_async_event(&event);
  }
}

// ibv_destroy_srq(3): fails while a queue pair uses it.
TEST_F(SrqTest, InUseIsNotDestroyed) {
  EXPECT_EQ(std::abs(ibv_destroy_srq(server().srq)), EBUSY);
  PostReceives(1);
  SendOne(0);
}

// ibv_get_async_event(3), ibv_ack_async_event(3).
TEST_F(SrqTest, DestroyWaitsForTheAcknowledgementOfItsEvents) {
  PostReceives(4);
  SetLimit(3);
  for (int i = 0; i < 4; ++i) SendOne(0);
  ibv_async_event event{};
  ASSERT_TRUE(AwaitLimitEvent(&event));
  ExpectWaitsFor([&] { ibv_ack_async_event(&event); },
                 [&] {
                   rdma_destroy_qp(server().id);
                   EXPECT_EQ(ibv_destroy_srq(server().srq), 0);
                   server().resources->srq = nullptr;
                 });
}

}  // namespace
}  // namespace verbs_contract
