// An unlock that reaches its deadline still releases its lock, however long that takes, and the
// slots that it keeps do not run out.

#include <gtest/gtest.h>

#include <string>

#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

class LateUnlockTest : public FakeRun {
 protected:
  void UseMode(LockMode mode) { server_->grant().lock_mode = static_cast<uint8_t>(mode); }
  Lock Locked(const std::string& key) {
    const auto answer = server_->answer;
    AnswerEverything();
    const uint64_t op = BeginKey(OpType::kLock, key);
    Settle();
    server_->answer = answer;
    EXPECT_TRUE(HasEnded(op) && ended_[op].found);
    return {key, ended_[op].word.word(), 0};
  }
  uint64_t BeginUnlock(const Lock& lock, int64_t timeout_ms) {
    return Begin(UnlockRequest(lock), timeout_ms);
  }
  // The server stands still meanwhile.
  void PassWithoutServer(int64_t ms) {
    for (int64_t passed = 0; passed < ms; passed += 100) {
      clock_.now_ns += 100 * kNsPerMs;
      for (int rounds = 0; rounds < 10; ++rounds) {
        softverbs_step();
        PollOnce();
      }
    }
  }
  uint64_t WordOf(const std::string& key) const {
    const KeyHash hash = KeyHash::Of(key, engine_->servers().session(0).grant().hash_seed);
    return server_->lock_word(hash.LockIndex(engine_->servers().session(0).grant().lock_words));
  }
};

TEST_F(LateUnlockTest, IsSentWhenThereIsACreditAgain) {
  UseMode(LockMode::kRpcServer);
  server_->grant().credits = 1;
  Connect(8);
  const Lock lock = Locked("key");
  const uint64_t blocked_by = BeginPut("other", "value", 300);
  Settle();
  const uint64_t unlock = BeginUnlock(lock, 20);
  PassMs(50);
  ASSERT_TRUE(HasEnded(unlock));
  EXPECT_EQ(ended_[unlock].outcome, Outcome::kDeadlineExceeded);
  EXPECT_EQ(server_->Count(Opcode::kUnlock), 0u);
  EXPECT_FALSE(HasEnded(blocked_by));
  server_->AnswerNow(server_->requests().back(), ReplyStatus::kOk);
  AnswerEverything();
  Settle();
  EXPECT_TRUE(HasEnded(blocked_by));
  ASSERT_EQ(server_->Count(Opcode::kUnlock), 1u);
  EXPECT_EQ(server_->requests().back().header.lock.lock_word, lock.word);
  EXPECT_EQ(server_->connections(), 1u);
}

TEST_F(LateUnlockTest, IsSentAgainWhenTheServerSaysTryAgain) {
  UseMode(LockMode::kRpcServer);
  Connect(8);
  const Lock lock = Locked("key");
  server_->answer = nullptr;
  const uint64_t unlock = BeginUnlock(lock, 20);
  PassMs(50);
  ASSERT_TRUE(HasEnded(unlock));
  ASSERT_EQ(server_->Count(Opcode::kUnlock), 1u);
  int refusals = 3;
  server_->answer = [&](const FakeServer::Request& request) {
    return FakeServer::ReplyTo(request, refusals-- > 0 ? ReplyStatus::kTryAgain : ReplyStatus::kOk);
  };
  server_->AnswerNow(server_->requests().back(), ReplyStatus::kTryAgain);
  PassMs(100);
  EXPECT_EQ(server_->Count(Opcode::kUnlock), 1u + 3 + 1);
  PassMs(1000);
  EXPECT_EQ(server_->Count(Opcode::kUnlock), 1u + 3 + 1) << "once it is released, it is over";
}

