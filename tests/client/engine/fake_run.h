#ifndef GANNET_TESTS_CLIENT_ENGINE_FAKE_RUN_H_
#define GANNET_TESTS_CLIENT_ENGINE_FAKE_RUN_H_

#include <gtest/gtest.h>
#include <softverbs/control.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "client/api/make_requests.h"
#include "client/engine/engine.h"
#include "tests/client/engine/fake_server.h"
#include "tests/common/lookup/hand_made_region.h"

namespace gannet {

// An Engine and a FakeServer in one thread, on the simulated device. Time stands still except where
// the test lets it pass, and in between everything happens that can happen. So nothing depends on
// how fast the machine is.
class FakeRun : public ::testing::Test {
 protected:
  struct Ended {
    Outcome outcome;
    bool found;
    std::string value;
    ItemInfo info;
    LockWord word;
    OpCost cost;
    int64_t at_ns;
    uint64_t next_position;
  };

  FakeRun() { EXPECT_EQ(simulated_, 0); }

  // Connects to a running server. Returns when it is connected.
  void Connect(uint32_t depth, const std::function<void(Engine::Settings&)>& change = nullptr) {
    Engine::Settings settings{.endpoints = {server_->endpoint()}, .clock = clock_};
    settings.options.depth = depth;
    settings.options.device = std::string(kSoftverbsDeviceName);
    if (change) change(settings);
    auto engine = Engine::Create(std::move(settings));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    Settle();
    const std::optional<absl::Status> status = engine_->servers().StartStatus(/*last_call=*/true);
    ASSERT_TRUE(status.has_value() && status->ok()) << status.value_or(absl::OkStatus());
  }

  // Lets everything happen that needs no time to pass. The device's own time jumps when it has
  // nothing else to do, so everybody gets a turn after each of its steps.
  void Settle() {
    constexpr int kIdleRounds = 4, kRoundsMax = 100'000;
    int rounds = 0;
    for (int idle = 0; idle < kIdleRounds && ++rounds < kRoundsMax;) {
      idle = softverbs_step() == 0 ? idle + 1 : 0;
      server_->Step();
      StepOthers();
      if (engine_ != nullptr) PollOnce();
    }
    stood_still_ns_ = 0;
    EXPECT_LT(rounds, kRoundsMax) << "nobody ever rests";
  }
  // Steps the servers beside server_, if the test has any.
  virtual void StepOthers() {}
  void PollOnce() {
    engine_->Poll(clock_.now_ns - stood_still_ns_);
    for (uint32_t i = engine_->NextFinished(); i != kInvalidOp; i = engine_->NextFinished()) {
      const Op& op = engine_->op(i);
      EXPECT_FALSE(HasEnded(op.request.user_data)) << "it ends twice";
      ended_[op.request.user_data] = {.outcome = op.outcome,
                                      .found = op.done.found,
                                      .value = std::string(op.value),
                                      .info = op.done.info,
                                      .word = op.lock.word,
                                      .cost = op.done.cost,
                                      .at_ns = clock_.now_ns,
                                      .next_position = op.rpc.next_position};
      engine_->Release(i);
    }
  }
  void PassMs(int64_t ms, int64_t step_ms = 10) {
    for (int64_t passed = 0; passed < ms; passed += step_ms) {
      clock_.now_ns += step_ms * kNsPerMs;
      Settle();
    }
  }

  // Begins an operation. Returns its number in ended_, or 0 if there is no room. REQUIRES: a valid
  // request.
  uint64_t Begin(absl::StatusOr<OpRequest> request, int64_t timeout_ms = 1000) {
    EXPECT_TRUE(request.ok()) << request.status();
    request->timeout_ns = timeout_ms * kNsPerMs;
    request->user_data = ++begun_;
    return engine_->Begin(*request) == kInvalidOp ? 0 : begun_;
  }
  uint64_t BeginPut(const std::string& key, std::string_view value, int64_t timeout_ms = 1000) {
    return Begin(PutRequest(key, value, {}), timeout_ms);
  }
  uint64_t BeginKey(OpType type, const std::string& key, int64_t timeout_ms = 1000) {
    return Begin(KeyRequest(type, key), timeout_ms);
  }
  bool HasEnded(uint64_t op) const { return ended_.contains(op); }

  // Makes the server answer everything with success, without applying it.
  void AnswerEverything() {
    server_->answer = [](const FakeServer::Request& request) {
      return FakeServer::ReplyTo(request);
    };
  }

  const int simulated_ = softverbs_simulate(1);  // before anything uses the device
  TestClock clock_;
  // For so long the client stands still in the Polls of this Settle, which read the clock before.
  int64_t stood_still_ns_ = 0;
  std::unique_ptr<FakeServer> server_ = std::make_unique<FakeServer>();
  std::unique_ptr<Engine> engine_;
  std::map<uint64_t, Ended> ended_;
  uint64_t begun_ = 0;
};

}  // namespace gannet

#endif  // GANNET_TESTS_CLIENT_ENGINE_FAKE_RUN_H_
