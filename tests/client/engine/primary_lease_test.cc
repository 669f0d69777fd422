// A client of a group's primary: what it believes, and when.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

constexpr int64_t kPrimaryLeaseMs = 600;

class PrimaryLeaseTest : public FakeRun {
 protected:
  void SetUp() override {
    server_->grant().history = 7;
    server_->lease_left_ms = [this] {
      const int64_t left_ms = (lease_end_ns_ - clock_.now_ns) / kNsPerMs;
      return static_cast<uint16_t>(std::clamp<int64_t>(left_ms, 0, kPrimaryLeaseMs));
    };
    server_->region().SetSlot(server_->region().HomeOf("there"), 0,
                              server_->region().AddItem("there", "value"));
    server_->PublishRegion();
    lease_end_ns_ = clock_.now_ns + kPrimaryLeaseMs * kNsPerMs;
    Connect(8);
  }
  // The primary has a lease from now on, for as long as it may.
  void Extend() { lease_end_ns_ = clock_.now_ns + kPrimaryLeaseMs * kNsPerMs; }
  // Posts what was begun, and lets the device do it, but takes no completion.
  void PostAndComplete() {
    PollOnce();
    while (softverbs_step() > 0) {
    }
  }
  const ClientSession& session() const { return engine_->servers().session(0); }

  int64_t lease_end_ns_ = 0;
};

TEST_F(PrimaryLeaseTest, WhatIsTakenUnderTheLeaseIsBelieved) {
  const uint64_t get = BeginKey(OpType::kGet, "there");
  PostAndComplete();
  clock_.now_ns = lease_end_ns_ - 20 * kNsPerMs;
  PollOnce();
  for (int i = 0; i < 4 && !HasEnded(get); ++i) PostAndComplete();
  ASSERT_TRUE(HasEnded(get));
  EXPECT_EQ(ended_[get].value, "value");
  EXPECT_EQ(session().lease().disbelieved(), 0u);
}

TEST_F(PrimaryLeaseTest, WhatIsTakenAfterItIsHeldUntilTheServerSaysThatItIsPrimaryStill) {
  const uint64_t get = BeginKey(OpType::kGet, "there");
  PostAndComplete();
  clock_.now_ns = lease_end_ns_;
  for (int i = 0; i < 10; ++i) {
    PollOnce();  // without the server's CPU
    while (softverbs_step() > 0) {
    }
    EXPECT_FALSE(HasEnded(get));
  }
  Extend();
  Settle();
  ASSERT_TRUE(HasEnded(get));
  EXPECT_EQ(ended_[get].outcome, Outcome::kOk);
  EXPECT_EQ(ended_[get].value, "value");
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_EQ(session().lease().disbelieved(), 0u);
}