// A server that stood still may give the session its locks back, which the client has forgotten by
// then. So the client comes back as a new one.
TEST_F(LateUnlockTest, WhoForgetsKeptLocksForgetsItsSession) {
  constexpr int64_t kKeptMs = 3 * kSilenceMsDefault + 10'000;
  for (const bool long_away : {false, true}) {
    uint64_t token = 0;
    UseMode(LockMode::kRpcServer);
    server_->grant().features |= kGrantRails | kGrantOrdersRequests;
    server_->alter_grant = [&token](const ConnectRequest& request, Grant* grant) {
      token = request.session_token;
      grant->connection_id = 7;
    };
    AnswerEverything();
    Connect(8, [](Engine::Settings& settings) { settings.options.rails = 2; });
    const Lock lock = Locked("key");
    server_->BreakAll();
    PassWithoutServer(long_away ? kKeptMs + 5'000 : kKeptMs - 5'000);
    PassMs(5'000, 100);
    ASSERT_TRUE(engine_->servers().session(0).ready());
    EXPECT_EQ(token == 0, long_away);
    const uint64_t unlock = BeginUnlock(lock, 1000);
    PassMs(100);
    ASSERT_TRUE(HasEnded(unlock));
    EXPECT_EQ(ended_[unlock].outcome, long_away ? Outcome::kLockLost : Outcome::kOk);
    engine_.reset();
  }
}

TEST_F(LateUnlockTest, ByTheNicIsPostedWhenTheSendQueueHasRoom) {
  // With a fault plan the device executes nothing at once, so the send queue, of 512 at most,
  // fills.
  ASSERT_EQ(softverbs_set_faults("seed=1,delay_post=1:1us", nullptr, 0), 0);
  Connect(1024);
  const Lock lock = Locked("key");
  ASSERT_EQ(WordOf("key"), lock.word);
  for (int i = 0; i < 600; ++i) BeginKey(OpType::kGet, "key" + std::to_string(i), 60'000);
  PollOnce();
  const uint64_t unlock = BeginUnlock(lock, 0);
  PollOnce();
  ASSERT_TRUE(HasEnded(unlock));
  EXPECT_EQ(ended_[unlock].outcome, Outcome::kDeadlineExceeded);
  Settle();
  EXPECT_EQ(WordOf("key"), 0u);
  softverbs_clear_faults();
}

TEST_F(LateUnlockTest, BehindAWriteOfItsKeyReleasesAllTheSame) {
  Connect(8);
  const Lock lock = Locked("key");
  BeginPut("key", "value", 60'000);
  const uint64_t unlock = BeginUnlock(lock, 20);
  PassMs(50);
  ASSERT_TRUE(HasEnded(unlock));
  EXPECT_EQ(WordOf("key"), 0u);
}

TEST_F(LateUnlockTest, SlotsOfLocksThatAreBeingReleasedComeBackWithTheConnection) {
  UseMode(LockMode::kRpcServer);
  constexpr uint32_t kDepth = 4;
  Connect(kDepth);
  server_->answer = nullptr;
  // Nobody knows whether the server grants these locks, so their slots are kept.
  uint32_t begun = 0;
  while (BeginKey(OpType::kLock, "key" + std::to_string(begun), 20) != 0) {
    ++begun;
    PassMs(30);
  }
  EXPECT_EQ(begun, 2 * kDepth);
  PassMs(kSilenceMsDefault + 1000);
  EXPECT_EQ(server_->connections(), 2u);
  AnswerEverything();
  PassMs(100);
  for (uint32_t i = 0; i < kDepth; ++i) EXPECT_NE(BeginPut(std::to_string(i), "v"), 0u);
}

// Regression: the answer to its GET came after another connection was made, and was treated as
// invalid.
TEST_F(LateUnlockTest, OfALockAndGetThatAsksTheServerForTheItemComesWithTheConnectionsEnd) {
  HandMadeRegion& region = server_->region();
  // The item may be past its expiry or not, so the client asks the server.
  const uint64_t expiry_ms = server_->time_ms() + 1;
  region.SetSlot(region.HomeOf("key"), 0, region.AddItem("key", "value", "key", expiry_ms));
  server_->PublishRegion();
  Connect(8);
  const uint64_t op = BeginKey(OpType::kLockAndGet, "key");
  Settle();
  ASSERT_FALSE(HasEnded(op));
  ASSERT_EQ(server_->Count(Opcode::kGet), 1u);
  engine_->servers().Break(0, absl::UnavailableError("by the test"));
  AnswerEverything();
  PassMs(100);
  ASSERT_TRUE(HasEnded(op));
  EXPECT_EQ(ended_[op].outcome, Outcome::kUnavailable);
}

}  // namespace
}  // namespace gannet
