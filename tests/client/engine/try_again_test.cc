// A server that has no room for a request says "try again". Clients do, after pauses that grow.
// Writes of a key keep their order.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

// A server that puts off the first `refusals` writes, and what comes behind one of them.
class PutOffTest : public FakeRun {
 protected:
  // `told`: the client is told that the order is kept.
  void PutOff(int refusals, bool told = true) {
    refusals_ = refusals;
    server_->answer = [this, told](const FakeServer::Request& request) {
      const bool again = (request.header.flags & kSentAgain) != 0;
      sent_.push_back((again ? "again " : "") + std::to_string(request.header.value_bytes));
      if (again) puts_off_ = false;
      if (refusals_-- > 0) puts_off_ = true;
      ReplyHeader reply =
          FakeServer::ReplyTo(request, puts_off_ ? ReplyStatus::kTryAgain : ReplyStatus::kOk);
      if (puts_off_ && told) reply.write.version = kPutOffInOrder;
      return reply;
    };
  }
  // Sends these values. The answer to the first one arrives, the connection breaks, and the next
  // server puts off nothing.
  void LoseAnswersBehindTheFirst(const std::vector<std::string>& values) {
    const auto answer = server_->answer;
    server_->answer = [answer](const FakeServer::Request& request) {
      const std::optional<ReplyHeader> reply = answer(request);
      return request.header.sequence == 1 ? reply : std::nullopt;
    };
    for (const std::string& value : values) BeginPut("key", value, 60'000);
    Settle();
    EXPECT_THAT(ended_, IsEmpty());
    puts_off_ = false;
    server_->answer = answer;
    engine_->servers().Break(0, absl::UnavailableError("broken by the test"));
    PassMs(100);
  }
  void ExpectAllEnded() {
    EXPECT_EQ(ended_.size(), begun_);
    for (const auto& [op, ended] : ended_) EXPECT_EQ(ended.outcome, Outcome::kOk) << op;
    EXPECT_EQ(engine_->busy(), 0u);
  }

  int refusals_ = 0;
  bool puts_off_ = false;
  std::vector<std::string> sent_;  // bytes of the values
};

TEST_F(PutOffTest, LaterWritesOfTheKeyAreSentAgainBehindIt) {
  Connect(8);
  PutOff(1);
  for (const char* value : {"a", "bb", "ccc"}) BeginPut("key", value);
  Settle();
  EXPECT_THAT(sent_, ElementsAre("1", "2", "3"));
  BeginPut("key", "dddd");
  Settle();
  EXPECT_EQ(sent_.size(), 3u) << "a later one waits";
  PassMs(20);
  EXPECT_THAT(sent_, ElementsAre("1", "2", "3", "again 1", "2", "3", "4"));
  ExpectAllEnded();
}

TEST_F(PutOffTest, ItIsSentAgainAloneAsLongAsItIsPutOff) {
  Connect(8);
  PutOff(4);
  for (const char* value : {"a", "bb"}) BeginPut("key", value);
  PassMs(50);
  EXPECT_THAT(sent_, ElementsAre("1", "2", "again 1", "again 1", "again 1", "2"));
  ExpectAllEnded();
}

// The server does not know that the first one is given up, and puts off the next one once more.
TEST_F(PutOffTest, TheNextOneGoesOnIfTheFirstEndsAtItsDeadline) {
  Connect(8);
  PutOff(1);
  const uint64_t first = BeginPut("key", "a", /*timeout_ms=*/1);
  BeginPut("key", "bb");
  Settle();
  clock_.now_ns += 2 * kNsPerMs;
  PassMs(20);
  ASSERT_EQ(ended_.size(), 2u);
  EXPECT_EQ(ended_[first].outcome, Outcome::kDeadlineExceeded);
  EXPECT_THAT(sent_, ElementsAre("1", "2", "2", "again 2"));
}

TEST_F(PutOffTest, NothingOvertakesItOverTheNextConnection) {
  Connect(8);
  PutOff(1);
  LoseAnswersBehindTheFirst({"a", "bb", "ccc"});
  EXPECT_THAT(sent_, ElementsAre("1", "2", "3", "again 1", "2", "3"));
  ExpectAllEnded();
}

// A server that does not keep the order may have executed what was sent behind.
TEST_F(PutOffTest, WhatMayHaveBeenExecutedIsSentAgainUnderItsNumber) {
  Connect(8);
  PutOff(1, /*told=*/false);
  LoseAnswersBehindTheFirst({"a", "bb"});
  std::vector<uint64_t> numbers;
  for (const FakeServer::Request& request : server_->requests()) {
    if (request.header.value_bytes == 2) numbers.push_back(request.header.sequence);
  }
  EXPECT_THAT(numbers, ElementsAre(2, 2));
  ExpectAllEnded();
}

}  // namespace
}  // namespace gannet
