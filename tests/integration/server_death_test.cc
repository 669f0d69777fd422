#include <gannet/client.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kDeadline{500};
// A call may be late because the machine is busy, but not because of a hang.
constexpr seconds kLateMax = test_support::kStepTimeout;

struct Call {
  const char* name;
  bool writes;  // may end as Unknown
  std::function<absl::Status(Client&)> run;
};

std::vector<Call> AllCalls() {
  return {
      {"Get", false, [](Client& c) { return c.Get("key", kDeadline).status(); }},
      {"MultiGet", false,
       [](Client& c) {
         const std::vector<std::string> keys = {"key", "other"};
         return c.MultiGet(keys, kDeadline)[0].status();
       }},
      {"MultiExists", false,
       [](Client& c) {
         const std::vector<std::string> keys = {"key", "other"};
         return c.MultiExists(keys, kDeadline)[0].status();
       }},
      {"MultiDelete", true,
       [](Client& c) {
         const std::vector<std::string> keys = {"gone", "too"};
         return c.MultiDelete(keys, kDeadline)[1].status();
       }},
      {"GetIfChanged", false,
       [](Client& c) { return c.GetIfChanged("key", 1, kDeadline).status(); }},
      {"Put", true, [](Client& c) { return c.Put("key", "value", {}, kDeadline).status(); }},
      {"PutLarge", true,
       [](Client& c) { return c.Put("large", std::string(1 << 20, 'x'), {}, kDeadline).status(); }},
      {"Delete", true, [](Client& c) { return c.Delete("gone", {}, kDeadline).status(); }},
      {"AcquireLock", false, [](Client& c) { return c.AcquireLock("locked", kDeadline).status(); }},
      {"TryLock", false, [](Client& c) { return c.TryLock("tried", kDeadline).status(); }},
      {"LockAndGet", false, [](Client& c) { return c.LockAndGet("both", kDeadline).status(); }},
      {"Stats", false, [](Client& c) { return c.Stats(kDeadline)[0].stats.status(); }},
      {"Ping", false, [](Client& c) { return c.Ping(kDeadline); }},
  };
}

void ExpectClearError(const Call& call, const absl::Status& status) {
  EXPECT_FALSE(status.message().empty()) << call.name;
  const absl::StatusCode code = status.code();
  const bool clear = code == absl::StatusCode::kUnavailable ||
                     code == absl::StatusCode::kDeadlineExceeded ||
                     (call.writes && code == absl::StatusCode::kUnknown);
  EXPECT_TRUE(clear) << call.name << ": " << status;
}

class ServerDeathTest : public ::testing::Test {
 protected:
  std::unique_ptr<Client> Connect() {
    auto client = Client::Connect({server_.endpoint()}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  ServerProcess server_;
};

TEST_F(ServerDeathTest, EveryCallAfterKillEndsWithAClearErrorWithinItsDeadline) {
  const std::unique_ptr<Client> client = Connect();
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(client->Put("key", "value").ok());
  server_.Kill();
  for (const Call& call : AllCalls()) {
    const Clock::time_point start = Clock::now();
    absl::Status status = call.run(*client);
    EXPECT_LE(Clock::now() - start, kDeadline + kLateMax) << call.name;
    ExpectClearError(call, status);
  }
}

TEST_F(ServerDeathTest, EveryCallInFlightAtTheKillEndsWithAClearErrorWithinItsDeadline) {
  const std::vector<Call> calls = AllCalls();
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < calls.size(); ++i) {
    clients.push_back(Connect());
    ASSERT_NE(clients.back(), nullptr);
    ASSERT_TRUE(clients.back()->Put("key", "value").ok());
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < calls.size(); ++i) {
    threads.emplace_back([&call = calls[i], client = clients[i].get()] {
      const Clock::time_point give_up = Clock::now() + test_support::kStepTimeout;
      absl::Status status;
      Clock::time_point start;
      do {
        start = Clock::now();
        status = call.run(*client);
        // Locks are taken once and then held by this client itself.
        if (status.code() == absl::StatusCode::kFailedPrecondition) status = absl::OkStatus();
      } while (status.ok() && start < give_up);
      EXPECT_LE(Clock::now() - start, kDeadline + kLateMax) << call.name;
      ExpectClearError(call, status);
    });
  }
  server_.Kill();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ServerDeathTest, StoppedServerIsAnErrorWithinTheDeadline) {
  const std::unique_ptr<Client> client = Connect();
  ASSERT_NE(client, nullptr);
  server_.process().Stop();
  for (const Call& call : AllCalls()) {
    if (std::string_view(call.name).find("Get") != std::string_view::npos) continue;  // one-sided
    const Clock::time_point start = Clock::now();
    const absl::Status status = call.run(*client);
    EXPECT_LE(Clock::now() - start, kDeadline + kLateMax) << call.name;
    // Locks are one-sided too: they may still be had.
    if (!status.ok()) ExpectClearError(call, status);
  }
  const absl::Status ping = client->Ping(kDeadline);
  EXPECT_FALSE(ping.ok());
  server_.process().Signal(SIGCONT);
}

TEST_F(ServerDeathTest, ClientReconnectsByItselfToARestartedServer) {
  const std::unique_ptr<Client> client = Connect();
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(client->Put("key", "value").ok());
  const uint64_t incarnation = client->Info().at(0).incarnation;
  server_.Kill();
  EXPECT_FALSE(client->Ping(kDeadline).ok());
  server_.Restart();
  absl::Status status;
  const Clock::time_point give_up = Clock::now() + test_support::kStepTimeout;
  do {
    status = client->Put("key", "again", {}, kDeadline).status();
  } while (!status.ok() && Clock::now() < give_up);
  EXPECT_TRUE(status.ok()) << status;
  const auto value = client->Get("key");
  ASSERT_TRUE(value.ok() && value->has_value()) << value.status();
  EXPECT_EQ((*value)->data, "again");
  EXPECT_NE(client->Info().at(0).incarnation, incarnation);
}

TEST_F(ServerDeathTest, ConnectingToNobodyIsAnErrorThatNamesTheAddress) {
  const std::string endpoint = server_.endpoint();
  server_.Kill();
  Options options;
  options.connect_timeout = kDeadline;
  const auto client = Client::Connect({endpoint}, options);
  ASSERT_FALSE(client.ok());
  EXPECT_NE(client.status().message().find(endpoint), absl::string_view::npos) << client.status();
}

}  // namespace
}  // namespace gannet
