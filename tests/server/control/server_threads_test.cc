#include "server/control/server_threads.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
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

std::unique_ptr<ServerThreads> Start(uint32_t workers, int64_t busy_poll_ns,
                                     const Supervisor* supervisor = nullptr,
                                     std::function<uint64_t()> random = {}) {
  Server::Options options;
  options.device = TestDevice();
  options.listen = OwnAddress(TestDevice()).value();
  options.memory_bytes = 32 << 20;
  options.lock_words = 256;
  options.workers = workers;
  options.random = std::move(random);
  auto server = Server::Create(options);
  EXPECT_TRUE(server.ok()) << server.status();
  auto threads = ServerThreads::Start(*std::move(server),
                                      {.busy_poll_ns = busy_poll_ns, .supervisor = supervisor});
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

// A supervisor to which the server of this process beats every 10 ms.
class Watcher {
 public:
  Watcher() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "@server_threads_test_" + std::to_string(getpid());
    std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
    // Much longer than a beat.
    const timeval quiet = {.tv_sec = 0, .tv_usec = 500'000};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof(quiet));
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    setenv("WATCHDOG_USEC", "20000", 1);
  }
  ~Watcher() {
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    close(fd_);
  }

  // Returns the next message, or nothing if none comes for as long as many beats.
  std::string Next() {
    char message[256];
    const ssize_t size = recv(fd_, message, sizeof(message), 0);
    return size < 0 ? "" : std::string(message, static_cast<size_t>(size));
  }
  bool FallsSilent() {
    for (int beats = 0; beats < 1000; ++beats) {
      if (Next().empty()) return true;
    }
    return false;
  }
  bool Hears(std::string_view message) {
    for (int tries = 0; tries < 100; ++tries) {
      if (Next() == message) return true;
    }
    return false;
  }

 private:
  const int fd_;
};

// Holds up a worker in the midst of its turn: where it draws the token of a new session.
class HoldUpWorker {
 public:
  uint64_t Random() {
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof(name));
    std::unique_lock lock(mutex_);
    if (std::string_view(name) == "kv-worker") {
      held_up_ = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return released_; });
    }
    return ++drawn_;
  }
  void WaitHeldUp() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return held_up_; });
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t drawn_ = 0;
  bool held_up_ = false;
  bool released_ = false;
};

TEST(ServerThreadsTest, IsNotCalledAliveWhileAWorkerHangs) {
  Watcher watcher;
  const Supervisor supervisor = Supervisor::FromEnvironment();
  HoldUpWorker hold_up;
  auto threads = Start(2, 0, &supervisor, [&hold_up] { return hold_up.Random(); });
  EXPECT_TRUE(watcher.Hears("WATCHDOG=1"));
  std::thread client([&threads] {
    ThreadsDriver driver(threads->server().address());
    RawPeer peer(&driver);
    peer.Connect();
  });
  hold_up.WaitHeldUp();
  EXPECT_TRUE(watcher.FallsSilent());
  hold_up.Release();
  EXPECT_TRUE(watcher.Hears("WATCHDOG=1"));
  client.join();
  threads->RequestStop();
  EXPECT_TRUE(threads->Wait().ok());
  EXPECT_TRUE(watcher.Hears("STOPPING=1"));
}

}  // namespace
}  // namespace gannet
