// Which peers count as dead, on a given clock.

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "server/rpc/requests.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

class SilenceTest : public ServerTest {
 protected:
  void Connect(int peers, uint32_t silence_ms = kSilenceMsDefault) {
    StartServer([=](Server::Options* options) {
      options->silence_ms = silence_ms;
      options->connections_max = 256;
    });
    for (int i = 0; i < peers; ++i) {
      ASSERT_TRUE(peers_.emplace_back(std::make_unique<RawPeer>(this))->Connect());
    }
  }
  void TearDown() override {
    peers_.clear();
    ServerTest::TearDown();
  }
  // Each peer sends a heartbeat, which waits in the server's receive queue.
  void SendHeartbeats() {
    for (auto& peer : peers_) ASSERT_TRUE(peer->Send(peer->Header(Opcode::kHeartbeat)));
    for (auto& peer : peers_) ASSERT_TRUE(peer->WaitSent());
  }

  std::vector<std::unique_ptr<RawPeer>> peers_;
};

// More than a worker reads in one Poll.
constexpr int kPeers = 200;

TEST_F(SilenceTest, ServerThatStoodStillReadsWhatWaitsBeforeItTakesAnyoneForDead) {
  Connect(kPeers);
  for (int64_t stood_still_ms : {1000, 4000, 4900, 5000, 6000, 20'000}) {
    Pass(400 * kNsPerMs);  // nobody sends anything
    SendHeartbeats();
    Advance(stood_still_ms * kNsPerMs);
    for (int i = 0; i < 20; ++i) Step();
    ASSERT_EQ(stats().connections, uint64_t{kPeers}) << stood_still_ms;
  }
}

// The server checks for silence in time, but reads only a part of the waiting messages in each
// Poll.
TEST_F(SilenceTest, ServerThatRunsTooSeldomReadsAllThatWaitsBeforeItTakesAnyoneForDead) {
  Connect(kPeers);
  // More than it reads in all Polls of the time after which a peer is dead.
  constexpr int kHeartbeats = 4;
  static_assert(kPeers * kHeartbeats > kMessagesPerSilence * int64_t{Requests::kPollMax});
  for (auto& peer : peers_) {
    for (int i = 0; i < kHeartbeats; ++i) ASSERT_TRUE(peer->Send(peer->Header(Opcode::kHeartbeat)));
    ASSERT_TRUE(peer->WaitSent());
  }
  for (int i = 0; i < kMessagesPerSilence; ++i) {
    Advance(int64_t{kSilenceMsDefault} * kNsPerMs / kMessagesPerSilence);
    Step();
  }
  for (int i = 0; i < 20; ++i) Step();  // destroys the connections that are closed
  EXPECT_EQ(stats().connections, uint64_t{kPeers});
}

// Their heartbeats are still under way, because the receives ran out meanwhile.
TEST_F(SilenceTest, ThoseWhoWereToBeHeardWhileTheServerStoodStillGetThatMuchMoreTime) {
  Connect(4);
  for (int64_t stood_still_ms : {1000, 4000, 4900, 5000, 6000, 20'000}) {
    Pass(400 * kNsPerMs);
    Advance(stood_still_ms * kNsPerMs);
    Step();
    Pass(200 * kNsPerMs);
    ASSERT_EQ(stats().connections, 4u) << stood_still_ms;
    SendHeartbeats();
    Step();
  }
  Pass(int64_t{kSilenceMsDefault} * kNsPerMs);
  EXPECT_TRUE(StepUntil([this] { return stats().connections == 0; })) << "they are dead after all";
}

// A thread that waits for a core may not run for more than a second, though its process is alive.
TEST_F(SilenceTest, APeerThatStoodStillForFourSecondsIsNotTakenForDead) {
  Connect(1);
  for (int i = 0; i < 3; ++i) {
    Pass(int64_t{kSilenceMsDefault} * kNsPerMs / kMessagesPerSilence);  // since its last message
    Pass(4 * kNsPerSecond);
    ASSERT_EQ(stats().connections, 1u);
    SendHeartbeats();
    Step();
  }
}

TEST_F(SilenceTest, LimitIsTheServersAndToldInTheGrant) {
  Connect(2, /*silence_ms=*/3000);
  EXPECT_EQ(peers_[0]->grant().silence_ms, 3000u);
  for (int i = 0; i < 5; ++i) {
    Pass(kNsPerSecond);
    ASSERT_TRUE(peers_[0]->Call(peers_[0]->Header(Opcode::kHeartbeat)));
  }
  EXPECT_TRUE(StepUntil([this] { return stats().connections == 1; }));
  EXPECT_TRUE(peers_[1]->WaitBroken());
}

}  // namespace
}  // namespace gannet
