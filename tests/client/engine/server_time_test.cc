// Items expire by the server's clock, for which clients know an upper bound. Only the server's
// silence counts, not time in which the client stood still.

#include <gtest/gtest.h>

#include <string>

#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

constexpr int64_t kHourMs = 3'600'000;

// The server's clock differs by hours from any clock that the client has, and is a little too fast
// or too slow.
class ServerTimeTest : public FakeRun, public ::testing::WithParamInterface<double> {
 protected:
  static constexpr uint64_t kServerStartMs = 1'700'000'000'000 + 17 * kHourMs;

  void SetUp() override {
    server_->time_ms = [this] { return ServerMs(); };
    server_->answer = [](const FakeServer::Request& request) {
      return FakeServer::ReplyTo(request, ReplyStatus::kNotFound);
    };
  }
  uint64_t ServerMs() const {
    const auto passed_ns = static_cast<double>(clock_.now_ns - started_ns_);
    return kServerStartMs + static_cast<uint64_t>(passed_ns * GetParam() / 1e6);
  }
  void AddItem(const std::string& key, uint64_t expiry_ms) {
    HandMadeRegion& region = server_->region();
    region.SetSlot(region.HomeOf(key), next_slot_++, region.AddItem(key, "value", key, expiry_ms));
    server_->PublishRegion();
  }
  Ended Get(const std::string& key) {
    const uint64_t get = BeginKey(OpType::kGet, key);
    Settle();
    EXPECT_TRUE(HasEnded(get));
    return ended_[get];
  }

  const int64_t started_ns_ = clock_.now_ns;
  uint32_t next_slot_ = 0;
};

