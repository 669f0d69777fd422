// Leases of locks, the list of locks, and breaking one: what the client asks, and how it treats the
// answers.

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>

#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;

class LeaseTest : public FakeRun, public ::testing::WithParamInterface<LockMode> {
 protected:
  void SetUp() override {
    server_->grant().lock_mode = static_cast<uint8_t>(GetParam());
    Connect(8);
  }
  void AnswerWith(ReplyStatus status) {
    server_->answer = [status](const FakeServer::Request& request) {
      return FakeServer::ReplyTo(request, status);
    };
  }
  Ended Run(absl::StatusOr<OpRequest> request, int64_t timeout_ms = 1000) {
    const uint64_t op = Begin(std::move(request), timeout_ms);
    Settle();
    EXPECT_TRUE(HasEnded(op));
    return ended_[op];
  }
  Ended TryLock(milliseconds lease) {
    return Run(LockRequest(OpType::kLock, "key", {.lease = lease}));
  }
};

TEST_P(LeaseTest, IsTakenWithTheLockByTheServer) {
  AnswerEverything();
  const Ended locked = TryLock(milliseconds(1234));
  EXPECT_TRUE(locked.found);
  ASSERT_EQ(server_->requests().size(), 1u);
  EXPECT_EQ(server_->requests()[0].opcode(), Opcode::kLock);
  EXPECT_EQ(server_->requests()[0].header.lock.lease_ms, 1234u);
  EXPECT_EQ(server_->requests()[0].header.lock.lock_word, locked.word.word());
}

TEST_P(LeaseTest, NoLockIsHandedOutThatTheServerDidNotAcknowledge) {
  const uint64_t op = Begin(LockRequest(OpType::kLock, "key", {.lease = milliseconds(9)}));
  Settle();
  EXPECT_FALSE(HasEnded(op));
  PassMs(1000);
  ASSERT_TRUE(HasEnded(op));
  EXPECT_FALSE(ended_[op].found);
  // The server granted it after all, so the client gives it back.
  const FakeServer::Request request = server_->requests()[0];
  const uint64_t index = KeyHash::Of("key", engine_->servers().session(0).grant().hash_seed)
                             .LockIndex(engine_->servers().session(0).grant().lock_words);
  server_->set_lock_word(index, request.header.lock.lock_word);
  AnswerEverything();
  server_->AnswerNow(request, ReplyStatus::kOk);
  Settle();
  const bool by_nic = server_->lock_word(index) == 0;
  EXPECT_EQ(by_nic, GetParam() == LockMode::kNicCas);
  EXPECT_EQ(server_->Count(Opcode::kUnlock), by_nic ? 0u : 1u);
}

// The answer to a lock is so late that its lease is over, and that another call has taken the lock
// since. The client must still be able to use and to release what that call took.
TEST_P(LeaseTest, AnAnswerAfterTheLeaseHidesNoLaterAcquisition) {
  const uint64_t leased = Begin(LockRequest(OpType::kLock, "key", {.lease = milliseconds(1)}));
  Settle();
  ASSERT_EQ(server_->requests().size(), 1u);
  const FakeServer::Request late = server_->requests()[0];
  AnswerEverything();
  const Ended later = Run(KeyRequest(OpType::kLock, "key"));
  ASSERT_TRUE(later.found);
  server_->AnswerNow(late, ReplyStatus::kOk);
  Settle();
  ASSERT_TRUE(HasEnded(leased));
  const Lock lock{"key", later.word.word(), 0};
  EXPECT_EQ(Run(ExtendRequest(lock, milliseconds(800))).outcome, Outcome::kOk);
  EXPECT_EQ(Run(UnlockRequest(lock)).outcome, Outcome::kOk);
  const Grant& grant = engine_->servers().session(0).grant();
  EXPECT_EQ(server_->lock_word(KeyHash::Of("key", grant.hash_seed).LockIndex(grant.lock_words)),
            0u);
  EXPECT_EQ(server_->Count(Opcode::kUnlock), GetParam() == LockMode::kNicCas ? 0u : 1u);
}

