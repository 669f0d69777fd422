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

#include "common/base/client_clock.h"
#include "tests/client/api/async_run.h"
#include "tests/client/api/patient_options.h"
#include "tests/client/engine/engine_run.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

bool Eventually(const std::function<bool()>& condition) {
  const auto give_up = std::chrono::steady_clock::now() + kHang;
  while (std::chrono::steady_clock::now() < give_up) {
    if (condition()) return true;
  }
  return false;
}

// Polls until the request was certainly sent: it is in flight, and the client polled after it
// began.
void PollOnce(AsyncClient& client) {
  Completion none;
  EXPECT_EQ(client.Poll({&none, 1}), 0u);
}

TEST(RecoveryTest, ADeadServerIsAnErrorWithinTheDeadline) {
  ServerProcess server;
  auto client = Client::Connect({server.endpoint()}, PatientOptions()).value();
  ASSERT_TRUE(client->Put("key", "value").ok());
  server.Kill();
  const milliseconds deadline(100);
  // Requests sent before the client noticed may have been applied.
  ASSERT_TRUE(Eventually(
      [&] { return absl::IsUnavailable(client->Put("key", "2", {}, deadline).status()); }));
  EXPECT_THAT(client->Put("key", "2", {}, deadline).status().message(),
              HasSubstr("not applied, try again"));
  const absl::Status get = client->Get("key", deadline).status();
  EXPECT_TRUE(absl::IsUnavailable(get));
  EXPECT_THAT(get.message(), HasSubstr("no answer, try again"));  // there is nothing to apply
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
  server.process().Stop();
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
  server.process().Stop();
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
  server.process().Stop();
  ASSERT_TRUE(client->Ping(0, 1).ok());
  PollOnce(*client);
  server.Kill();
  server.Restart();
  const std::vector<Completion> done = PollUntil(*client, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].code, absl::StatusCode::kOk);
}

// Drives an Engine directly, so that its connections can be broken at will.
class BrokenConnectionTest : public ::testing::Test {
 protected:
  // Returns whether the lock becomes free, because the server broke it or the client gave it back.
  bool LockBecomesFree(const std::string& key) {
    return Eventually([&] {
      run_.Poll();
      return other_.TryLock(key).found;
    });
  }

  ServerProcess server_;
  EngineRun run_{{.endpoints = {server_.endpoint()}, .clock = ClientClock::Real()}};
  EngineRun other_{{.endpoints = {server_.endpoint()}, .clock = ClientClock::Real()}};
};

TEST_F(BrokenConnectionTest, WritesAreAppliedExactlyOnceOverBreaks) {
  constexpr int kRounds = 20, kWrites = 24;
  int resumed = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kWrites; ++i) {
      const std::string key = "once " + std::to_string(round) + " " + std::to_string(i);
      run_.Begin(PutRequest(key, "value", {.only_if_absent = true}));
    }
    for (int polls = 0; polls <= round; ++polls) run_.Poll();
    resumed += !run_.engine().HasFinished();
    run_.Break();
    // If it were applied twice, the key would exist the second time.
    for (const OpResult& result : run_.Finish(kWrites)) EXPECT_EQ(result.outcome, Outcome::kOk);
  }
  EXPECT_GT(resumed, 0) << "no break hit writes in flight";
}

TEST_F(BrokenConnectionTest, LongValuesSurviveABreak) {
  const std::string value(300'000, 'v');
  run_.Begin(PutRequest("long", value, {}));
  run_.Poll();
  run_.Break();
  EXPECT_EQ(run_.Finish(1)[0].outcome, Outcome::kOk);
  EXPECT_TRUE(run_.Get("long").value == value);
}

TEST_F(BrokenConnectionTest, GetsInFlightAreDoneAgain) {
  ASSERT_EQ(run_.Put("key", "value").outcome, Outcome::kOk);
  for (int i = 0; i < 10; ++i) run_.Begin(KeyRequest(OpType::kGet, "key"));
  run_.Break();
  for (const OpResult& result : run_.Finish(10)) {
    EXPECT_EQ(result.outcome, Outcome::kOk);
    EXPECT_EQ(result.value, "value");
  }
}

TEST_F(BrokenConnectionTest, LocksAreLost) {
  const OpResult locked = run_.TryLock("locked");
  ASSERT_TRUE(locked.found);
  const Lock lock{"locked", locked.word.word(), 0};
  run_.Break();
  EXPECT_EQ(run_.Unlock(lock).outcome, Outcome::kLockLost);
  EXPECT_EQ(run_.Put("locked", "x", {.only_if_version = 0, .lock = &lock}).outcome,
            Outcome::kLockLost);
  EXPECT_TRUE(LockBecomesFree("locked"));
}

TEST_F(BrokenConnectionTest, OperationsPastTheirDeadlineLeaveNothingBehind) {
  constexpr int kEach = 20;
  const auto key = [](int i) { return "late" + std::to_string(i); };
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kEach; i += 4) {
      run_.Begin(PutRequest(key(i), "value", {}), 0);
      run_.Begin(KeyRequest(OpType::kGet, key(i)), 0);
      run_.Begin(KeyRequest(OpType::kLock, key(i + 2)), 0);
      run_.Begin(KeyRequest(OpType::kLockAndGet, key(i + 3)), 0);
    }
    ASSERT_EQ(run_.Finish(kEach).size(), static_cast<size_t>(kEach));
  }
  EXPECT_EQ(run_.engine().alive(), 0u);
  for (int i = 0; i < kEach; i += 4) {
    EXPECT_TRUE(LockBecomesFree(key(i + 2))) << i;
    EXPECT_TRUE(LockBecomesFree(key(i + 3))) << i;
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
                 absl::IsFailedPrecondition(client->MultiGet({{"key"}})[0].status()) &&
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
