// Clients of several servers, some of which are down, come late, or have names.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/client_clock.h"
#include "tests/client/api/patient_options.h"
#include "tests/client/engine/engine_run.h"
#include "tests/common/rdma/test_device.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kKeys = 60;  // every server has some of them

std::string Key(int i) { return "key" + std::to_string(i); }

std::vector<std::string> AllKeys() {
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back(Key(i));
  return keys;
}

// With these options, a call that waited for a server that is down would hang the test.
Options EndlessOptions() {
  Options options = PatientOptions();
  options.deadline = std::chrono::hours(24);
  return options;
}

std::unique_ptr<Client> ConnectTo(std::vector<std::string> endpoints,
                                  const Options& options = EndlessOptions()) {
  auto client = Client::Connect(std::move(endpoints), options);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

absl::Status ConnectError(std::vector<std::string> endpoints) {
  return Client::Connect(std::move(endpoints), PatientOptions()).status();
}

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

template <class F>
bool Eventually(F done) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
  }
  return true;
}

// Puts all keys. Returns how many could be put; every other one must be Unavailable because of
// `down`.
int PutAll(Client& client, const std::string& value, const std::string& down = "") {
  int put = 0;
  for (int i = 0; i < kKeys; ++i) {
    const auto version = client.Put(Key(i), value);
    put += version.ok();
    if (version.ok()) continue;
    EXPECT_TRUE(absl::IsUnavailable(version.status())) << version.status();
    EXPECT_THAT(TextOf(version.status()), HasSubstr(down));
  }
  return put;
}

// A server that is gone; nobody uses its port now.
class AbsentServer {
 public:
  explicit AbsentServer(std::vector<std::string> flags = {}) : server_(std::move(flags)) {
    server_.Kill();
  }
  const std::string& endpoint() const { return server_.endpoint(); }
  void Come() { server_.Restart(); }

 private:
  ServerProcess server_;
};

TEST(ServersTest, AClientStartsWhileAServerIsDownAndTakesItInWhenItComes) {
  ServerProcess first, second;
  AbsentServer late;
  auto client = ConnectTo({first.endpoint(), late.endpoint(), second.endpoint()});
  ASSERT_NE(client, nullptr);
  const std::vector<ServerInfo> infos = client->Info();
  EXPECT_TRUE(infos[0].connected && infos[2].connected);
  EXPECT_FALSE(infos[1].connected);
  EXPECT_THAT(infos[1].why_not, HasSubstr(late.endpoint()));

  const int put = PutAll(*client, "1", late.endpoint());
  EXPECT_GT(put, 0);
  EXPECT_LT(put, kKeys);
  EXPECT_TRUE(absl::IsUnavailable(client->Ping()));

  late.Come();
  ASSERT_TRUE(Eventually([&] { return client->Ping().ok(); }));
  EXPECT_EQ(PutAll(*client, "2"), kKeys);
  EXPECT_TRUE(client->Info()[1].connected);
}

TEST(ServersTest, AnswersComePerKeyAndPerServerWhenOneDies) {
  ServerProcess first, second;
  auto client = ConnectTo({first.endpoint(), second.endpoint()});
  ASSERT_NE(client, nullptr);
  ASSERT_EQ(PutAll(*client, "value"), kKeys);
  second.Kill();
  ASSERT_TRUE(Eventually([&] { return !client->Info()[1].connected; }));

  int found = 0;
  for (const auto& value : client->MultiGet(AllKeys())) {
    found += value.ok();
    if (value.ok()) {
      EXPECT_EQ((*value)->data, "value");
    } else {
      EXPECT_TRUE(absl::IsUnavailable(value.status())) << value.status();
      EXPECT_THAT(TextOf(value.status()), HasSubstr(second.endpoint()));
    }
  }
  EXPECT_GT(found, 0);
  EXPECT_LT(found, kKeys);

  const std::vector<ServerReport> reports = client->Stats();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].endpoint, second.endpoint());
  ASSERT_TRUE(reports[0].stats.ok()) << reports[0].stats.status();
  EXPECT_EQ(reports[0].stats->items, static_cast<uint64_t>(found));
  EXPECT_TRUE(absl::IsUnavailable(reports[1].stats.status()));
  const std::vector<ServerPing> pings = client->PingEach();
  ASSERT_EQ(pings.size(), 2u);
  EXPECT_TRUE(pings[0].status.ok()) << pings[0].status;
  EXPECT_TRUE(absl::IsUnavailable(pings[1].status));
}

