#include "client/session/session_heartbeats.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

// A session with one connection, to a primary whose lease ended long ago.
class SessionHeartbeatsTest : public testing::Test {
 protected:
  static constexpr int64_t kAsked = 1000 * kNsPerSecond;
  static constexpr int64_t kHeard = kAsked + 3 * kNsPerMs;

  SessionHeartbeatsTest() {
    Grant grant = NewGrant();
    grant.history = 7;
    lease_.Restart(grant, kAsked, kAsked);
    options_.server_clock = false;
  }
  // The server answers a heartbeat: it has a lease for maps from `leases_from` on.
  void Answer(uint64_t leases_from) {
    connection_.liveness.OnHeartbeatSent(kAsked);
    ReplyView reply{};
    reply.header.opcode = static_cast<uint8_t>(Opcode::kHeartbeat);
    reply.header.primary_lease_ms = 640;
    reply.header.clock.leases_from = leases_from;
    heartbeats_.OnReply(connection_, reply, kHeard);
  }

  SessionOptions options_{.clock = ClientClock::Real()};
  SessionReports reports_{0, nullptr};
  PrimaryLeaseWatch lease_;
  ClientConnection connection_;
  SessionHeartbeats heartbeats_{{.options = &options_, .reports = &reports_, .lease = &lease_}};
};

TEST_F(SessionHeartbeatsTest, BelievesALeaseForItsMap) {
  heartbeats_.SetMapRevision(5);
  Answer(5);
  EXPECT_FALSE(heartbeats_.map_is_old());
  EXPECT_TRUE(lease_.ValidAt(kHeard));
}

// The server's memory may hold what it does not own by a newer map (docs/partitions.md, rule 6).
TEST_F(SessionHeartbeatsTest, BelievesOnlyRepliesUnderALeaseForLaterMaps) {
  heartbeats_.SetMapRevision(4);
  Answer(5);
  EXPECT_TRUE(heartbeats_.map_is_old());
  EXPECT_FALSE(lease_.ValidAt(kHeard));
  EXPECT_TRUE(lease_.RepliesValidAt(kHeard));
}

}  // namespace
}  // namespace gannet
