// A server that answers heartbeats, but no requests.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

class SilentRequestsTest : public FakeRun {
 protected:
  static constexpr uint32_t kDepth = 8;

  void SetUp() override {
    server_->region().SetSlot(server_->region().HomeOf("there"), 0,
                              server_->region().AddItem("there", "value"));
    server_->PublishRegion();
  }
};

TEST_F(SilentRequestsTest, GetsGoOnThoughMoreRequestsExpireThanThereAreSlots) {
  server_->grant().credits = 2;
  Connect(kDepth);
  for (uint32_t i = 0; i < 5 * kDepth; ++i) {
    const uint64_t put = BeginPut("put" + std::to_string(i), "value", 20);
    ASSERT_NE(put, 0u) << "no room for request " << i;
    PassMs(30);
    ASSERT_TRUE(HasEnded(put));
    EXPECT_EQ(ended_[put].outcome, Outcome::kDeadlineExceeded);
    const uint64_t get = BeginKey(OpType::kGet, "there");
    ASSERT_NE(get, 0u);
    Settle();
    ASSERT_TRUE(HasEnded(get));
    EXPECT_EQ(ended_[get].value, "value");
  }
  EXPECT_EQ(engine_->alive(), 0u);
}

// What a request cost is told with its answer, or when nobody waits for that any more.
TEST_F(SilentRequestsTest, ARequestIsChargedOnceAnsweredOrNot) {
  Connect(kDepth);
  const uint64_t unanswered = BeginPut("unanswered", "value", 20);
  PassMs(30);
  ASSERT_TRUE(HasEnded(unanswered));
  EXPECT_EQ(ended_[unanswered].cost.sends, 1u);
  EXPECT_EQ(ended_[unanswered].cost.posts, 1u);
  EXPECT_EQ(ended_[unanswered].cost.completions, 1u) << "of the SEND";
  AnswerEverything();
  const uint64_t answered = BeginPut("answered", "value");
  Settle();
  ASSERT_TRUE(HasEnded(answered));
  EXPECT_EQ(ended_[answered].cost.sends, 1u);
  EXPECT_EQ(ended_[answered].cost.posts, 1u);
  EXPECT_EQ(ended_[answered].cost.completions, 2u) << "of the SEND, and the answer";
}

TEST_F(SilentRequestsTest, RequestsThatExpireTogetherFreeTheirSlotsAtOnce) {
  server_->grant().credits = 2;
  Connect(kDepth);
  for (int round = 0; round < 4; ++round) {
    for (uint32_t i = 0; i < kDepth; ++i) ASSERT_NE(BeginPut(std::to_string(i), "v", 20), 0u);
    PassMs(30);
    EXPECT_EQ(engine_->alive(), 0u);
  }
  EXPECT_EQ(server_->Count(Opcode::kPut), 2u);
}

TEST_F(SilentRequestsTest, TheConnectionIsBrokenAndComesBack) {
  Connect(kDepth);
  BeginPut("key", "value", 200);
  PassMs(kSilenceMsDefault + 200);
  EXPECT_EQ(server_->connections(), 1u) << "broken too early";
  PassMs(200);
  EXPECT_EQ(server_->connections(), 2u);
  AnswerEverything();
  const uint64_t put = BeginPut("key", "value");
  Settle();
  ASSERT_TRUE(HasEnded(put));
  EXPECT_EQ(ended_[put].outcome, Outcome::kOk);
  EXPECT_GT(server_->heartbeats(), 2u);
}

TEST_F(SilentRequestsTest, WhoWaitsLongIsWaitedFor) {
  Connect(kDepth);
  BeginPut("short", "value", 20);
  const uint64_t patient = BeginPut("long", "value", 5000);
  PassMs(4900);
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_FALSE(HasEnded(patient));
}

TEST_F(SilentRequestsTest, AServerThatAnswersNowAndThenIsOnlySlow) {
  Connect(kDepth);
  bool turn = false;
  server_->answer = [&](const FakeServer::Request& request) -> std::optional<ReplyHeader> {
    if (!std::exchange(turn, false)) return std::nullopt;
    return FakeServer::ReplyTo(request);
  };
  for (int second = 0; second < 10; ++second) {
    BeginPut("unanswered" + std::to_string(second), "value", 20);
    Settle();
    turn = true;
    BeginPut("answered" + std::to_string(second), "value", 20);
    PassMs(1000);
  }
  EXPECT_EQ(server_->connections(), 1u);
}

// Requests that nobody waits for are not sent again: otherwise a request that the server never
// answers would hold up every later connection.
TEST_F(SilentRequestsTest, AfterABreakOnlyWhatIsWaitedForIsSentAgain) {
  Connect(kDepth);
  BeginPut("short", "value", 20);
  PassMs(100);
  const uint64_t put = BeginPut("long", "value", 60'000);
  Settle();
  engine_->servers().Break(0, absl::UnavailableError("by the test"));
  AnswerEverything();
  PassMs(100);
  ASSERT_EQ(server_->requests().size(), 3u);
  EXPECT_EQ(server_->requests()[2].key, "long");
  ASSERT_TRUE(HasEnded(put));
  EXPECT_EQ(ended_[put].outcome, Outcome::kOk);
}

}  // namespace
}  // namespace gannet