TEST(ServersTest, WithoutReconnectAServerThatIsDownIsNotTriedAgain) {
  ServerProcess first;
  AbsentServer absent;
  Options options = EndlessOptions();
  options.reconnect = false;
  auto client = ConnectTo({first.endpoint(), absent.endpoint()}, options);
  ASSERT_NE(client, nullptr);
  absent.Come();
  const int put = PutAll(*client, "1", absent.endpoint());
  EXPECT_GT(put, 0);
  EXPECT_LT(put, kKeys);
}

TEST(ServersTest, WithNobodyThereTheErrorNamesEachEndpoint) {
  AbsentServer first, second;
  const absl::Status status = ConnectError({first.endpoint(), second.endpoint()});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(TextOf(status), AllOf(HasSubstr(first.endpoint()), HasSubstr(second.endpoint())));
}

TEST(ServersTest, AServerThatDoesNotAnswerIsNamedWithTheCause) {
  ServerProcess server;
  server.process().Stop();
  Options options;
  options.connect_timeout = milliseconds(200);
  const absl::Status status = Client::Connect({server.endpoint()}, options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  // The attempt may have begun after the call, and then is not over when the call's time is.
  EXPECT_THAT(TextOf(status), AllOf(HasSubstr(server.endpoint()),
                                    AnyOf(HasSubstr("no answer in time"),
                                          HasSubstr("no answer within the connect timeout"))));
}

TEST(ServersTest, HowAnAddressIsWrittenDoesNotMatter) {
  if (TestDevice().kind != DeviceKind::kSoftverbs) {
    GTEST_SKIP() << "RDMA devices are not reached under localhost";
  }
  ServerProcess first, second;
  const auto renamed = [](const std::string& endpoint) {
    return "localhost" + endpoint.substr(endpoint.rfind(':'));
  };
  auto by_address = ConnectTo({first.endpoint(), second.endpoint()});
  auto by_name = ConnectTo({renamed(second.endpoint()), renamed(first.endpoint())});
  ASSERT_TRUE(by_address != nullptr && by_name != nullptr);
  ASSERT_EQ(PutAll(*by_address, "value"), kKeys);
  for (const auto& value : by_name->MultiGet(AllKeys())) {
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_TRUE(value->has_value());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ConnectError({first.endpoint(), renamed(first.endpoint())})));
}

TEST(ServersTest, AServerTellsItsName) {
  ServerProcess server({"--name=cache-1"});
  auto client = ConnectTo({"cache-1@" + server.endpoint()});
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->Info()[0].name, "cache-1");
  EXPECT_EQ(client->Stats()[0].name, "cache-1");
  ServerProcess unnamed;
  EXPECT_EQ(ConnectTo({unnamed.endpoint()})->Info()[0].name, unnamed.endpoint());
}

TEST(ServersTest, AWrongNameFailsAtOnceAndSaysBoth) {
  ServerProcess server({"--name=cache-1"}), other;
  const absl::Status status = ConnectError({other.endpoint(), "cache-2@" + server.endpoint()});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(TextOf(status), HasSubstr("calls itself cache-1, not cache-2"));
}

// Refuses every server, whatever its name is.
class RefusingOwner : public SessionOwner {
 public:
  absl::Status OnNamed(uint32_t, std::string_view) override {
    return absl::FailedPreconditionError("not this one");
  }
  void OnDoorbell(uint32_t) override {}
  void OnWorksDone(uint32_t, std::span<const InFlightWork::Work>, bool) override {}
  void OnReply(RequestWindow::Entry*, const ReplyView&) override {}
  void OnReady(uint32_t, Comeback, std::span<const uint32_t>) override {
    ADD_FAILURE() << "it was refused";
  }
  void OnLost(uint32_t) override {}
};

// The server listens on one of its host's addresses. The error of that one counts, not that nobody
// listens on the others.
TEST(ServersTest, TheAddressThatAnsweredSaysWhyItFailed) {
  ServerProcess server;
  AbsentServer absent;
  const SocketAddress here = Resolve(server.endpoint(), 0).value();
  const SocketAddress nobody = Resolve(absent.endpoint(), 0).value();
  for (const std::vector<SocketAddress>& addresses :
       {std::vector{here, nobody}, std::vector{nobody, here}}) {
    RefusingOwner owner;
    ClientSession session({.endpoint = "a host",
                           .addresses = addresses,
                           .device = "auto",
                           .ops = 4,
                           .connect_timeout_ns = 30 * kNsPerSecond,
                           .clock = ClientClock::Real()},
                          &owner);
    ASSERT_TRUE(Eventually([&] {
      session.Poll(ClientClock::Real().MonotonicNs());
      return session.attempts().unreachable();
    }));
    EXPECT_EQ(TextOf(session.attempts().status()), "not this one");
  }
}

