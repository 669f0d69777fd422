// The parts of a session that need no device: credits and sequence numbers, the send queue's
// accounting.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "client/engine/request_queue.h"
#include "client/session/fixed_ring.h"
#include "client/session/in_flight_work.h"
#include "client/session/liveness.h"
#include "client/session/request_window.h"
#include "client/session/send_chain.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;

class RequestWindowTest : public ::testing::Test {
 protected:
  RequestWindowTest() { window_.Restart(4); }
  uint64_t Send(uint32_t op) {
    RequestWindow::Entry entry{.sequence = window_.next(), .op = op};
    window_.Begin(entry);
    return entry.sequence;
  }
  void Answer(uint64_t sequence) {
    RequestWindow::Entry* entry = window_.Find(sequence);
    ASSERT_NE(entry, nullptr);
    window_.End(*entry);
  }
  std::vector<uint64_t> Unanswered() {
    std::vector<uint64_t> all;
    window_.ForEachUnanswered([&](const RequestWindow::Entry& e) { all.push_back(e.sequence); });
    return all;
  }

  RequestWindow window_;
};

TEST_F(RequestWindowTest, NumbersFromOneAndStopsAtTheCredits) {
  for (uint64_t expected = 1; expected <= 4; ++expected) {
    ASSERT_TRUE(window_.CanSend());
    EXPECT_EQ(Send(0), expected);
  }
  EXPECT_FALSE(window_.CanSend());
}

TEST_F(RequestWindowTest, TheOldestUnansweredHoldsTheWindow) {
  for (int i = 0; i < 4; ++i) Send(0);
  Answer(2);
  Answer(4);
  EXPECT_FALSE(window_.CanSend());
  EXPECT_THAT(Unanswered(), ElementsAre(1, 3));
  Answer(1);
  EXPECT_TRUE(window_.CanSend());
  EXPECT_EQ(Send(0), 5u);
  EXPECT_EQ(Send(0), 6u);
  EXPECT_FALSE(window_.CanSend());  // 3 is the oldest: 7 would be 4 ahead
}

TEST_F(RequestWindowTest, GetsHaveHalfOfTheCredits) {
  EXPECT_EQ(window_.RoomForGets(), 2u);
  Send(0);
  EXPECT_EQ(window_.RoomForGets(), 2u) << "it is no GET";
  std::byte lent;
  for (const uint32_t room : {1u, 0u}) {
    window_.Begin({.sequence = window_.next(), .reply = {.data = &lent}});
    EXPECT_EQ(window_.RoomForGets(), room);
  }
  Answer(2);
  EXPECT_EQ(window_.RoomForGets(), 1u);
  window_.Restart(1);
  EXPECT_EQ(window_.RoomForGets(), 1u) << "a single credit serves them, too";
}

TEST_F(RequestWindowTest, KnowsOnlyWhatIsUnanswered) {
  const uint64_t sequence = Send(9);
  EXPECT_EQ(window_.Find(sequence)->op, 9u);
  EXPECT_EQ(window_.Find(0), nullptr);
  EXPECT_EQ(window_.Find(sequence + 4), nullptr);
  Answer(sequence);
  EXPECT_EQ(window_.Find(sequence), nullptr);
  EXPECT_TRUE(window_.empty());
}

TEST_F(RequestWindowTest, ANewSessionForgetsTheOld) {
  Send(0);
  window_.Restart(2);
  EXPECT_TRUE(window_.empty());
  EXPECT_EQ(window_.next(), 1u);
}

