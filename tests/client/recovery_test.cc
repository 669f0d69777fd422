// Servers that die, stop or come back, connections that break, processes that fork.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>

#include "client/api/requests.h"
#include "client/engine/engine.h"
#include "tests/client/async_run.h"
#include "tests/integration/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Options PatientOptions() {
  Options options;
  options.connect_timeout = milliseconds(30'000);
  options.deadline = milliseconds(30'000);
  return options;
}

bool Eventually(const std::function<bool()>& condition) {
  const auto give_up = std::chrono::steady_clock::now() + kHang;
  while (std::chrono::steady_clock::now() < give_up) {
    if (condition()) return true;
  }
  return false;
}

// Polls until the request was surely sent: it is in flight, and the client polled after it began.
void PollOnce(AsyncClient& client) {
  Completion none;
  EXPECT_EQ(client.Poll({&none, 1}), 0u);
}

// Returns when the process does not run any more.
void Stop(ServerProcess& server) {
  server.process().Signal(SIGSTOP);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(server.process().pid()), &info, WSTOPPED), 0);
}

TEST(RecoveryTest, ADeadServerIsAnErrorWithinTheDeadline) {
  ServerProcess server;
  auto client = Client::Connect({server.endpoint()}, PatientOptions()).value();
  ASSERT_TRUE(client->Put("key", "value").ok());
  server.Kill();
  const milliseconds deadline(100);
  // Before the client noticed, what was sent may have been applied.
  ASSERT_TRUE(Eventually(
      [&] { return absl::IsUnavailable(client->Put("key", "2", {}, deadline).status()); }));
  EXPECT_TRUE(absl::IsUnavailable(client->Get("key", deadline).status()));
  EXPECT_TRUE(absl::IsUnavailable(client->Ping(deadline)));
  EXPECT_TRUE(absl::IsUnavailable(client->TryLock("key", deadline).status()));
  const absl::Status status = client->Ping(deadline);
  EXPECT_THAT(std::string(status.message()), HasSubstr(server.endpoint()));
}

TEST(RecoveryTest, ReconnectsToARestartedServerWhoseMemoryIsEmpty) {
  ServerProcess server;
  auto client = Client::Connect({server.endpoint()}, PatientOptions()).value();
  ASSERT_TRUE(client->Put("key", "value").ok());
  ASSERT_TRUE(client->Get("key").value().has_value());  // its location is remembered
  const uint64_t incarnation = client->Info()[0].incarnation;
  server.Kill();
  server.Restart();
  ASSERT_TRUE(Eventually([&] { return client->Ping().ok(); }));
  ASSERT_TRUE(Eventually([&] { return client->Info()[0].incarnation != incarnation; }));
  const auto value = client->Get("key");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_FALSE(value->has_value());
  ASSERT_TRUE(client->Put("key", "again").ok());
  EXPECT_EQ(client->Get("key").value()->data, "again");
}

TEST(RecoveryTest, WithoutReconnectEveryLaterCallIsUnavailableAtOnce) {
  ServerProcess server;
  Options options = PatientOptions();
  options.reconnect = false;
  auto client = Client::Connect({server.endpoint()}, options).value();
  server.Kill();
  ASSERT_TRUE(Eventually([&] { return absl::IsUnavailable(client->Ping()); }));
  server.Restart();
  EXPECT_TRUE(absl::IsUnavailable(client->Get("key").status()));
  EXPECT_TRUE(absl::IsUnavailable(client->Put("key", "value").status()));
}

TEST(RecoveryTest, AStoppedServerIsTooSlowThenDeadThenBack) {
  ServerProcess server;
  auto client = Client::Connect({server.endpoint()}, PatientOptions()).value();
  ASSERT_TRUE(client->Put("key", "value").ok());
  Stop(server);
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Put("key", "late", {}, milliseconds(1)).status()));
  const milliseconds deadline(100);
  EXPECT_TRUE(Eventually([&] { return absl::IsUnavailable(client->Ping(deadline)); }));
  server.process().Signal(SIGCONT);
  EXPECT_TRUE(Eventually([&] { return client->Ping(deadline).ok(); }));
  EXPECT_TRUE(client->Get("key").value().has_value());
}

