#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/rdma/connection.h"
#include "tests/common/rdma/connected_pair.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

using State = Connection::State;

// Work requests and events point to it.
static_assert(!std::is_move_constructible_v<Connection> && !std::is_move_assignable_v<Connection>);

enum Work : uint8_t { kReceive = 1, kSend, kDrain };

constexpr uint32_t kReceives = 4;
constexpr uint32_t kFirstSlot = 20;
constexpr uint32_t kBytes = 8;
constexpr uint64_t kReceivesAt = 4096;  // in a side's memory
constexpr int64_t kShortNs = 20 * kNsPerMs;

uint64_t DrainId() { return WrId{.kind = kDrain}.Pack(); }

// Two sides, of which each has receives of its own, from slot kFirstSlot on.
class DrainTest : public ConnectedPairTest {
 protected:
  static ConnectionOptions OptionsOf(const TestSide& side) {
    ConnectionOptions options = side.Options();
    options.receives = {.first = side.buffer.Sge(kReceivesAt, kBytes),
                        .count = kReceives,
                        .id = {.kind = kReceive, .slot = kFirstSlot}};
    return options;
  }
  Connection& client() { return *active_->connection(); }
  Connection& server() { return *passive_; }

  // Makes the client's queue pair, or leaves it at kResolved.
  void Resolve(bool with_queue_pair) {
    active_ = StartConnector();
    StepUntil(active_.get(), Connector::Step::kResolved);
    ASSERT_EQ(active_->step(), Connector::Step::kResolved) << active_->status();
    if (!with_queue_pair) return;
    const absl::Status made = active_->CreateConnection(OptionsOf(client_));
    ASSERT_TRUE(made.ok()) << made;
  }
  // Asks the server, and takes the request.
  std::optional<IncomingRequest> Ask() {
    EXPECT_TRUE(active_->Connect({}).ok()) << active_->status();
    // That a former connection was established may be told only now.
    while (auto event = NextListenerEvent(active_.get())) {
      if (event->request) return std::move(event->request);
    }
    return std::nullopt;
  }
  void ConnectBoth() {
    ASSERT_NO_FATAL_FAILURE(Resolve(true));
    std::optional<IncomingRequest> request = Ask();
    ASSERT_TRUE(request.has_value());
    auto passive = listener_->BeginAccept(*std::move(request), OptionsOf(server_), 1);
    ASSERT_TRUE(passive.ok()) << passive.status();
    passive_ = *std::move(passive);
    ASSERT_EQ(server().state(), State::kConnecting);
    ASSERT_TRUE(listener_->FinishAccept(passive_.get(), {}, PeerRights::kAll).ok());
    ASSERT_EQ(server().state(), State::kConnected);
    StepUntil(active_.get(), Connector::Step::kEstablished);
    ASSERT_EQ(active_->step(), Connector::Step::kEstablished) << active_->status();
    ASSERT_EQ(client().state(), State::kConnecting) << "its owner did not look at the answer yet";
    client().Open();
    ASSERT_EQ(client().state(), State::kConnected);
  }
  // Sends a number from the client.
  PostResult Send(uint32_t slot) {
    client_.SetWord(slot * kBytes, slot);
    ibv_sge sge = client_.buffer.Sge(slot * kBytes, kBytes);
    ibv_send_wr send =
        SendRequest(WrId{.kind = kSend, .slot = slot}.Pack(), &sge, IBV_SEND_SIGNALED);
    return client().Post(&send);
  }
  // Polls until the client is drained. Returns the kinds of all that completed, in their order.
  std::vector<uint8_t> PollUntilDrained() {
    std::vector<uint8_t> kinds;
    while (!client().drained() && !HasFailure()) {
      const ibv_wc done = client_.Next();
      const WrId id = WrId::Unpack(done.wr_id);
      kinds.push_back(id.kind);
      if (id.kind == kDrain) client().OnDrained();
      EXPECT_TRUE(id.kind != kReceive || done.status != IBV_WC_SUCCESS);
    }
    return kinds;
  }
};

TEST(ConnectionStateTest, GoesForwardAndDrainsWhatWasConnected) {
  using enum ConnectionState;
  const std::set<std::pair<State, State>> picture = {{kConnecting, kConnected},
                                                     {kConnecting, kDraining},
                                                     {kConnecting, kDrained},
                                                     {kConnected, kDraining},
                                                     {kDraining, kDrained}};
  for (const State from : {kConnecting, kConnected, kDraining, kDrained}) {
    for (const State to : {kConnecting, kConnected, kDraining, kDrained}) {
      EXPECT_EQ(MayFollow(from, to), picture.contains({from, to}));
    }
  }
}