TEST(ServersTest, TwoServersOfOneNameAreRefused) {
  ServerProcess first({"--name=same"}), second({"--name=same"});
  const absl::Status status = ConnectError({first.endpoint(), second.endpoint()});
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(TextOf(status), AllOf(HasSubstr(first.endpoint()), HasSubstr(second.endpoint())));
}

TEST(ServersTest, BesideNamedServersOneThatIsDownNeedsItsNameWritten) {
  ServerProcess named({"--name=here"});
  AbsentServer absent({"--name=there"});
  const absl::Status status = ConnectError({named.endpoint(), absent.endpoint()});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(TextOf(status), HasSubstr("write NAME@" + absent.endpoint()));

  auto client = ConnectTo({named.endpoint(), "there@" + absent.endpoint()});
  ASSERT_NE(client, nullptr);
  const int put = PutAll(*client, "1", absent.endpoint());
  EXPECT_GT(put, 0);
  EXPECT_LT(put, kKeys);
}

TEST(ServersTest, AServerThatComesWithANameMovesKeysAndTheLogSaysSo) {
  ServerProcess first;
  AbsentServer port;
  std::mutex mutex;
  std::string log;
  Options options = EndlessOptions();
  options.log = [&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    log.append(line).append("\n");
  };
  auto client = ConnectTo({first.endpoint(), port.endpoint()}, options);
  ASSERT_NE(client, nullptr);
  std::optional<Lock> lock;
  for (int i = 0; i < kKeys && !lock.has_value(); ++i) {
    const auto got = client->TryLock(Key(i));
    if (got.ok()) lock = *got;
  }
  ASSERT_TRUE(lock.has_value());

  ServerProcess second({"--listen=" + port.endpoint(), "--name=late"});
  ASSERT_TRUE(Eventually([&] { return client->Info()[1].name == "late" && client->Ping().ok(); }));
  {
    const std::lock_guard guard(mutex);
    EXPECT_THAT(log, HasSubstr(port.endpoint() + " is called late, not as assumed"));
  }
  // Nobody knows where the key of a lock went, so all locks were given up.
  EXPECT_TRUE(absl::IsAborted(client->Unlock(*lock)));
  ASSERT_EQ(PutAll(*client, "value"), kKeys);
  auto fresh = ConnectTo({"late@" + second.endpoint(), first.endpoint()});
  ASSERT_NE(fresh, nullptr);
  for (const auto& value : fresh->MultiGet(AllKeys())) {
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_TRUE(value->has_value());
  }
}

TEST(ServersTest, ACallWhoseServerNobodyKnowsIsUnavailableWithTheReason) {
  ServerProcess first;
  AbsentServer second, third;
  auto client = ConnectTo({first.endpoint(), second.endpoint(), third.endpoint()});
  ASSERT_NE(client, nullptr);
  ServerProcess named({"--listen=" + second.endpoint(), "--name=second"});
  ASSERT_TRUE(Eventually([&] { return client->Info()[1].connected; }));
  const std::string advice = "write NAME@" + third.endpoint();
  EXPECT_EQ(PutAll(*client, "1", advice), 0);
  for (const auto& value : client->MultiGet(AllKeys())) {
    EXPECT_TRUE(absl::IsUnavailable(value.status()));
    EXPECT_THAT(TextOf(value.status()), HasSubstr(advice));
  }
  EXPECT_TRUE(client->Stats()[0].stats.ok()) << "what has no key needs no routing";
}

constexpr int64_t kNever = int64_t{24} * 3600 * kNsPerSecond;

TEST(ServersTest, WhatWaitsForAServerEndsWhenThatCannotBeReached) {
  ServerProcess server;
  EngineRun run({.endpoints = {server.endpoint()}, .clock = ClientClock::Real()});
  server.process().Stop();
  const uint32_t put = run.Begin(PutRequest("put", "value", {}), kNever);
  run.Poll();  // sent
  server.Kill();
  const uint32_t get = run.Begin(KeyRequest(OpType::kGet, "get"), kNever);
  const auto over = [&] { return run.engine().op(put).over() && run.engine().op(get).over(); };
  ASSERT_TRUE(run.PollUntil(over));
  EXPECT_EQ(run.engine().op(put).outcome, Outcome::kUnknown);
  EXPECT_EQ(run.engine().op(get).outcome, Outcome::kUnavailable);
  run.Finish(2);
  const uint32_t later = run.Begin(PutRequest("later", "value", {}), kNever);
  run.Poll();
  EXPECT_TRUE(run.engine().op(later).over()) << "not only when the next attempt has failed";
  EXPECT_EQ(run.engine().op(later).outcome, Outcome::kUnavailable);
}

