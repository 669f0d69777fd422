// A client that connects while its server prepares its memory. Both are in this process, so that
// the test decides when the memory is ready.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/base/clocks.h"
#include "common/rdma/loopback.h"
#include "server/main/control/server_threads.h"
#include "tests/client/api/patient_options.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StartingServerTest : public ::testing::Test {
 protected:
  StartingServerTest()
      : address_(Listener::Create(OwnAddress(TestDevice()).value()).value()->address()),
        starting_([this] { Start(); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return touching_; });  // it listens
  }
  ~StartingServerTest() override {
    Release();
    starting_.join();
  }

  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  std::string endpoint() const { return address_.ToString(); }

 private:
  void Start() {
    Server::Options options{.clocks = MachineClocks()};
    options.device = TestDevice();
    options.listen = address_;
    options.memory_bytes = 32 << 20;
    options.lock_words = 256;
    options.answer_while_starting = true;
    options.touch = [this](std::span<std::byte>) {
      std::unique_lock lock(mutex_);
      touching_ = true;
      changed_.notify_all();
      changed_.wait(lock, [&] { return released_; });
      return 0;
    };
    auto server = Server::Create(options);
    ASSERT_TRUE(server.ok()) << server.status();
    auto threads = ServerThreads::Start(*std::move(server), {.busy_poll_ns = 0});
    ASSERT_TRUE(threads.ok()) << threads.status();
    threads_ = *std::move(threads);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool touching_ = false;
  bool released_ = false;
  const SocketAddress address_;
  std::unique_ptr<ServerThreads> threads_;
  std::thread starting_;
};

TEST_F(StartingServerTest, AClientWaitsForIt) {
  std::atomic<int> refused = 0;
  Options options = PatientOptions();
  options.log = [&](LogLevel, std::string_view line) {
    if (line.find("is starting: 0 % of its memory is ready") == std::string_view::npos) return;
    ++refused;
    Release();
  };
  auto client = Client::Connect({endpoint()}, options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_GT(refused, 0);
  EXPECT_TRUE((*client)->Ping().ok());
}

// `reconnect` only concerns connections that broke.
TEST_F(StartingServerTest, AClientWaitsForItWithoutReconnectToo) {
  Options options = PatientOptions();
  options.reconnect = false;
  options.log = [&](LogLevel, std::string_view) { Release(); };
  auto client = Client::Connect({endpoint()}, options);
  ASSERT_TRUE(client.ok()) << client.status();
}

TEST_F(StartingServerTest, TheTimeoutSaysSo) {
  const std::string why = endpoint() + " is starting: 0 % of its memory is ready";
  std::string said;
  // On a busy machine a short timeout may be over before the server was asked.
  for (const int seconds : {1, 5, 30}) {
    Options options;
    options.connect_timeout = std::chrono::seconds(seconds);
    const absl::Status status = Client::Connect({endpoint()}, options).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    said = std::string(status.message());
    if (said.find(why) != std::string::npos) break;
  }
  EXPECT_THAT(said, HasSubstr(why));
}

}  // namespace
}  // namespace gannet
