// More requests than the server has posted receives: which peers wait, and for how long.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

class ReceivesTest : public ServerTest {
 protected:
  static void SendPuts(RawPeer* peer, int count) {
    for (int i = 0; i < count; ++i) {
      RequestHeader header = peer->Header(Opcode::kPut);
      header.key_bytes = header.value_bytes = 3;
      ASSERT_TRUE(peer->Send(header, "key", "one"));
    }
  }
};

// Twice as many requests as receives, and a worker that is kept off its CPU again and again.
TEST_F(ReceivesTest, RequestsBeyondTheReceivesWaitAndBreakNoConnection) {
  constexpr int kPeers = 64, kRounds = 6;
  constexpr int64_t kOffItsCpuNs = 10 * kNsPerMs;
  StartServer();
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < kPeers; ++i) {
    ASSERT_TRUE(peers.emplace_back(std::make_unique<RawPeer>(this))->Connect());
  }
  for (int round = 0; round < kRounds; ++round) {
    for (auto& peer : peers) SendPuts(peer.get(), kCreditsDefault);
    // Longer than six retries of a device that waits 0.64 ms before each.
    const int64_t until_ns = MonotonicNs() + kOffItsCpuNs;
    while (MonotonicNs() < until_ns) {
      for (auto& peer : peers) peer->Poll();
    }
    for (auto& peer : peers) {
      for (int i = 0; i < kCreditsDefault; ++i) {
        const auto reply = peer->Receive();
        ASSERT_TRUE(reply) << "the connection broke";
        ASSERT_EQ(reply->status(), ReplyStatus::kOk);
      }
    }
  }
  EXPECT_EQ(stats().connections, uint64_t{kPeers});
}

// The peer's device tries for ever, so the peer itself must notice, as clients do, that nothing is
// answered. When it closes, its requests come back at once.
TEST_F(ReceivesTest, PeerOfAServerThatServesNobodyCanGiveUp) {
  constexpr int kPeers = 40;
  StartServer();
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < kPeers; ++i) {
    ASSERT_TRUE(peers.emplace_back(std::make_unique<RawPeer>(this))->Connect());
  }
  for (auto& peer : peers) SendPuts(peer.get(), kCreditsDefault);
  ASSERT_FALSE(peers.back()->WaitSent(/*for_ns=*/50 * kNsPerMs)) << "there are receives for all";
  EXPECT_FALSE(peers.back()->broken());
  EXPECT_TRUE(peers.back()->CloseAlone());
}

TEST_F(ReceivesTest, RequestToRetryTheServersSendsForEverIsRefused) {
  StartServer();
  RawPeer hostile(this);
  hostile.AskForRetries(7);
  EXPECT_FALSE(hostile.Connect());
  ASSERT_TRUE(hostile.reject().has_value());
  EXPECT_EQ(hostile.reject()->code, static_cast<uint32_t>(RejectCode::kMalformed));
  EXPECT_THAT(RejectReason(*hostile.reject()), testing::HasSubstr("rnr_retry_count"));
  RawPeer good(this);
  good.AskForRetries(6);
  EXPECT_TRUE(good.Connect());
}

}  // namespace
}  // namespace gannet