TEST(InFlightWorkTest, OneCompletionFinishesAllBeforeIt) {
  InFlightWork work(16);
  for (uint32_t op = 0; op < 5; ++op) work.Push({op, InFlightWork::Kind::kRead});
  std::vector<uint32_t> done;
  EXPECT_TRUE(work.Complete(3, [&](std::span<const InFlightWork::Work> works, bool signaled) {
    for (const InFlightWork::Work& w : works) done.push_back(w.op());
    EXPECT_TRUE(signaled);
  }));
  EXPECT_THAT(done, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(work.in_flight(), 1u);
}

TEST(InFlightWorkTest, CompletesAcrossTheEndOfItsMemory) {
  InFlightWork work(4);
  for (uint32_t op = 0; op < 3; ++op) work.Push({op, InFlightWork::Kind::kRead});
  EXPECT_TRUE(work.Complete(2, [](auto, bool) {}));
  std::vector<uint32_t> done;
  std::vector<bool> signals;
  for (uint32_t op = 3; op < 7; ++op) work.Push({op, InFlightWork::Kind::kRead});
  EXPECT_EQ(work.room(), 0u);
  EXPECT_TRUE(work.Complete(6, [&](std::span<const InFlightWork::Work> works, bool signaled) {
    for (const InFlightWork::Work& w : works) done.push_back(w.op());
    signals.push_back(signaled);
  }));
  EXPECT_THAT(done, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(signals, ElementsAre(false, true));
}

TEST(InFlightWorkTest, RefusesACompletionOfNothing) {
  InFlightWork work(4);
  EXPECT_FALSE(work.Complete(0, [](auto, bool) {}));
  work.Push({0, InFlightWork::Kind::kRead});
  EXPECT_FALSE(work.Complete(1, [](auto, bool) {}));
  EXPECT_TRUE(work.Complete(0, [](auto, bool) {}));
  EXPECT_FALSE(work.Complete(0, [](auto, bool) {}));
}

TEST(InFlightWorkTest, WhatIsReportedMayBeFollowedByMore) {
  InFlightWork work(4);
  for (uint32_t op = 0; op < 3; ++op) work.Push({op, InFlightWork::Kind::kRead});
  std::vector<uint32_t> done;
  EXPECT_TRUE(work.Complete(2, [&](std::span<const InFlightWork::Work> works, bool) {
    EXPECT_EQ(work.room(), 1u) << "of the places reported none is free yet";
    work.Push({9, InFlightWork::Kind::kRead});
    for (const InFlightWork::Work& w : works) done.push_back(w.op());
  }));
  EXPECT_THAT(done, ElementsAre(0, 1, 2));
  EXPECT_EQ(work.in_flight(), 1u);
}

// Keys of memory that is not the operations' own, on device 0.
constexpr MemoryKeys kOther = {.lkeys = {9}, .rkeys = {}};

class SendChainTest : public ::testing::Test {
 protected:
  SendChainTest() {
    connection_.work = InFlightWork(256);
    chain_.Open(&connection_);
    chain_.SetRegion(1000, 7, 3);
  }
  void AddReads(uint32_t n) {
    chain_.AllowReads(n);
    for (uint32_t op = 0; op < n; ++op) chain_.AddRead({nullptr, 16 * op, op, 64, {}});
  }
  std::vector<uint32_t> Signaled() {
    std::vector<uint32_t> signaled;
    for (uint32_t i = 0; i < chain_.size(); ++i) {
      if ((chain_.request(i).send_flags & IBV_SEND_SIGNALED) != 0) signaled.push_back(i);
    }
    return signaled;
  }

  ClientConnection connection_;
  SendChain chain_{8};
};

TEST_F(SendChainTest, SignalsOftenEnoughToFreeTheQueueAndItsLast) {
  AddReads(20);
  EXPECT_THAT(Signaled(), ElementsAre());
  chain_.Signal();
  EXPECT_THAT(Signaled(), ElementsAre(7, 15, 19));
}

TEST_F(SendChainTest, SignalsItsLastOnlyIfThatIsAskedFor) {
  SendChain chain(SendChain::kMax);
  chain.Open(&connection_);
  chain.AllowReads(100);
  for (uint32_t op = 0; op < 100; ++op) {
    EXPECT_FALSE(chain.NextIsSignaled());
    chain.AddRead({nullptr, 0, op, 64, {}});
  }
  chain.Signal();
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ((chain.request(i).send_flags & IBV_SEND_SIGNALED) != 0, i == 99) << i;
  }
}

TEST_F(SendChainTest, AChainBeginsToCountAnew) {
  AddReads(5);
  chain_.Clear();
  AddReads(9);
  chain_.Signal();
  EXPECT_THAT(Signaled(), ElementsAre(7, 8));
}

TEST_F(SendChainTest, AReadAfterAnotherWorkRequestIsWhole) {
  AddReads(1);
  chain_.Add({5, InFlightWork::Kind::kCompareAndSwap},
             CompareAndSwapRequest(0, nullptr, 4000, 8, 1, 2, 0), {1, 8, 4});
  chain_.Clear();
  AddReads(3);
  for (uint32_t i = 0; i < 3; ++i) {
    const ibv_send_wr& request = chain_.request(i);
    EXPECT_EQ(request.wr_id, connection_.SendId(2 + i));
    EXPECT_EQ(request.next, &chain_.request(i + 1));
    EXPECT_EQ(request.opcode, IBV_WR_RDMA_READ);
    EXPECT_EQ(request.num_sge, 1);
    EXPECT_EQ(request.sg_list->length, 64u);
    EXPECT_EQ(request.sg_list->lkey, 3u);
    EXPECT_EQ(request.wr.rdma.remote_addr, 1000u + 16 * i);
    EXPECT_EQ(request.wr.rdma.rkey, 7u);
  }
}

TEST_F(SendChainTest, AReadAfterOneIntoOtherMemoryGoesIntoOwnBuffers) {
  AddReads(1);
  chain_.AllowReads(1);
  chain_.AddRead({nullptr, 16, 1, 64, &kOther});
  EXPECT_EQ(chain_.request(1).sg_list->lkey, 9u);
  AddReads(1);
  chain_.Clear();
  AddReads(3);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(chain_.request(i).sg_list->lkey, 3u) << i;
}

TEST_F(SendChainTest, AReadAfterOneIntoPiecesHasOnePiece) {
  const LocalPiece pieces[] = {{100, 16, &kOther}, {200, 48, &kOther}};
  chain_.AllowReads(1);
  chain_.AddReadInto(1, 16, pieces);
  EXPECT_EQ(chain_.request(0).num_sge, 2);
  chain_.Clear();
  AddReads(1);
  EXPECT_EQ(chain_.request(0).num_sge, 1);
  EXPECT_EQ(chain_.request(0).sg_list->length, 64u);
  EXPECT_EQ(chain_.request(0).sg_list->lkey, 3u);
}

TEST_F(SendChainTest, HasRoomForWhatItAndTheSendQueueHave) {
  EXPECT_EQ(chain_.room(), SendChain::kMax);
  AddReads(SendChain::kMax - 1);
  EXPECT_EQ(chain_.room(), 1u);
  chain_.Clear();
  for (uint32_t op = 0; op < 100; ++op) connection_.work.Push({op, InFlightWork::Kind::kRead});
  EXPECT_EQ(chain_.room(), 256u - 100 - (SendChain::kMax - 1));
}

TEST(RequestQueueTest, IsFirstInFirstOut) {
  using enum RequestQueue::Line;
  RequestQueue queue(4);
  EXPECT_TRUE(queue.empty());
  for (const uint32_t op : {2u, 0u, 3u}) queue.Push(op, kOthers);
  queue.Push(1, kGets);
  EXPECT_EQ(queue.size(), 4u);
  for (const uint32_t op : {2u, 0u, 3u}) {
    EXPECT_EQ(queue.front(kOthers), op);
    queue.Remove(op);
    EXPECT_FALSE(queue.Contains(op));
  }
  EXPECT_TRUE(queue.empty(kOthers));
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(queue.front(kGets), 1u);
  queue.Remove(1);
  EXPECT_TRUE(queue.empty());
}

TEST(RequestQueueTest, AnyOneCanLeaveAndComeBack) {
  using enum RequestQueue::Line;
  RequestQueue queue(4);
  for (uint32_t op = 0; op < 4; ++op) queue.Push(op, kOthers);
  queue.Remove(1);
  queue.Remove(3);
  queue.Push(1, kOthers);
  std::vector<uint32_t> order;
  for (; !queue.empty(); queue.Remove(order.back())) order.push_back(queue.front(kOthers));
  EXPECT_THAT(order, ElementsAre(0, 2, 1));
}

TEST(BackoffTest, DoublesToItsBoundAndStartsAnew) {
  Backoff backoff;
  EXPECT_EQ(backoff.NextNs(0), Backoff::kFirstNs);
  EXPECT_EQ(backoff.NextNs(0), 2 * Backoff::kFirstNs);
  for (int i = 0; i < 20; ++i) backoff.NextNs(0);
  EXPECT_EQ(backoff.NextNs(0), Backoff::kMaxNs);
  EXPECT_GE(backoff.NextNs(UINT64_MAX), Backoff::kMaxNs * 3 / 4);
  backoff.Reset();
  EXPECT_EQ(backoff.NextNs(0), Backoff::kFirstNs);
}

TEST(FixedRingTest, IsFirstInFirstOutRoundTheEnd) {
  FixedRing<int> ring(4);
  for (int i = 0; i < 10; ++i) {
    ring.Push(i);
    ring.Push(i + 100);
    EXPECT_EQ(ring.front(), i);
    ring.Pop();
    EXPECT_EQ(ring.front(), i + 100);
    ring.Pop();
  }
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace gannet
