#ifndef GANNET_TESTS_CLIENT_ENGINE_ENGINE_RUN_H_
#define GANNET_TESTS_CLIENT_ENGINE_ENGINE_RUN_H_

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/api/connect_engine.h"
#include "client/api/make_requests.h"
#include "client/engine/engine.h"
#include "common/base/client_clock.h"
#include "common/base/clock.h"
#include "tests/client/api/async_run.h"

namespace gannet {

// The result of an operation, kept after it was released.
struct OpResult {
  Outcome outcome = Outcome::kServerBug;
  bool found = false;
  std::string value;
  ItemInfo info;
  LockWord word;
  OpCost cost;
};

// Drives an Engine directly, for tests that the public API does not allow.
class EngineRun {
 public:
  explicit EngineRun(Engine::Settings settings) {
    settings.options.connect_timeout = std::chrono::milliseconds(30'000);
    auto engine = ConnectEngine(std::move(settings));
    EXPECT_TRUE(engine.ok()) << engine.status();
    if (engine.ok()) engine_ = *std::move(engine);
  }

  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  void Poll() { engine_->Poll(ClientClock::Real().MonotonicNs()); }
  void Break() { engine_->servers().Break(0, absl::UnavailableError("broken by the test")); }

  uint32_t Begin(absl::StatusOr<OpRequest> request, int64_t timeout_ns = 30 * kNsPerSecond) {
    EXPECT_TRUE(request.ok()) << request.status();
    if (!request.ok()) return kInvalidOp;
    request->timeout_ns = timeout_ns;
    return engine_->Begin(*request);
  }
  // Polls until done(), with the given time if there is one. Returns false if that hangs.
  template <class F>
  bool PollUntil(F done, std::optional<int64_t> now_ns = std::nullopt) {
    const auto give_up = std::chrono::steady_clock::now() + kHang;
    while (!done() && std::chrono::steady_clock::now() < give_up) {
      engine_->Poll(now_ns.value_or(MonotonicNs()));
    }
    return done();
  }
  // Polls until `count` operations are over, and releases them.
  std::vector<OpResult> Finish(size_t count) {
    std::vector<OpResult> results;
    const auto give_up = std::chrono::steady_clock::now() + kHang;
    while (results.size() < count && std::chrono::steady_clock::now() < give_up) {
      Poll();
      for (uint32_t i = engine_->NextFinished(); i != kInvalidOp; i = engine_->NextFinished()) {
        const Op& op = engine_->op(i);
        results.push_back({op.outcome, op.done.found, std::string(op.value), op.done.info,
                           op.lock.word, op.done.cost});
        engine_->Release(i);
      }
    }
    EXPECT_EQ(results.size(), count) << "an operation hangs";
    return results;
  }
  OpResult Run(absl::StatusOr<OpRequest> request) {
    Begin(std::move(request));
    const std::vector<OpResult> results = Finish(1);
    return results.empty() ? OpResult{} : results[0];
  }

  OpResult Get(std::string_view key) { return Run(KeyRequest(OpType::kGet, key)); }
  OpResult Put(std::string_view key, std::string_view value, const PutOptions& options = {}) {
    return Run(PutRequest(key, value, options));
  }
  OpResult TryLock(std::string_view key) { return Run(KeyRequest(OpType::kLock, key)); }
  OpResult LockAndGet(std::string_view key) { return Run(KeyRequest(OpType::kLockAndGet, key)); }
  OpResult Unlock(const Lock& lock) { return Run(UnlockRequest(lock)); }

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_CLIENT_ENGINE_ENGINE_RUN_H_
