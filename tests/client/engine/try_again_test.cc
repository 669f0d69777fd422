// A server that has no room for a request says "try again". Clients do, after pauses that grow.

#include <gtest/gtest.h>

#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

class TryAgainTest : public FakeRun {
 protected:
  uint64_t BeginStats(int64_t timeout_ms) {
    return Begin(ServerRequest(*engine_, OpType::kStats, 0), timeout_ms);
  }
  // The first `refusals` requests, and then no more.
  void Refuse(int refusals) {
    server_->answer = [refusals](const FakeServer::Request& request) mutable {
      return FakeServer::ReplyTo(request,
                                 refusals-- > 0 ? ReplyStatus::kTryAgain : ReplyStatus::kOk);
    };
  }
};

TEST_F(TryAgainTest, PausesComeBetweenTheTriesAndGrow) {
  constexpr int64_t kStepNs = 10 * kNsPerUs;
  Connect(8);
  Refuse(10'000);
  BeginStats(/*timeout_ms=*/60'000);
  std::vector<int64_t> sent_ns;
  for (int i = 0; i < 5'000; ++i) {
    Settle();
    while (sent_ns.size() < server_->Count(Opcode::kStats)) sent_ns.push_back(clock_.now_ns);
    clock_.now_ns += kStepNs;
  }
  ASSERT_GT(sent_ns.size(), 10u);
  EXPECT_LT(sent_ns.size(), 40u) << "in 50 ms";
  for (size_t i = 2; i < sent_ns.size(); ++i) {
    EXPECT_GE(sent_ns[i] - sent_ns[i - 1], sent_ns[i - 1] - sent_ns[i - 2] - kStepNs);
  }
  EXPECT_LE(sent_ns.back() - *(sent_ns.end() - 2), 10 * kNsPerMs);
}

TEST_F(TryAgainTest, EndsWhenThereIsRoomAndOthersDoNotWaitForIt) {
  Connect(8);
  Refuse(5);
  const uint64_t refused = BeginStats(1000);
  Settle();
  EXPECT_FALSE(HasEnded(refused));
  Refuse(0);
  const uint64_t other = BeginStats(1000);
  Settle();
  EXPECT_TRUE(HasEnded(other));
  PassMs(20);
  ASSERT_TRUE(HasEnded(refused));
  EXPECT_EQ(ended_[refused].outcome, Outcome::kOk);
  EXPECT_EQ(engine_->busy(), 0u);
}

TEST_F(TryAgainTest, EndsAtTheDeadlineInThePause) {
  Connect(8);
  Refuse(10'000);
  const uint64_t refused = BeginStats(100);
  Settle();
  PassMs(99, /*step_ms=*/1);
  EXPECT_FALSE(HasEnded(refused));
  PassMs(1, /*step_ms=*/1);
  ASSERT_TRUE(HasEnded(refused));
  EXPECT_EQ(ended_[refused].outcome, Outcome::kDeadlineExceeded);
  const size_t tries = server_->Count(Opcode::kStats);
  PassMs(50);
  EXPECT_EQ(server_->Count(Opcode::kStats), tries);
  EXPECT_EQ(engine_->busy(), 0u);
}

// It is sent over the next connection, and the pause is forgotten with what it was for.
TEST_F(TryAgainTest, OutlivesTheConnection) {
  Connect(8);
  Refuse(1);
  const uint64_t refused = BeginStats(10'000);
  Settle();
  engine_->servers().Break(0, absl::UnavailableError("broken by the test"));
  for (int i = 0; i < 100 && !HasEnded(refused); ++i) PassMs(20);
  ASSERT_TRUE(HasEnded(refused));
  EXPECT_EQ(ended_[refused].outcome, Outcome::kOk);
  EXPECT_EQ(engine_->busy(), 0u);
}

}  // namespace
}  // namespace gannet
