#include "server/control/server_threads.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "common/rdma/loopback.h"
#include "gtest/gtest.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"

namespace gannet {
namespace {

// The server runs by itself, so this only waits.
class ThreadsDriver : public Driver {
 public:
  explicit ThreadsDriver(SocketAddress address) : address_(address) {}
  SocketAddress address() const override { return address_; }
  bool StepUntil(const std::function<bool()>& done) override {
    const int64_t deadline_ns = MonotonicNs() + kStepNsMax;
    while (!done()) {
      if (MonotonicNs() > deadline_ns) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  const SocketAddress address_;
};

// As kvserver's main does: unset, the C library changes its time zone's memory with each line that
// is logged, under a lock that ThreadSanitizer cannot see.
class TimeZone : public testing::Environment {
 public:
  void SetUp() override { setenv("TZ", ":/etc/localtime", /*overwrite=*/0); }
};
const auto* const kTimeZone = testing::AddGlobalTestEnvironment(new TimeZone);

std::unique_ptr<ServerThreads> Start(uint32_t workers, int64_t busy_poll_ns) {
  Server::Options options;
  options.device = TestDevice();
  options.listen = OwnAddress(TestDevice()).value();
  options.memory_bytes = 32 << 20;
  options.lock_words = 256;
  options.workers = workers;
  auto server = Server::Create(options);
  EXPECT_TRUE(server.ok()) << server.status();
  auto threads = ServerThreads::Start(*std::move(server), {.busy_poll_ns = busy_poll_ns});
  EXPECT_TRUE(threads.ok()) << threads.status();
  return *std::move(threads);
}

// Clients on threads of their own, each reading back what it wrote.
void Hammer(ServerThreads* threads, int clients, int operations) {
  std::vector<std::thread> running;
  std::atomic<int> done{0};
  for (int client = 0; client < clients; ++client) {
    running.emplace_back([&, client] {
      ThreadsDriver driver(threads->server().address());
      RawPeer peer(&driver);
      ASSERT_TRUE(peer.Connect());
      const std::string key = "key" + std::to_string(client);
      for (int i = 0; i < operations; ++i) {
        const std::string value = key + "=" + std::to_string(i);
        ASSERT_EQ(peer.Put(key, value), ReplyStatus::kOk);
        ASSERT_EQ(peer.Get(key), value);
      }
      ++done;
    });
  }
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(done, clients);
}

TEST(ServerThreadsTest, ServesFromSeveralWorkers) {
  auto threads = Start(2, 50'000);
  Hammer(threads.get(), 4, 200);
  threads->RequestStop();
  EXPECT_TRUE(threads->Wait().ok());
  EXPECT_EQ(threads->server().Stats(threads->now()).connections, 0u);
}

TEST(ServerThreadsTest, WakesFromSleepForEachRequest) {
  auto threads = Start(1, 0);
  Hammer(threads.get(), 2, 50);
}

TEST(ServerThreadsTest, StopsWithClientsConnected) {
  auto threads = Start(2, 0);
  ThreadsDriver driver(threads->server().address());
  RawPeer first(&driver);
  RawPeer second(&driver);
  ASSERT_TRUE(first.Connect());
  ASSERT_TRUE(second.Connect());
  threads->RequestStop();
  EXPECT_TRUE(threads->Wait().ok());
  EXPECT_TRUE(first.WaitBroken());
  EXPECT_TRUE(second.WaitBroken());
}

TEST(ServerThreadsTest, StopsWithNobodyThere) {
  auto threads = Start(3, 0);
  threads->RequestStop();
  EXPECT_TRUE(threads->Wait().ok());
}

}  // namespace
}  // namespace gannet
