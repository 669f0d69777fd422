// What a server in a group tells clients: who is primary, and what is left of the primary's lease.

#include <gtest/gtest.h>

#include <functional>

#include "common/protocol/not_primary.h"
#include "server/group/replica/group_standing.h"
#include "server/main/control/admission_control.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

class StandingTest : public ServerTest {
 protected:
  void SetUp() override {
    standing_.SetServes(true);
    StartServer([this](Server::Options* options) {
      options->standing = &standing_;
      options->clocks.boot = [] { return kLeaseNow; };
    });
  }
  void Step() override {
    if (server().waiting() > 0 && while_waiting_) while_waiting_();
    if (!deposed_in_between_) return ServerTest::Step();
    server().Poll(now());
    standing_.SetServes(false);
    for (const auto& worker : server().workers()) worker->Poll(now());
  }
  // Connects in vain, and returns the server's reason.
  std::string Refused() {
    RawPeer peer(this);
    EXPECT_FALSE(peer.Connect());
    EXPECT_TRUE(peer.reject().has_value());
    if (!peer.reject().has_value()) return "no reject";
    EXPECT_EQ(peer.reject()->code, static_cast<uint32_t>(RejectCode::kNotPrimary));
    return RejectReason(*peer.reject());
  }

  GroupStanding standing_{kHistory};
  bool deposed_in_between_ = false;
  std::function<void()> while_waiting_;  // before each Step while a request to connect waits
};

TEST_F(StandingTest, AGrantTellsTheHistoryAndWhatIsLeftOfTheLease) {
  standing_.SetLeaseEnd(kLeaseNow + 599 * kNsPerMs + 1);
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  EXPECT_EQ(peer.grant().history, kHistory);
  EXPECT_EQ(peer.grant().primary_lease_ms, 599u);
}

TEST_F(StandingTest, AHeartbeatsReplyTellsTheLeaseByTheClockOfThatMoment) {
  standing_.SetLeaseEnd(kLeaseNow + 600 * kNsPerMs);
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  standing_.SetLeaseEnd(kLeaseNow + 400 * kNsPerMs);
  RequestHeader heartbeat{};
  auto reply = peer.Call(heartbeat);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->header.primary_lease_ms, 400u);
  standing_.SetLeaseEnd(kLeaseNow - 1);
  reply = peer.Call(heartbeat);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->header.primary_lease_ms, 0u);
  EXPECT_EQ(peer.Put("key", "value"), ReplyStatus::kOk);  // its reply tells none
}

TEST_F(StandingTest, ABackupSaysWhoIsPrimary) {
  standing_.SetServes(false);
  EXPECT_EQ(Refused(), "");
  standing_.SetElsewhere(ReasonOf({"10.0.0.2:7471", 7}));
  EXPECT_EQ(Refused(), "primary=10.0.0.2:7471 epoch=7");
  standing_.SetServes(true);
  RawPeer peer(this);
  EXPECT_TRUE(peer.Connect());
}

TEST_F(StandingTest, TellsTheMapOfItsClusterInPieces) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  RequestHeader header = peer.Header(Opcode::kMap);
  auto reply = peer.Call(header);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->header.status, static_cast<uint8_t>(ReplyStatus::kNotFound)) << "not known yet";

  std::string map;
  for (int i = 0; i < 10'000; ++i) map += static_cast<char>(i * 7);
  standing_.SetMap(std::make_shared<const std::string>(map));
  std::string told;
  int pieces = 0;
  for (uint64_t from = 0; pieces == 0 || from != 0; ++pieces) {
    header = peer.Header(Opcode::kMap);
    header.list.position = from;
    reply = peer.Call(header);
    ASSERT_TRUE(reply.has_value());
    ASSERT_EQ(reply->header.status, static_cast<uint8_t>(ReplyStatus::kOk));
    told += reply->value;
    from = reply->header.list.next;
  }
  EXPECT_EQ(told, map);
  EXPECT_EQ(pieces, 3);

  header = peer.Header(Opcode::kMap);
  header.list.position = UINT64_MAX;
  reply = peer.Call(header);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->value, "");
  EXPECT_EQ(reply->header.list.next, 0u);
}