// The server comes back with another name. Operations whose keys belong to another server now must
// not be executed there.
TEST(ServersTest, WhatWaitedForAServerIsNotDoneAtTheWrongOne) {
  ServerProcess first, second;
  EngineRun run({.endpoints = {first.endpoint(), second.endpoint()}, .clock = ClientClock::Real()});
  std::vector<uint32_t> ops;
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) {
    if (run.engine().servers().ServerOf(Key(i)) != 1) continue;
    keys.push_back(Key(i));
    ops.push_back(run.Begin(KeyRequest(OpType::kGet, Key(i)), kNever));
  }
  run.engine().servers().Break(1, absl::UnavailableError("broken by the test"));
  second.Kill();
  ServerProcess renamed({"--listen=" + second.endpoint(), "--name=late"});
  ASSERT_TRUE(run.PollUntil([&] {
    return std::ranges::all_of(ops, [&](uint32_t op) { return run.engine().op(op).over(); });
  }));
  int moved = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool stays = run.engine().servers().ServerOf(keys[i]) == 1;
    moved += !stays;
    EXPECT_EQ(run.engine().op(ops[i]).outcome, stays ? Outcome::kOk : Outcome::kUnavailable);
  }
  EXPECT_GT(moved, 0);
  EXPECT_LT(moved, static_cast<int>(ops.size()));
}

// Operations that still wait for a credit.
TEST(ServersTest, WhatIsQueuedForAServerIsNotSentToTheWrongOne) {
  ServerProcess first, second;
  EngineRun run({.endpoints = {first.endpoint(), second.endpoint()}, .clock = ClientClock::Real()});
  first.process().Stop();
  std::vector<uint32_t> queued;
  std::vector<std::string> keys;
  for (int i = 0; queued.size() < 32; ++i) {
    if (run.engine().servers().ServerOf(Key(i)) != 0) continue;
    const uint32_t op = run.Begin(PutRequest(Key(i), "value", {}), kNever);
    keys.push_back(Key(i));
    if (keys.size() > kCreditsDefault) queued.push_back(op);
  }
  run.Poll();
  run.engine().servers().Break(1, absl::UnavailableError("broken by the test"));
  second.Kill();
  ServerProcess renamed({"--listen=" + second.endpoint(), "--name=late"});
  ASSERT_TRUE(run.PollUntil([&] { return run.engine().servers().session(1).ready(); }));
  int moved = 0;
  for (size_t i = 0; i < queued.size(); ++i) {
    const Op& op = run.engine().op(queued[i]);
    if (run.engine().servers().ServerOf(keys[kCreditsDefault + i]) == 0) {
      EXPECT_EQ(op.phase, Op::Phase::kRequestQueued);
    } else {
      ++moved;
      EXPECT_TRUE(op.over());
      EXPECT_EQ(op.outcome, Outcome::kUnavailable);
    }
  }
  EXPECT_GT(moved, 0);
}

uint64_t ServerSetOf(const EngineRun& run, uint32_t server) {
  RequestHeader heartbeat;
  std::memcpy(&heartbeat, run.engine().servers().session(server).memory().heartbeat(),
              sizeof(heartbeat));
  return heartbeat.heartbeat.server_set;
}

TEST(ServersTest, HeartbeatsTellTheListOfServers) {
  ServerProcess first({"--name=first"}), second;
  const EngineRun run(
      {.endpoints = {first.endpoint(), second.endpoint()}, .clock = ClientClock::Real()});
  const EngineRun turned({.endpoints = {second.endpoint(), "first@" + first.endpoint()},
                          .clock = ClientClock::Real()});
  const EngineRun alone({.endpoints = {first.endpoint()}, .clock = ClientClock::Real()});
  const uint64_t set = ServerSetOf(run, 0);
  EXPECT_NE(set, 0u);
  EXPECT_EQ(ServerSetOf(run, 1), set);
  EXPECT_EQ(ServerSetOf(turned, 0), set);
  EXPECT_EQ(ServerSetOf(turned, 1), set);
  EXPECT_NE(ServerSetOf(alone, 0), 0u);
  EXPECT_NE(ServerSetOf(alone, 0), set);
}

}  // namespace
}  // namespace gannet