TEST(RecoveryTest, AWriteInFlightToAServerThatDiesIsUnknown) {
  ServerProcess server;
  Options options = PatientOptions();
  auto client = AsyncClient::Connect({server.endpoint()}, options).value();
  Stop(server);
  ASSERT_TRUE(client->Put("key", "value", {}, 1).ok());
  PollOnce(*client);
  server.Kill();
  server.Restart();  // another incarnation: the answer will never come
  const std::vector<Completion> done = PollUntil(*client, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].code, absl::StatusCode::kUnknown);
  EXPECT_EQ(RunPut(*client, "key", "again").code, absl::StatusCode::kOk);
}

TEST(RecoveryTest, WhatChangesNothingGoesOnWithTheNewServer) {
  ServerProcess server;
  auto client = AsyncClient::Connect({server.endpoint()}, PatientOptions()).value();
  Stop(server);
  ASSERT_TRUE(client->Ping(0, 1).ok());
  PollOnce(*client);
  server.Kill();
  server.Restart();
  const std::vector<Completion> done = PollUntil(*client, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].code, absl::StatusCode::kOk);
}

// Drives an Engine itself, so that its connections can be broken at will.
class BrokenConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = ConnectEngine({.endpoints = {server_.endpoint()}, .options = PatientOptions()});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  uint32_t Begin(absl::StatusOr<OpRequest> request) {
    EXPECT_TRUE(request.ok()) << request.status();
    request->timeout_ns = 30 * kNsPerSecond;
    return engine_->Begin(*request);
  }
  void Poll() { engine_->Poll(MonotonicNs()); }
  void Break() { engine_->Break(0, absl::UnavailableError("broken by the test")); }
  // Polls until every one of `count` operations is over; releases them and returns their outcomes.
  std::vector<Outcome> Finish(size_t count) {
    std::vector<Outcome> outcomes;
    Eventually([&] {
      Poll();
      for (uint32_t i = engine_->NextFinished(); i != kNoOp; i = engine_->NextFinished()) {
        outcomes.push_back(engine_->op(i).outcome);
        word_ = engine_->op(i).word.word();
        engine_->Release(i);
      }
      return outcomes.size() >= count;
    });
    return outcomes;
  }
  Outcome Run(absl::StatusOr<OpRequest> request) {
    Begin(std::move(request));
    const std::vector<Outcome> outcomes = Finish(1);
    return outcomes.empty() ? Outcome::kServerBug : outcomes[0];
  }

  ServerProcess server_;
  std::unique_ptr<Engine> engine_;
  uint64_t word_ = 0;  // of the last operation
};

TEST_F(BrokenConnectionTest, WritesAreAppliedExactlyOnceOverBreaks) {
  constexpr int kRounds = 20, kWrites = 24;
  int resumed = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::string> keys;
    for (int i = 0; i < kWrites; ++i) {
      keys.push_back("once " + std::to_string(round) + " " + std::to_string(i));
    }
    for (const std::string& key : keys) {
      Begin(PutRequest(*engine_, key, "value", {.only_if_absent = true}));
    }
    for (int polls = 0; polls <= round; ++polls) Poll();
    resumed += !engine_->HasFinished();
    Break();
    const std::vector<Outcome> outcomes = Finish(kWrites);
    ASSERT_EQ(outcomes.size(), static_cast<size_t>(kWrites));
    // Applied twice, the second time it would be there already.
    for (const Outcome outcome : outcomes) EXPECT_EQ(outcome, Outcome::kOk);
  }
  EXPECT_GT(resumed, 0) << "no break hit writes in flight";
}