TEST_P(ServerTimeTest, AnItemIsAliveUntilItsExpiryByTheServersClock) {
  AddItem("key", ServerMs() + 60'000);
  Connect(8);
  while (ServerMs() < kServerStartMs + 59'900) {
    const Ended got = Get("key");
    ASSERT_TRUE(got.found) << ServerMs();
    const auto left_ms = static_cast<int64_t>(kServerStartMs + 60'000 - ServerMs());
    ASSERT_LE(got.info.ttl_left.count(), left_ms);
    ASSERT_GE(got.info.ttl_left.count(), left_ms - 20);
    PassMs(50);
  }
  EXPECT_EQ(server_->Count(Opcode::kGet), 0u) << "the server had to be asked";
  while (ServerMs() < kServerStartMs + 60'000) PassMs(10);
  EXPECT_FALSE(Get("key").found);
  EXPECT_LE(server_->Count(Opcode::kGet), 1u);
}

// An item whose time is surely over is a miss, and costs its READ alone.
TEST_P(ServerTimeTest, AnItemPastItsExpiryIsAMissInOneRead) {
  AddItem("key", ServerMs() + 500);
  Connect(8);
  ASSERT_TRUE(Get("key").found);  // its location is known from now on
  PassMs(520);
  for (int i = 0; i < 5; ++i) {
    const Ended got = Get("key");
    EXPECT_EQ(got.outcome, Outcome::kOk);
    EXPECT_FALSE(got.found);
    EXPECT_EQ(got.info.version, 0u);
    EXPECT_EQ(got.cost.reads, 1);
    PassMs(300);
  }
  EXPECT_EQ(server_->Count(Opcode::kGet), 0u);
}

// Where the client does not know on which side of the expiry the server's clock is, it asks.
TEST_P(ServerTimeTest, AtTheBoundaryTheServerIsAsked) {
  Connect(8);
  PassMs(1000);
  const uint64_t told_ms = ServerMs();
  AddItem("now", told_ms + 1);
  EXPECT_FALSE(Get("now").found);
  EXPECT_EQ(server_->Count(Opcode::kGet), 1u);
  AddItem("past", told_ms - 20);
  EXPECT_FALSE(Get("past").found);
  EXPECT_EQ(server_->Count(Opcode::kGet), 1u);
}

// It reads its clock for a Poll, stands still, and then finds what the server told meanwhile.
TEST_P(ServerTimeTest, AClientThatStandsStillInAPollTakesNothingForOver) {
  server_->time_ms = [this] {
    constexpr int64_t kStandsStillNs = 100 * kNsPerMs;
    stood_still_ns_ += kStandsStillNs;
    clock_.now_ns += kStandsStillNs;
    return ServerMs();
  };
  AddItem("key", ServerMs() + 5'000);
  Connect(8);
  for (; ServerMs() < kServerStartMs + 4'990; PassMs(10)) {
    const Ended got = Get("key");
    ASSERT_TRUE(got.found || got.cost.by_rpc) << ServerMs();
  }
}

// An item that was READ before its time was over may have been replaced since. So only items count
// whose time was over when the GET began.
TEST_P(ServerTimeTest, AnItemThatExpiresDuringTheGetIsAskedFor) {
  AddItem("key", ServerMs() + 500);
  Connect(8);
  server_->answer = [](const FakeServer::Request& request) -> std::optional<ReplyHeader> {
    if (request.opcode() == Opcode::kPut) return std::nullopt;
    return FakeServer::ReplyTo(request, ReplyStatus::kNotFound);
  };
  PassMs(400);
  BeginPut("key", "refused");
  const uint64_t get = BeginKey(OpType::kGet, "key");  // waits for the answer to the PUT
  PassMs(200);
  ASSERT_FALSE(HasEnded(get));
  server_->AnswerNow(server_->requests().back(), ReplyStatus::kHeapFull);
  Settle();
  ASSERT_TRUE(HasEnded(get));
  EXPECT_EQ(server_->Count(Opcode::kGet), 1u);
}

// Heartbeats, which bring the server's time, go out even if there are other requests all the time.
TEST_P(ServerTimeTest, ABusyClientKnowsTheServersTimeToo) {
  AddItem("key", ServerMs() + kHourMs);
  Connect(8);
  for (int i = 0; i < 600; ++i) {
    Begin(ServerRequest(*engine_, OpType::kPing, 0));
    PassMs(100, 100);
  }
  const auto left_ms = static_cast<int64_t>(kServerStartMs + kHourMs - ServerMs());
  EXPECT_GE(Get("key").info.ttl_left.count(), left_ms - 20);
}

TEST_P(ServerTimeTest, AnotherServerRunHasAnotherClock) {
  AddItem("key", kServerStartMs + 60'000);
  Connect(8);
  EXPECT_TRUE(Get("key").found);
  server_->time_ms = [this] { return ServerMs() + 5 * kHourMs; };
  server_->grant().session_token += 1;
  engine_->servers().Break(0, absl::UnavailableError("by the test"));
  PassMs(100);
  EXPECT_FALSE(Get("key").found);
  EXPECT_EQ(server_->Count(Opcode::kGet), 0u);
}

TEST_P(ServerTimeTest, ItemsThatNeverExpireHaveNoTimeLeft) {
  AddItem("key", 0);
  Connect(8);
  const Ended got = Get("key");
  EXPECT_TRUE(got.found);
  EXPECT_EQ(got.info.expiry_ms, 0u);
  EXPECT_EQ(got.info.ttl_left.count(), 0);
}

INSTANTIATE_TEST_SUITE_P(Speeds, ServerTimeTest, ::testing::Values(0.999, 1.0, 1.001));

class SilenceTest : public FakeRun {};

TEST_F(SilenceTest, IsWhatTheServerGranted) {
  server_->grant().silence_ms = 300;
  Connect(8);
  PassMs(1000);
  EXPECT_GE(server_->heartbeats(), 9u);
  EXPECT_EQ(server_->connections(), 1u);
  server_->answers_heartbeats = false;
  PassMs(500);
  EXPECT_EQ(server_->connections(), 2u);
}

TEST_F(SilenceTest, AClientThatStoodStillTakesNobodyForSilent) {
  Connect(8);
  PassMs(500);  // a heartbeat is on its way when the client stops ...
  const uint32_t heartbeats = server_->heartbeats();
  server_->answers_heartbeats = false;
  clock_.now_ns += 500 * kNsPerMs;
  PollOnce();
  Settle();
  EXPECT_EQ(server_->heartbeats(), heartbeats + 1);
  server_->answers_heartbeats = true;
  clock_.now_ns += 60 * kNsPerSecond;  // ... for a minute
  PollOnce();
  PassMs(1000);
  EXPECT_EQ(server_->connections(), 1u);
}

}  // namespace
}  // namespace gannet
