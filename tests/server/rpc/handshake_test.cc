#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clocks.h"
#include "common/layout/superblock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

using testing::HasSubstr;

class HandshakeTest : public ServerTest {
 protected:
  void ExpectRefused(const RawPeer& peer, RejectCode code, const char* text) {
    ASSERT_TRUE(peer.reject().has_value());
    EXPECT_EQ(peer.reject()->code, static_cast<uint32_t>(code));
    EXPECT_THAT(RejectReason(*peer.reject()), HasSubstr(text));
  }
};

TEST_F(HandshakeTest, GrantDescribesTheServer) {
  StartServer();
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const Grant& grant = peer.grant();
  EXPECT_NE(grant.incarnation, 0u);
  EXPECT_EQ(grant.region_bytes, 32u << 20);
  EXPECT_EQ(grant.lock_words, 256u);
  EXPECT_NE(grant.session_token, 0u);
  EXPECT_NE(grant.connection_id, 0u);
  EXPECT_EQ(grant.credits, kCreditsDefault);
  EXPECT_EQ(grant.message_bytes_max, kMessageBytesMax);
  EXPECT_EQ(grant.resumed, 0);
  EXPECT_EQ(grant.silence_ms, kSilenceMsDefault);
  EXPECT_NE(grant.time_ms, 0u);
  EXPECT_LE(grant.time_ms, now().server_time.ms());
  EXPECT_EQ(stats().connections, 1u);
  EXPECT_EQ(stats().sessions, 1u);
}

TEST_F(HandshakeTest, ConnectionIdsAndTokensDiffer) {
  StartServer();
  RawPeer first(this);
  RawPeer second(this);
  ASSERT_TRUE(first.Connect());
  ASSERT_TRUE(second.Connect());
  EXPECT_NE(first.grant().connection_id, second.grant().connection_id);
  EXPECT_NE(first.grant().session_token, second.grant().session_token);
  EXPECT_NE(first.grant().session_id, second.grant().session_id);
}

TEST_F(HandshakeTest, RefusesNoise) {
  StartServer();
  std::array<std::byte, kRequestPrivateBytesMax> noise;
  noise.fill(std::byte{0xa5});
  RawPeer peer(this);
  EXPECT_FALSE(peer.Connect(noise));
  ExpectRefused(peer, RejectCode::kMalformed, "does not speak Gannet");
}

TEST_F(HandshakeTest, RefusesAnEmptyRequest) {
  StartServer();
  RawPeer peer(this);
  EXPECT_FALSE(peer.Connect(std::span<const std::byte>()));
  ExpectRefused(peer, RejectCode::kMalformed, "");
}

TEST_F(HandshakeTest, RefusesAVersionFromTheFuture) {
  StartServer();
  ConnectRequest request = NewConnectRequest();
  request.version_min = kProtocolVersionMax + 1;
  request.version_max = kProtocolVersionMax + 2;
  RawPeer peer(this);
  EXPECT_FALSE(peer.Connect(request));
  const std::string versions = absl::StrCat("client speaks protocol ", request.version_min, " to ",
                                            request.version_max, ", server ");
  ExpectRefused(peer, RejectCode::kVersion, versions.c_str());
}

TEST_F(HandshakeTest, RefusesAnUnknownSession) {
  StartServer();
  ConnectRequest request = NewConnectRequest();
  request.session_token = 12345;
  RawPeer peer(this);
  EXPECT_FALSE(peer.Connect(request));
  ExpectRefused(peer, RejectCode::kSessionUnknown, "expired");
}

TEST_F(HandshakeTest, RefusesAKeyThatItDoesNotHave) {
  StartServer();
  ConnectRequest request = NewConnectRequest();
  request.key_id = 7;
  RawPeer peer(this);
  EXPECT_FALSE(peer.Connect(request));
  ExpectRefused(peer, RejectCode::kAuthentication, "no keys");
}

TEST_F(HandshakeTest, RefusesAQueuePairIndexOutOfRange) {
  StartServer();
  ConnectRequest request = NewConnectRequest();
  request.qp_index = 60'000;
  RawPeer peer(this);
  EXPECT_FALSE(peer.Connect(request));
  ExpectRefused(peer, RejectCode::kTooManyConnections, "queue pairs");
}

