#ifndef GANNET_TESTS_SERVER_RPC_SERVER_FIXTURE_H_
#define GANNET_TESTS_SERVER_RPC_SERVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/boot_time.h"
#include "common/base/clocks.h"
#include "server/main/control/server.h"

namespace gannet {

// Nothing in these tests takes so long, however slow the machine is. Only a hang does.
inline constexpr int64_t kStepNsMax = 20'000'000'000;
// Of servers in a group.
inline constexpr uint64_t kHistory = 0x1112131415161718;
inline constexpr BootTime kLeaseNow =
    BootTime::FromNs(5'000'000'000'000);  // not the time of any Poll

// How a test waits while its server works.
class SteppedServer {
 public:
  virtual ~SteppedServer() = default;
  virtual SocketAddress address() const = 0;
  // Waits until `done`. Returns false if that takes longer than anything may.
  virtual bool StepUntil(const std::function<bool()>& done) = 0;
};

// A server on the test's device, stepped by the test's own thread, on a clock that stands still
// until the test sets it forward. So timeouts are tested without waiting for them, and a machine
// that stalls makes nobody seem dead.
class ServerTest : public testing::Test, public SteppedServer {
 protected:
  void TearDown() override { StopServer(); }

  // Starts a server with small memory, on any port, unless `change` says otherwise.
  void StartServer(const std::function<void(Server::Options*)>& change = nullptr);
  void StopServer();

 public:
  Now now() const;
  // Passes time at once: the server stands still meanwhile.
  void Advance(int64_t ns) { offset_ns_ += ns; }
  // Passes time in tenths of a second, with a Step after each: the server runs meanwhile.
  void Pass(int64_t ns);
  // Polls everything once.
  virtual void Step();
  SocketAddress address() const override { return server_->address(); }
  bool StepUntil(const std::function<bool()>& done) override;

  Server& server() { return *server_; }
  StatsReply stats() { return server_->Stats(now()); }

 private:
  std::unique_ptr<Server> server_;
  const Now started_ = ServerClock::Start(MachineClocks()).Read();
  int64_t offset_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_RPC_SERVER_FIXTURE_H_
