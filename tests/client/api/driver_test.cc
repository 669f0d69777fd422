// Calls end by their deadlines, even if they spend some of the time waiting for room among the
// operations in flight.

#include "client/api/driver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/api/make_requests.h"
#include "common/rdma/listener.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

// A clock that goes on by a millisecond whenever it is read, so that waiting takes virtual time but
// little real time.
class WatchedClock : public ClientClock {
 public:
  // Only a count: relaxed.
  int64_t MonotonicNs() const override {
    return now_ns_.fetch_add(kNsPerMs, std::memory_order_relaxed);
  }

 private:
  mutable std::atomic<int64_t> now_ns_{kNsPerSecond};
};

// The server's port is open, but nobody answers.
class DriverTest : public ::testing::Test {
 protected:
  void MakeDriver(uint32_t depth) {
    const auto addresses = ResolveAll(TestListenAddress(), 0);
    ASSERT_TRUE(addresses.ok()) << addresses.status();
    listener_ = Listener::Create(addresses->front()).value();
    Engine::Settings settings{.endpoints = {listener_->address().ToString()}, .clock = clock_};
    settings.options.depth = depth;
    settings.options.connect_timeout = std::chrono::hours(24);
    auto engine = Engine::Create(std::move(settings));
    ASSERT_TRUE(engine.ok()) << engine.status();
    driver_ = std::make_unique<Driver>(*std::move(engine), WakeFd::Create().value(), Options());
  }
  OpRequest Request(OpType type, std::string_view key, int64_t timeout_ms) {
    OpRequest request = KeyRequest(type, key).value();
    request.timeout_ns = timeout_ms * kNsPerMs;
    return request;
  }

  WatchedClock clock_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Driver> driver_;
};

// The first ones end before the deadline, so others begin in their places. These have what is left.
TEST_F(DriverTest, ABatchOfMoreThanThereIsRoomForHasOneDeadline) {
  MakeDriver(16);
  std::vector<OpRequest> requests;
  for (int i = 0; i < 400; ++i) {
    requests.push_back(Request(OpType::kGet, "key", i < 16 ? 1000 : 2000));
  }
  std::vector<int> uses(requests.size());
  size_t begun_later = 0;
  const int64_t called_ns = clock_.MonotonicNs();
  driver_->Run(requests, [&](size_t i, const Op& op) {
    ++uses[i];
    EXPECT_EQ(op.outcome, Outcome::kUnavailable);
    EXPECT_TRUE(absl::IsUnavailable(driver_->MakeStatus(op)));
    // Two seconds, and what a busy machine adds; not three.
    EXPECT_LT(op.deadline_ns, called_ns + 5 * kNsPerSecond / 2);
    begun_later += i >= 16 && op.deadline_ns != 0 ? 1 : 0;
  });
  EXPECT_EQ(uses, std::vector<int>(requests.size(), 1));
  EXPECT_GT(begun_later, 0u);
  EXPECT_LT(clock_.MonotonicNs() - called_ns, 20 * kNsPerSecond) << "it is not 25 times two";
}

// What has not begun at the deadline ends there, and does not take turns in the few places first.
TEST_F(DriverTest, ManyMoreThanThereIsRoomForEndAtTheirDeadlineToo) {
  MakeDriver(16);
  const std::vector<OpRequest> requests(100'000, Request(OpType::kGet, "key", 1));
  size_t uses = 0;
  const int64_t called_ns = clock_.MonotonicNs();
  driver_->Run(requests,
               [&](size_t, const Op& op) { uses += op.outcome == Outcome::kUnavailable ? 1 : 0; });
  EXPECT_EQ(uses, requests.size());
  // Each look at the clock takes a millisecond. The keep-alive thread looks, too.
  EXPECT_LT(clock_.MonotonicNs() - called_ns, 5 * kNsPerSecond);
}

TEST_F(DriverTest, WaitingForRoomEndsAtTheCallsDeadline) {
  MakeDriver(1);
  int uses = 0;
  driver_->RunOne(Request(OpType::kPut, "put", 20), [&](const Op&) {
    // The room is taken until this returns.
    const int64_t called_ns = clock_.MonotonicNs();
    driver_->RunOne(Request(OpType::kGet, "get", 20), [&](const Op& op) {
      ++uses;
      EXPECT_EQ(op.outcome, Outcome::kUnavailable);
    });
    EXPECT_LT(clock_.MonotonicNs() - called_ns, 20 * kNsPerSecond)
        << "20 ms, if nobody is in the way";
  });
  EXPECT_EQ(uses, 1);
}

}  // namespace
}  // namespace gannet