TEST_F(PrimaryLeaseTest, WhatIsNeverConfirmedIsReadAgainFromTheNextPrimary) {
  const uint64_t get = BeginKey(OpType::kGet, "there", 10'000);
  PostAndComplete();
  clock_.now_ns = lease_end_ns_;
  Settle();
  PassMs(kPrimaryLeaseMs - 20);
  EXPECT_FALSE(HasEnded(get));
  EXPECT_EQ(server_->connections(), 1u);
  PassMs(40);
  EXPECT_GE(session().lease().disbelieved(), 1u);
  EXPECT_FALSE(HasEnded(get)) << "a value of a primary without a lease";
  Extend();
  PassMs(2000);
  ASSERT_TRUE(HasEnded(get));
  EXPECT_EQ(ended_[get].value, "value");
  EXPECT_GE(server_->connections(), 2u);
}

TEST_F(PrimaryLeaseTest, RepliesAreUnderTheLeaseToo) {
  AnswerEverything();
  const uint64_t put = BeginPut("key", "value", 10'000);
  PollOnce();
  for (int i = 0; i < 10; ++i) {  // the reply is there, but not taken
    softverbs_step();
    server_->Step();
  }
  ASSERT_EQ(server_->Count(Opcode::kPut), 1u);
  clock_.now_ns = lease_end_ns_;
  PollOnce();
  EXPECT_FALSE(HasEnded(put));
  Extend();
  Settle();
  ASSERT_TRUE(HasEnded(put));
  EXPECT_EQ(ended_[put].outcome, Outcome::kOk);
  EXPECT_EQ(server_->Count(Opcode::kPut), 1u);
}

TEST_F(PrimaryLeaseTest, ARequestWhoseReplyIsNotBelievedIsSentAgainUnderItsNumber) {
  AnswerEverything();
  const uint64_t put = BeginPut("key", "value", 10'000);
  PollOnce();
  for (int i = 0; i < 10; ++i) {
    softverbs_step();
    server_->Step();
  }
  clock_.now_ns = lease_end_ns_;
  Settle();
  PassMs(kPrimaryLeaseMs + 20);
  Extend();
  PassMs(1000);
  ASSERT_TRUE(HasEnded(put));
  EXPECT_EQ(ended_[put].outcome, Outcome::kOk);
  ASSERT_GE(server_->Count(Opcode::kPut), 2u);
  EXPECT_EQ(server_->requests()[0].header.sequence, server_->requests()[1].header.sequence);
}

TEST_F(PrimaryLeaseTest, AnOperationThatIsHeldEndsAtItsDeadline) {
  const uint64_t get = BeginKey(OpType::kGet, "there", 300);
  PostAndComplete();
  clock_.now_ns = lease_end_ns_ - 10 * kNsPerMs;
  const uint64_t late = BeginKey(OpType::kGet, "there", 300);
  clock_.now_ns = lease_end_ns_;
  Settle();
  EXPECT_FALSE(HasEnded(late));
  PassMs(310);
  ASSERT_TRUE(HasEnded(late));
  EXPECT_EQ(ended_[late].outcome, Outcome::kDeadlineExceeded);
  ASSERT_TRUE(HasEnded(get));
}

// More completions come than are taken at once, as all receives are flushed. Among the last ones is
// that which tells that the connection is flushed. If it is missed, the session waits for two
// seconds.
TEST_F(PrimaryLeaseTest, AConnectionThatFailsWhenTheLeaseIsOverIsFlushedAtOnce) {
  const uint64_t put = BeginPut("key", "value", 30'000);
  Settle();
  clock_.now_ns = lease_end_ns_;
  ASSERT_EQ(softverbs_set_faults("seed=1,error=send:1", nullptr, 0), 0);
  PostAndComplete();  // the question for a lease fails
  softverbs_clear_faults();
  PollOnce();
  EXPECT_FALSE(session().ready());
  Extend();
  PassMs(500);
  EXPECT_EQ(server_->connections(), 2u);
  EXPECT_FALSE(HasEnded(put));
  if (HasFailure()) PassMs(3'000);  // the engine's destructor waits for it, too
}

// A PUT is unanswered, so nothing can be held. The session gives the primary up nevertheless.
TEST_F(PrimaryLeaseTest, APrimaryThatDoesNotExtendItsLeaseIsGivenUpThoughNothingCame) {
  server_->answers_heartbeats = false;
  const uint64_t put = BeginPut("key", "value", 30'000);
  Settle();
  clock_.now_ns = lease_end_ns_ - kPrimaryLeaseMs * kNsPerMs;
  PassMs(2 * kPrimaryLeaseMs);
  EXPECT_FALSE(HasEnded(put));
  EXPECT_GE(server_->connections(), 2u);
}

TEST_F(PrimaryLeaseTest, ABusySessionExtendsItInTimeAndAnIdleOneDoesNotAsk) {
  const uint32_t before = server_->heartbeats();
  const int64_t silence_ms = server_->grant().silence_ms;
  PassMs(silence_ms / 11);
  EXPECT_EQ(server_->heartbeats(), before);
  const uint64_t put = BeginPut("key", "value", 30'000);
  for (int i = 0; i < 10; ++i) {
    Extend();
    PassMs(kPrimaryLeaseMs / 3);
  }
  EXPECT_FALSE(HasEnded(put));
  EXPECT_GE(server_->heartbeats() - before, 6u);
  EXPECT_LE(server_->heartbeats() - before, 20u);
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_TRUE(session().ready());
}

}  // namespace
}  // namespace gannet
