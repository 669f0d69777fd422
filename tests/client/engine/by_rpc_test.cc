// Operations that go by RPC because they cannot go one-sided: GETs of items that may be expired, as
// far as the client knows the server's clock, and locks without a NIC's compare-and-swap.

#include <gtest/gtest.h>

#include <string>

#include "client/api/connect_engine.h"
#include "client/api/driver.h"
#include "common/base/client_clock.h"
#include "tests/client/engine/engine_run.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

class ByRpcTest : public ::testing::Test {
 protected:
  static Engine::Settings SettingsOf(const ServerProcess& server) {
    return {.endpoints = {server.endpoint()}, .clock = ClientClock::Real()};
  }

  ServerProcess server_;
};

TEST_F(ByRpcTest, TheServerDecidesWhatIsExpired) {
  EngineRun writer(SettingsOf(server_));
  Engine::Settings settings = SettingsOf(server_);
  settings.server_clocks = false;
  EngineRun reader(settings);
  // Values in the reply, in the buffer that the request names, and in a second, larger buffer.
  for (const size_t bytes : {0, 10, 4000, 5000, 300'000, 1 << 20}) {
    const std::string value(bytes, static_cast<char>('a' + bytes % 26));
    ASSERT_EQ(writer.Put("key", value, {.flags = 3, .ttl = std::chrono::minutes(10)}).outcome,
              Outcome::kOk);
    const OpResult got = reader.Get("key");
    EXPECT_EQ(got.outcome, Outcome::kOk) << bytes;
    EXPECT_TRUE(got.found);
    EXPECT_TRUE(got.value == value) << bytes;
    EXPECT_TRUE(got.cost.by_rpc);
    EXPECT_EQ(got.info.flags, 3u);
    EXPECT_EQ(got.info.version, writer.Get("key").info.version);
    EXPECT_EQ(got.info.value_bytes, bytes);
  }
}

// Not even one that would need a buffer.
TEST_F(ByRpcTest, WhoWantsNoValueGetsNone) {
  EngineRun writer(SettingsOf(server_));
  Engine::Settings settings = SettingsOf(server_);
  settings.server_clocks = false;
  EngineRun reader(settings);
  const std::string value(4050, 'v');
  const OpResult put = writer.Put("key", value, {.ttl = std::chrono::minutes(10)});
  const OpResult there = reader.Run(KeyRequest(OpType::kExists, "key"));
  EXPECT_TRUE(there.found);
  EXPECT_EQ(there.info.version, put.info.version);
  EXPECT_EQ(there.info.value_bytes, value.size());
  EXPECT_TRUE(there.value.empty());
  EXPECT_EQ(there.cost.sends, 1u);
  const OpResult same = reader.Run(IfChangedRequest("key", put.info.version));
  EXPECT_EQ(same.info.version, put.info.version);
  EXPECT_TRUE(same.value.empty());
  EXPECT_EQ(same.cost.sends, 1u);
  const OpResult changed = reader.Run(IfChangedRequest("key", put.info.version + 1));
  EXPECT_EQ(changed.value, value);
  EXPECT_EQ(changed.cost.sends, 2u);
}

TEST_F(ByRpcTest, ABatchOfMoreGetsThanThereAreReplyBuffersEnds) {
  EngineRun writer(SettingsOf(server_));
  Engine::Settings settings = SettingsOf(server_);
  settings.options.depth = 100;
  settings.server_clocks = false;
  Driver driver(ConnectEngine(settings).value(), WakeFd::Create().value(), settings.options);
  std::vector<OpRequest> requests(100, KeyRequest(OpType::kGet, "key").value());
  for (OpRequest& request : requests) request.timeout_ns = 30 * kNsPerSecond;
  for (const size_t bytes : {10, 5000}) {
    const std::string value(bytes, 'v');
    ASSERT_EQ(writer.Put("key", value, {.ttl = std::chrono::minutes(10)}).outcome, Outcome::kOk);
    std::vector<int> uses(requests.size());
    driver.Run(requests, [&](size_t i, const Op& op) {
      ++uses[i];
      EXPECT_EQ(op.outcome, Outcome::kOk);
      EXPECT_TRUE(op.done.cost.by_rpc);
      EXPECT_EQ(op.value, value);
    });
    EXPECT_EQ(uses, std::vector<int>(requests.size(), 1));
  }
}

// An asynchronous GET sets only the fields that a GET needs, so its slot's request may still name a
// PUT's value.
TEST_F(ByRpcTest, AGetInTheSlotOfAPutSendsNothingOfThatValue) {
  EngineRun writer(SettingsOf(server_));
  ASSERT_EQ(writer.Put("key", "right", {.ttl = std::chrono::minutes(10)}).outcome, Outcome::kOk);
  Engine::Settings settings = SettingsOf(server_);
  settings.options.depth = 1;
  settings.server_clocks = false;
  EngineRun run(settings);
  for (const size_t bytes : {1, 4000, 300'000}) {
    // The next operation takes the slot that became free last.
    ASSERT_EQ(run.Put("other", std::string(bytes, 'w')).outcome, Outcome::kOk);
    ASSERT_TRUE(run.engine().BeginGet("key", {}, 30 * kNsPerSecond, 0));
    const std::vector<OpResult> results = run.Finish(1);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_TRUE(results[0].cost.by_rpc);
    ASSERT_EQ(results[0].outcome, Outcome::kOk) << bytes;
    EXPECT_EQ(results[0].value, "right");
  }
}

TEST_F(ByRpcTest, AnItemThatIsExpiredForAllIsAMiss) {
  EngineRun run(SettingsOf(server_));
  ASSERT_EQ(run.Put("key", "value", {.ttl = std::chrono::milliseconds(1)}).outcome, Outcome::kOk);
  const auto give_up = std::chrono::steady_clock::now() + kHang;
  while (run.Get("key").found && std::chrono::steady_clock::now() < give_up) {
  }
  EXPECT_FALSE(run.Get("key").found);
}

TEST_F(ByRpcTest, LocksWithoutANicsCompareAndSwap) {
  Engine::Settings settings = SettingsOf(server_);
  settings.nic_locks = false;
  EngineRun one(settings), other(settings), by_nic(SettingsOf(server_));
  const OpResult locked = one.TryLock("key");
  ASSERT_EQ(locked.outcome, Outcome::kOk);
  ASSERT_TRUE(locked.found);
  EXPECT_EQ(locked.cost.cas, 0u);
  EXPECT_EQ(locked.cost.sends, 1u);
  const OpResult refused = other.TryLock("key");
  EXPECT_EQ(refused.outcome, Outcome::kOk);
  EXPECT_FALSE(refused.found);
  EXPECT_EQ(refused.word, locked.word);
  EXPECT_FALSE(by_nic.TryLock("key").found);  // it is the same word
  const Lock lock{"key", locked.word.word(), 0};
  EXPECT_EQ(one.Put("key", "1", {.only_if_version = 0, .lock = &lock}).outcome, Outcome::kOk);
  EXPECT_EQ(one.Unlock(lock).outcome, Outcome::kOk);
  EXPECT_EQ(one.Unlock(lock).outcome, Outcome::kLockLost);
  const OpResult read = other.LockAndGet("key");
  EXPECT_EQ(read.outcome, Outcome::kOk);
  EXPECT_TRUE(read.found);
  EXPECT_EQ(read.value, "1");
  EXPECT_EQ(other.Unlock({"key", read.word.word(), 0}).outcome, Outcome::kOk);
}

TEST_F(ByRpcTest, ALockByRpcThatComesTooLateIsGivenBack) {
  Engine::Settings settings = SettingsOf(server_);
  settings.nic_locks = false;
  EngineRun late(settings), other(settings);
  for (int i = 0; i < 20; ++i) {
    late.Begin(KeyRequest(i % 2 ? OpType::kLock : OpType::kLockAndGet, "key"), 0);
    EXPECT_EQ(late.Finish(1)[0].outcome, Outcome::kDeadlineExceeded);
  }
  const auto give_up = std::chrono::steady_clock::now() + kHang;
  bool acquired = false;
  while (!acquired && std::chrono::steady_clock::now() < give_up) {
    late.Poll();
    acquired = other.TryLock("key").found;
  }
  EXPECT_TRUE(acquired);
}

TEST_F(ByRpcTest, TheAnswerToALateUnlockIsNotTakenForAnotherOperations) {
  Engine::Settings settings = SettingsOf(server_);
  settings.nic_locks = false;
  EngineRun run(settings);
  for (int round = 0; round < 20; ++round) {
    const uint32_t i = run.Begin(KeyRequest(OpType::kLock, "key"), 0);
    EXPECT_EQ(run.Finish(1)[0].outcome, Outcome::kDeadlineExceeded);
    const Op& op = run.engine().op(i);
    ASSERT_TRUE(run.PollUntil([&] { return op.busy.releases_lock() && !op.busy.queued_request; }));
    // If the answer does not come in time, the unlock is sent again, and answered when the slot
    // belongs to the PUT.
    run.Break();
    ASSERT_TRUE(run.PollUntil([&] { return op.phase == Op::Phase::kFree; }));
    ASSERT_EQ(run.Begin(PutRequest("other", "value", {})), i);
    ASSERT_EQ(run.Finish(1)[0].outcome, Outcome::kOk) << round;
  }
}

// Runs a LockAndGet of "key" whose GET goes by RPC. It is past its deadline while that GET waits
// for a credit behind `puts` PUTs. Finish must not report anything else.
void LockAndLetTheDeadlinePass(EngineRun& run, uint32_t puts, EngineRun& other) {
  Engine& engine = run.engine();
  const int64_t now_ns = ClientClock::Real().MonotonicNs();
  const Op& op = engine.op(run.Begin(KeyRequest(OpType::kLockAndGet, "key"), kNsPerSecond));
  ASSERT_TRUE(run.PollUntil([&] { return op.has_lock() || op.over(); }, now_ns));
  for (uint32_t i = 0; i < puts; ++i) {
    run.Begin(PutRequest("put" + std::to_string(i), "value", {}));
  }
  ASSERT_TRUE(run.PollUntil([&] { return op.phase >= Op::Phase::kRequestQueued; }, now_ns));
  engine.Poll(now_ns + kNsPerSecond);
  for (int i = 0; i < 4; ++i) other.Put("any", "");  // most likely, `run` is answered meanwhile
  for (const OpResult& result : run.Finish(puts + 1)) {
    EXPECT_TRUE(result.outcome == Outcome::kOk || result.outcome == Outcome::kDeadlineExceeded);
    const bool locked = result.found && result.word.word() != 0;
    if (locked) run.Unlock({"key", result.word.word(), 0});
  }
  EXPECT_EQ(run.Run(ServerRequest(engine, OpType::kPing, 0)).outcome, Outcome::kOk);
  ASSERT_EQ(engine.alive(), 0u);
}

TEST_F(ByRpcTest, ALockIsGivenBackOnceWhenItsGetIsStillQueued) {
  EngineRun other(SettingsOf(server_));
  ASSERT_EQ(other.Put("key", "value", {.ttl = std::chrono::minutes(10)}).outcome, Outcome::kOk);
  Engine::Settings settings = SettingsOf(server_);
  settings.server_clocks = false;
  settings.options.depth = 256;
  for (const bool nic_locks : {false, true}) {
    SCOPED_TRACE(nic_locks);
    settings.nic_locks = nic_locks;
    EngineRun run(settings);
    // By RPC, the GET must be queued at the deadline. By the NIC, its turn must come just then.
    const uint32_t puts = run.engine().servers().session(0).grant().credits * (nic_locks ? 1 : 4);
    for (int round = 0; round < 30 && !HasFailure(); ++round) {
      LockAndLetTheDeadlinePass(run, puts, other);
    }
  }
}

TEST_F(ByRpcTest, WhatOnlyTheServerFindsInvalidIsNotTheCallersFaultAndIsLogged) {
  EngineRun run(SettingsOf(server_));
  absl::StatusOr<OpRequest> request = PutRequest("key", "value", {});
  ASSERT_TRUE(request.ok()) << request.status();
  request->only_if_absent = request->only_if_version = true;  // PutRequest would refuse it
  const OpResult refused = run.Run(request);
  EXPECT_EQ(refused.outcome, Outcome::kRefused);
  EXPECT_EQ(ToStatusCode(refused.outcome), absl::StatusCode::kInternal);
  EXPECT_NE(server_.process().Stderr().find("only-if-absent and only-if-version together"),
            std::string::npos);
}

TEST_F(ByRpcTest, ASessionThatTheServerForgotLeavesWritesUnknown) {
  ServerProcess forgetful({"--session_grace_ms=0"});
  EngineRun run(SettingsOf(forgetful));
  // A client that is back before the server saw it leave has its session still, so that its writes
  // are answered. On a busy machine that may go on for many rounds.
  constexpr int kRounds = 20, kRoundsMax = 2000, kWrites = 16;
  int unknown = 0, done = 0, round = 0;
  for (; round < kRounds || (unknown == 0 && round < kRoundsMax && !HasFailure()); ++round) {
    for (int i = 0; i < kWrites; ++i) {
      run.Begin(PutRequest("key" + std::to_string(i), "value", {}));
    }
    run.Begin(KeyRequest(OpType::kGet, "key0"));
    run.Begin(ServerRequest(run.engine(), OpType::kPing, 0));
    for (int polls = 0; polls <= round % 3; ++polls) run.Poll();
    run.Break();
    for (const OpResult& result : run.Finish(kWrites + 2)) {
      unknown += result.outcome == Outcome::kUnknown;
      done += result.outcome == Outcome::kOk;
    }
  }
  EXPECT_EQ(unknown + done, round * (kWrites + 2));
  EXPECT_GT(unknown, 0);
  EXPECT_EQ(run.Put("key", "after").outcome, Outcome::kOk);
}

}  // namespace
}  // namespace gannet