TEST_F(DrainTest, WithoutAQueuePairThereIsNothingToDrain) {
  ASSERT_NO_FATAL_FAILURE(Resolve(false));
  EXPECT_EQ(client().state(), State::kConnecting);
  EXPECT_FALSE(client().BeginDrain(DrainId()));
  EXPECT_EQ(client().state(), State::kDrained);
}

TEST_F(DrainTest, ARefusedConnectionDrains) {
  ASSERT_NO_FATAL_FAILURE(Resolve(true));
  std::optional<IncomingRequest> request = Ask();
  ASSERT_TRUE(request.has_value());
  listener_->Reject(*std::move(request), AsBytes("not today"));
  StepUntil(active_.get(), Connector::Step::kFailed);
  EXPECT_TRUE(active_->refused());
  EXPECT_EQ(client().state(), State::kConnecting);
  ASSERT_TRUE(client().BeginDrain(DrainId()));
  EXPECT_EQ(client().state(), State::kDraining);
  EXPECT_EQ(PollUntilDrained().back(), kDrain);
  EXPECT_EQ(client().state(), State::kDrained);
}

TEST_F(DrainTest, WhatIsInFlightIsFlushedBeforeTheDrain) {
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  // The server's receives are used up, so the last two wait.
  for (uint32_t slot = 0; slot < kReceives + 2; ++slot) {
    ASSERT_EQ(Send(slot), PostResult::kPosted);
  }
  ASSERT_TRUE(client().BeginDrain(DrainId()));
  EXPECT_FALSE(client().drained());
  const std::vector<uint8_t> kinds = PollUntilDrained();
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), kSend), kReceives + 2);
  EXPECT_EQ(kinds.back(), kDrain);
}

TEST_F(DrainTest, DrainsAlthoughThePeerDiesMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  for (uint32_t slot = 0; slot < kReceives + 2; ++slot) {
    ASSERT_EQ(Send(slot), PostResult::kPosted);
  }
  ASSERT_TRUE(client().BeginDrain(DrainId()));
  passive_.reset();
  EXPECT_EQ(PollUntilDrained().back(), kDrain);
}

TEST_F(DrainTest, BothSidesMayDrainAtOnce) {
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  ASSERT_EQ(Send(0), PostResult::kPosted);
  ASSERT_TRUE(server().BeginDrain(DrainId()));
  Connection* const own = &client();
  DrainAll(client_.completions.get(), {&own, 1});
  EXPECT_TRUE(client().drained());
  while (!server().drained() && !HasFailure()) {
    if (server_.Next().wr_id == DrainId()) server().OnDrained();
  }
}

TEST_F(DrainTest, ADrainThatTellsIsNotOverBeforeItTold) {
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  ASSERT_TRUE(client().BeginDrain(DrainId()));
  EXPECT_TRUE(client().drain_completes());
  EXPECT_FALSE(client().LookDrained(/*nothing_more=*/true));
  EXPECT_FALSE(client().LookDrained(/*nothing_more=*/false));
  EXPECT_EQ(client().state(), State::kDraining);
  PollUntilDrained();
  EXPECT_TRUE(client().LookDrained(/*nothing_more=*/true));
}

TEST_F(DrainTest, WhoeverWaitsNoLongerTakesItForDrained) {
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  ASSERT_TRUE(client().BeginDrain(DrainId()));
  EXPECT_TRUE(client().LookDrained(/*nothing_more=*/false, /*late=*/true));
  EXPECT_EQ(client().state(), State::kDrained);
  // Its completion comes late, and changes nothing.
  while (client_.Next().wr_id != DrainId() && !HasFailure()) {
  }
  client().OnDrained();
  EXPECT_EQ(client().state(), State::kDrained);
}

TEST_F(DrainTest, WhoeverBlocksDoesNotWaitForEver) {
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  Connection* const own = &client();
  struct : Idler {
    void Idle() override { ++times; }
    int times = 0;
  } idle;
  // The server's queue never brings what the client waits for.
  DrainAll(server_.completions.get(), {&own, 1}, kShortNs, &idle);
  EXPECT_TRUE(client().drained());
  EXPECT_GT(idle.times, 0);
}

TEST_F(DrainTest, DrainsAllThatShareAQueue) {
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  const std::unique_ptr<Connector> first = std::move(active_);
  const std::unique_ptr<Connection> first_passive = std::move(passive_);
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  ASSERT_EQ(Send(0), PostResult::kPosted);
  const std::array<Connection*, 2> both = {first->connection(), &client()};
  DrainAll(client_.completions.get(), both);
  EXPECT_TRUE(first->connection()->drained());
  EXPECT_TRUE(client().drained());
}