TEST_F(BrokenConnectionTest, LongValuesSurviveABreak) {
  const std::string value(300'000, 'v');
  Begin(PutRequest(*engine_, "long", value, {}));
  Poll();
  Break();
  EXPECT_EQ(Finish(1), std::vector<Outcome>{Outcome::kOk});
  EXPECT_EQ(Run(KeyRequest(*engine_, OpType::kGet, "long")), Outcome::kOk);
}

TEST_F(BrokenConnectionTest, GetsInFlightAreDoneAgain) {
  ASSERT_EQ(Run(PutRequest(*engine_, "key", "value", {})), Outcome::kOk);
  for (int i = 0; i < 10; ++i) Begin(KeyRequest(*engine_, OpType::kGet, "key"));
  Break();
  const std::vector<Outcome> outcomes = Finish(10);
  EXPECT_EQ(outcomes, std::vector<Outcome>(10, Outcome::kOk));
}

TEST_F(BrokenConnectionTest, LocksAreLost) {
  ASSERT_EQ(Run(KeyRequest(*engine_, OpType::kLock, "locked")), Outcome::kOk);
  const Lock lock{"locked", word_, 0};
  ASSERT_NE(lock.word, 0u);
  Break();
  EXPECT_EQ(Run(UnlockRequest(*engine_, lock)), Outcome::kLockLost);
  EXPECT_EQ(Run(PutRequest(*engine_, "locked", "x", {.only_if_version = 0, .lock = &lock})),
            Outcome::kLockLost);
  // Free for the next one, this client included, as soon as the server broke it.
  EXPECT_TRUE(Eventually([&] {
    const uint32_t i = Begin(KeyRequest(*engine_, OpType::kLock, "locked"));
    bool acquired = false;
    Eventually([&] {
      Poll();
      if (engine_->NextFinished() != i) return false;
      acquired = engine_->op(i).found;
      engine_->Release(i);
      return true;
    });
    return acquired;
  }));
}

TEST_F(BrokenConnectionTest, OperationsPastTheirDeadlineLeaveNothingBehind) {
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 20; ++i) {
      absl::StatusOr<OpRequest> request =
          i % 4 == 0   ? PutRequest(*engine_, "late", "value", {})
          : i % 4 == 1 ? KeyRequest(*engine_, OpType::kGet, "late")
          : i % 4 == 2 ? KeyRequest(*engine_, OpType::kLock, "late" + std::to_string(i))
                       : KeyRequest(*engine_, OpType::kLockAndGet, "late" + std::to_string(i));
      request->timeout_ns = 0;
      ASSERT_NE(engine_->Begin(*request), kNoOp);
    }
    ASSERT_EQ(Finish(20).size(), 20u);
  }
  EXPECT_EQ(engine_->alive(), 0u);
  // Every lock that was taken too late was given back.
  for (int i = 2; i < 20; i += i % 4 == 2 ? 1 : 3) {
    const std::string key = "late" + std::to_string(i);
    EXPECT_TRUE(Eventually([&] {
      const uint32_t op = Begin(KeyRequest(*engine_, OpType::kLock, key));
      bool acquired = false;
      Eventually([&] {
        Poll();
        if (engine_->NextFinished() != op) return false;
        acquired = engine_->op(op).found;
        engine_->Release(op);
        return true;
      });
      return acquired;
    })) << key;
  }
}

TEST(ForkTest, AChildMustConnectAnew) {
  ServerProcess server;
  auto client = Client::Connect({server.endpoint()}, PatientOptions()).value();
  auto async = AsyncClient::Connect({server.endpoint()}, PatientOptions()).value();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool right = absl::IsFailedPrecondition(client->Get("key").status()) &&
                 absl::IsFailedPrecondition(client->Put("key", "value").status()) &&
                 absl::IsFailedPrecondition(client->MultiGet({{"key"}}).status()) &&
                 absl::IsFailedPrecondition(client->Ping()) &&
                 absl::IsFailedPrecondition(client->AcquireLock("key").status()) &&
                 absl::IsFailedPrecondition(async->Get("key", {}, 1));
    client.reset();
    async.reset();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(client->Put("key", "value").ok());  // the parent's goes on
  EXPECT_EQ(client->Get("key").value()->data, "value");
}

}  // namespace
}  // namespace gannet
