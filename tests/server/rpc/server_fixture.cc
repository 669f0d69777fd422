#include "tests/server/rpc/server_fixture.h"

#include <algorithm>

#include "common/base/clocks.h"
#include "common/rdma/loopback.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {

void ServerTest::StartServer(const std::function<void(Server::Options*)>& change) {
  Server::Options options{.clocks = MachineClocks()};
  options.device = TestDevice();
  const auto own = OwnAddress(TestDevice());
  ASSERT_TRUE(own.ok()) << own.status();
  options.listen = *own;
  options.memory_bytes = 32 << 20;
  options.lock_words = 256;
  options.connections_max = 64;
  if (change) change(&options);
  auto server = Server::Create(options);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

void ServerTest::StopServer() {
  if (server_ == nullptr) return;
  server_->BeginStop();
  EXPECT_TRUE(StepUntil([this] {
    return std::all_of(server_->workers().begin(), server_->workers().end(),
                       [](const auto& worker) { return worker->closed(); });
  }));
  server_.reset();
}

Now ServerTest::now() const {
  Now now = started_;
  now.boot = now.boot + offset_ns_;
  now.server_time = now.server_time + static_cast<uint64_t>(offset_ns_ / kNsPerMs);
  return now;
}

void ServerTest::Step() {
  server_->Poll(now());
  for (const auto& worker : server_->workers()) worker->Poll(now());
}

void ServerTest::Pass(int64_t ns) {
  constexpr int64_t kPart = 100 * kNsPerMs;
  for (; ns > 0; ns -= kPart) {
    Advance(std::min(ns, kPart));
    Step();
  }
}

bool ServerTest::StepUntil(const std::function<bool()>& done) {
  const int64_t deadline_ns = MonotonicNs() + kStepNsMax;
  while (!done()) {
    if (MonotonicNs() > deadline_ns) return false;
    Step();
  }
  return true;
}

}  // namespace gannet