TEST_F(DrainTest, AMessageWaitsWhileTheReceivesHaveRunDry) {
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  for (uint32_t slot = 0; slot <= kReceives; ++slot) ASSERT_EQ(Send(slot), PostResult::kPosted);
  std::vector<uint32_t> used;
  for (uint32_t i = 0; i < kReceives; ++i) {
    const ibv_wc done = server_.Next();
    ASSERT_EQ(done.status, IBV_WC_SUCCESS);
    const WrId id = WrId::Unpack(done.wr_id);
    ASSERT_EQ(id.kind, kReceive);
    ASSERT_TRUE(id.slot >= kFirstSlot && id.slot < kFirstSlot + kReceives) << id.slot;
    used.push_back(id.slot);
    uint64_t number = 0;
    const std::span<const std::byte> message = server().Message(id.slot, done.byte_len);
    ASSERT_EQ(message.size(), sizeof(number));
    std::memcpy(&number, message.data(), sizeof(number));
    EXPECT_EQ(number, i);
  }
  ibv_wc none;
  EXPECT_EQ(server_.completions->Poll({&none, 1}), 0u);
  for (const uint32_t slot : used) server().Recycle(slot);
  EXPECT_EQ(server_.completions->Poll({&none, 1}), 0u) << "recycled is not posted";
  ASSERT_TRUE(server().PostReceives());
  EXPECT_EQ(server_.Next().status, IBV_WC_SUCCESS);
}

TEST_F(DrainTest, NoReceiveIsPostedOnceTheGateIsClosed) {
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  ASSERT_EQ(Send(0), PostResult::kPosted);
  const WrId used = WrId::Unpack(server_.Next().wr_id);
  ASSERT_TRUE(server().BeginDrain(DrainId()));
  server().Recycle(used.slot);
  EXPECT_TRUE(server().PostReceives());
  size_t flushed = 0;
  for (bool drained = false; (!drained || flushed < kReceives - 1) && !HasFailure();) {
    const WrId id = WrId::Unpack(server_.Next().wr_id);
    drained |= id.kind == kDrain;
    flushed += id.kind == kReceive;
  }
  ibv_wc none;
  EXPECT_EQ(server_.completions->Poll({&none, 1}), 0u);
  EXPECT_EQ(flushed, kReceives - 1);
}

TEST_F(DrainTest, MayBeDestroyedInEachState) {
  // A connection that was given up or that its process forgets is destroyed as it is.
  for (const State state :
       {State::kConnecting, State::kConnected, State::kDraining, State::kDrained}) {
    ASSERT_NO_FATAL_FAILURE(ConnectBoth());
    ASSERT_EQ(Send(0), PostResult::kPosted);
    if (state >= State::kDraining) client().BeginDrain(DrainId());
    if (state == State::kDrained) PollUntilDrained();
    EXPECT_TRUE(state == State::kConnecting || client().state() == state);
    active_.reset();
    passive_.reset();
    // The queue forgets the completions of a queue pair that is gone, or has them still.
    ibv_wc done;
    while (client_.completions->Poll({&done, 1}) == 1 ||
           server_.completions->Poll({&done, 1}) == 1) {
    }
    while (listener_->Poll().has_value()) {
    }
    if (state != State::kConnecting) continue;
    ASSERT_NO_FATAL_FAILURE(Resolve(true));
    EXPECT_EQ(client().state(), state);
    active_.reset();
    while (client_.completions->Poll({&done, 1}) == 1) {
    }
  }
}

using DrainDeathTest = DrainTest;

TEST_F(DrainDeathTest, NoStateFollowsThatMayNot) {
  ASSERT_NO_FATAL_FAILURE(Resolve(false));
  EXPECT_DEATH(client().Open(), "no queue pair");
  EXPECT_DEATH(client().LookDrained(true), "the drain has not begun");
  client().BeginDrain(DrainId());
  EXPECT_DEATH((void)client().MakeQueuePair(OptionsOf(client_)), "being closed");
  ASSERT_NO_FATAL_FAILURE(ConnectBoth());
  EXPECT_DEATH(client().Open(), "no such step");
  EXPECT_DEATH((void)client().MakeQueuePair(OptionsOf(client_)), "has a queue pair");
  ASSERT_TRUE(client().BeginDrain(DrainId()));
  EXPECT_DEATH(client().Open(), "no such step");
  PollUntilDrained();
  EXPECT_DEATH(client().Open(), "no such step");
}

}  // namespace
}  // namespace gannet