TEST_P(LeaseTest, ExtendingSaysWhetherTheLockIsHeldStill) {
  AnswerEverything();
  const Lock lock{"key", TryLock(milliseconds(500)).word.word(), 0};
  EXPECT_EQ(Run(ExtendRequest(lock, milliseconds(800))).outcome, Outcome::kOk);
  EXPECT_EQ(server_->requests().back().opcode(), Opcode::kExtendLock);
  EXPECT_EQ(server_->requests().back().header.lock.lease_ms, 800u);
  EXPECT_EQ(server_->requests().back().header.lock.lock_word, lock.word);
  AnswerWith(ReplyStatus::kLockLost);
  EXPECT_EQ(Run(ExtendRequest(lock, milliseconds(800))).outcome, Outcome::kLockLost);
  // The client knows it now, and does not ask again.
  const size_t asked = server_->requests().size();
  EXPECT_EQ(Run(ExtendRequest(lock, milliseconds(800))).outcome, Outcome::kLockLost);
  EXPECT_EQ(server_->requests().size(), asked);
}

TEST_P(LeaseTest, ExtendingALockOfALostConnectionIsRefused) {
  AnswerEverything();
  const Lock lock{"key", TryLock(milliseconds(500)).word.word(), 0};
  server_->answer = nullptr;
  const uint64_t extend = Begin(ExtendRequest(lock, milliseconds(800)));
  Settle();
  AnswerEverything();
  engine_->servers().Break(0, absl::UnavailableError("by the test"));
  PassMs(100);
  ASSERT_TRUE(HasEnded(extend));
  EXPECT_EQ(ended_[extend].outcome, Outcome::kLockLost);
}

TEST_P(LeaseTest, TooShortOrTooLongIsInvalid) {
  const Lock lock{"key", 1, 0};
  for (const int64_t ms : {int64_t{0}, int64_t{-1}, static_cast<int64_t>(kTtlMsMax) + 1}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        LockRequest(OpType::kLock, "key", {.lease = milliseconds(ms)}).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(ExtendRequest(lock, milliseconds(ms)).status()));
  }
}

TEST_P(LeaseTest, BreakingSaysWhetherSomebodyHeldIt) {
  AnswerEverything();
  EXPECT_TRUE(Run(KeyRequest(OpType::kBreakLock, "key")).found);
  EXPECT_EQ(server_->requests().back().opcode(), Opcode::kUnlock);
  EXPECT_EQ(server_->requests().back().header.flags, kForce);
  AnswerWith(ReplyStatus::kNotFound);
  const Ended nobody = Run(KeyRequest(OpType::kBreakLock, "key"));
  EXPECT_EQ(nobody.outcome, Outcome::kOk);
  EXPECT_FALSE(nobody.found);
}

TEST_P(LeaseTest, ListsAWholePage) {
  constexpr uint32_t kEntries = 60;
  std::string page;
  for (uint32_t i = 0; i < kEntries; ++i) {
    LockEntry entry{.lock_word = i + 1, .index = i, .session_id = 7, .lease_ms = 10 * i};
    std::memset(entry.peer, 'x', sizeof(entry.peer));  // without a NUL
    page.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  }
  server_->answer = [](const FakeServer::Request& request) {
    ReplyHeader reply = FakeServer::ReplyTo(request);
    reply.list.next = 99;
    return reply;
  };
  server_->set_value(page);
  absl::StatusOr<OpRequest> request = ServerRequest(*engine_, OpType::kListLocks, 0);
  ASSERT_TRUE(request.ok());
  request->position = 17;
  const Ended listed = Run(request);
  EXPECT_EQ(server_->requests().back().header.list.position, 17u);
  EXPECT_EQ(listed.next_position, 99u);
  EXPECT_EQ(listed.value, page);
}

INSTANTIATE_TEST_SUITE_P(Modes, LeaseTest,
                         ::testing::Values(LockMode::kNicCas, LockMode::kRpcServer));

}  // namespace
}  // namespace gannet