TEST_F(HandshakeTest, RefusesConnectionsBeyondItsCapacityAndTakesThemAgainLater) {
  StartServer([](Server::Options* options) { options->connections_max = 2; });
  RawPeer first(this);
  ASSERT_TRUE(first.Connect());
  {
    RawPeer second(this);
    ASSERT_TRUE(second.Connect());
    RawPeer third(this);
    EXPECT_FALSE(third.Connect());
    ExpectRefused(third, RejectCode::kTooManyConnections, "2 connections already");
  }
  ASSERT_TRUE(StepUntil([this] { return stats().connections == 1; }));
  RawPeer fourth(this);
  EXPECT_TRUE(fourth.Connect());
}

TEST_F(HandshakeTest, RefusedConnectionLeavesNothingBehind) {
  StartServer([](Server::Options* options) { options->connections_max = 1; });
  std::optional<RawPeer> first(this);
  ASSERT_TRUE(first->Connect());
  for (int i = 0; i < 20; ++i) {
    RawPeer refused(this);
    EXPECT_FALSE(refused.Connect());
  }
  EXPECT_EQ(stats().sessions, 1u) << "each session would push out that of an absent client";
  EXPECT_EQ(stats().refused_connections, 20u);
  const uint32_t id = first->grant().connection_id;
  first.reset();
  ASSERT_TRUE(StepUntil([this] { return stats().connections == 0; }));
  RawPeer second(this);
  ASSERT_TRUE(second.Connect());
  EXPECT_EQ(second.grant().connection_id, id + 1) << "nobody was told the ids between";
}

// The client goes while its request waits for the worker. No session is kept for a client that
// never had it.
TEST_F(HandshakeTest, ClientThatGoesBeforeItIsAcceptedLeavesNothingBehind) {
  StartServer();
  {
    const Handle<ibv_pd> pd(ibv_alloc_pd(TestDevice().verbs));
    const auto cq = CompletionQueue::Create(TestDevice().verbs, 16, /*with_channel=*/false);
    const auto client =
        Connector::Start({.to = address(), .deadline_ns = MonotonicNs() + kStepNsMax});
    ASSERT_TRUE(client.ok());
    ASSERT_TRUE(
        StepUntil([&] { return (*client)->Poll(MonotonicNs()) == Connector::Step::kResolved; }));
    ConnectionOptions options{.caps = TestDevice().caps};
    options.queue_pair = {
        .pd = pd.get(), .send_cq = (*cq)->get(), .recv_cq = (*cq)->get(), .recv_wrs = 1};
    ASSERT_TRUE((*client)->CreateConnection(options).ok());
    const ConnectRequest request = NewConnectRequest();
    ASSERT_TRUE((*client)->Connect(std::as_bytes(std::span(&request, 1))).ok());
    const int64_t deadline_ns = MonotonicNs() + kStepNsMax;
    while (!server().workers()[0]->inbox().filled() && MonotonicNs() < deadline_ns) {
      server().Poll(now());
    }
  }
  Pass(2 * kNsPerSecond);
  EXPECT_TRUE(StepUntil([this] { return stats().connections == 0; }));
  EXPECT_EQ(stats().sessions, 0u);
}

TEST_F(HandshakeTest, RefusesWhenShuttingDown) {
  StartServer();
  server().BeginStop();
  RawPeer peer(this);
  EXPECT_FALSE(peer.Connect());
  ExpectRefused(peer, RejectCode::kShuttingDown, "shutting down");
}

TEST_F(HandshakeTest, StoppingBreaksConnections) {
  StartServer();
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  server().BeginStop();
  EXPECT_TRUE(peer.WaitBroken());
  EXPECT_EQ(stats().connections, 0u);
}

TEST_F(HandshakeTest, PortInUseIsAnErrorThatSaysSo) {
  StartServer();
  Server::Options options{.clocks = MachineClocks()};
  options.device = server().device();
  options.listen = server().address();
  const auto second = Server::Create(options);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use"));
}

TEST_F(HandshakeTest, SessionsSpreadOverWorkersAndResumeOnTheirOwn) {
  StartServer([](Server::Options* options) { options->workers = 3; });
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 6; ++i) {
    peers.push_back(std::make_unique<RawPeer>(this));
    ASSERT_TRUE(peers.back()->Connect());
    ASSERT_EQ(peers.back()->Put("key" + std::to_string(i), "value"), ReplyStatus::kOk);
  }
  for (const auto& worker : server().workers()) {
    EXPECT_EQ(worker->counters().connections.value(), 2u);
  }
  for (const auto& peer : peers) {
    RawPeer joined(this);
    EXPECT_TRUE(joined.Join(*peer, 1));
    EXPECT_EQ(joined.grant().resumed, 1);
  }
}

}  // namespace
}  // namespace gannet