TEST_F(StandingTest, TellsOfNoLongerLeaseThanTheLongest) {
  standing_.SetLeaseMax(50 * kNsPerMs);
  standing_.SetLeaseEnd(kLeaseNow + 600 * kNsPerMs);
  EXPECT_EQ(standing_.LeaseLeftMs(kLeaseNow), 50);
  EXPECT_EQ(standing_.LeaseLeftMs(kLeaseNow + 570 * kNsPerMs), 30);
}

class WaitForPrimaryTest : public StandingTest {
 protected:
  void SetUp() override {
    StandingTest::SetUp();
    standing_.SetServes(false);
    standing_.SetElsewhere(ReasonOf({"10.0.0.2:7471", 7}));
    standing_.SetAwaitsFrom(kLeaseNow);
  }
};

TEST_F(WaitForPrimaryTest, AClientIsTakenOnceThisServerIsPrimary) {
  bool waited = false;
  while_waiting_ = [&] {
    waited = true;
    EXPECT_LE(server().deadline(), now().boot + AdmissionControl::kLookForPrimaryNs);
    standing_.SetServes(true);
  };
  RawPeer peer(this);
  EXPECT_TRUE(peer.Connect());
  EXPECT_TRUE(waited);
  EXPECT_EQ(stats().refused_connections, 0u);
}

TEST_F(WaitForPrimaryTest, AClientIsToldOfAnotherPrimaryOnceThatIsKnown) {
  while_waiting_ = [&] {
    standing_.SetElsewhere(ReasonOf({"10.0.0.3:7471", 8}));
    standing_.SetAwaitsFrom(BootTime::Never());
  };
  EXPECT_EQ(Refused(), "primary=10.0.0.3:7471 epoch=8");
}

TEST_F(WaitForPrimaryTest, AClientWaitsForAShareOfALease) {
  int steps = 0;
  while_waiting_ = [&] {
    ++steps;
    Advance(30 * kNsPerMs);
  };
  EXPECT_EQ(Refused(), "primary=10.0.0.2:7471 epoch=7");
  EXPECT_EQ(steps, 4) << "600 ms / 6";
}

TEST_F(WaitForPrimaryTest, WhileThePrimaryIsHeardNobodyWaits) {
  standing_.SetAwaitsFrom(kLeaseNow + 1);
  while_waiting_ = [] { ADD_FAILURE() << "waits"; };
  EXPECT_EQ(Refused(), "primary=10.0.0.2:7471 epoch=7");
}

TEST_F(WaitForPrimaryTest, AServerThatStopsSaysSo) {
  while_waiting_ = [&] { server().BeginStop(); };
  RawPeer peer(this);
  EXPECT_FALSE(peer.Connect());
  ASSERT_TRUE(peer.reject().has_value());
  EXPECT_EQ(peer.reject()->code, static_cast<uint32_t>(RejectCode::kShuttingDown));
}

TEST_F(StandingTest, AServerInNoGroupIsNothingThere) {
  ConnectRequest request = NewConnectRequest();
  request.features = kConnectStanding;
  RawPeer peer(this);
  EXPECT_FALSE(peer.Connect(request));
  ASSERT_TRUE(peer.reject().has_value());
  EXPECT_EQ(peer.reject()->code, static_cast<uint32_t>(RejectCode::kMalformed));
  EXPECT_EQ(RejectReason(*peer.reject()),
            "this server is in no group: it was started without --cluster");
}

TEST_F(StandingTest, TheAcceptorRefusesWhatCameBeforeThePrimaryWasDeposed) {
  standing_.SetElsewhere(ReasonOf({"10.0.0.2:7471", 7}));
  deposed_in_between_ = true;
  RawPeer peer(this);
  EXPECT_FALSE(peer.Connect());
  ASSERT_TRUE(peer.reject().has_value());
  EXPECT_EQ(peer.reject()->code, static_cast<uint32_t>(RejectCode::kNotPrimary));
}

}  // namespace
}  // namespace gannet
