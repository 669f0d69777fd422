#include "server/main/control/server_threads.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clocks.h"
#include "common/layout/slot.h"
#include "common/protocol/limits.h"
#include "common/protocol/touch.h"
#include "common/rdma/loopback.h"
#include "gtest/gtest.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/support/rest.h"

namespace gannet {
namespace {

// The server runs by itself, so this only waits.
class ThreadsDriver : public SteppedServer {
 public:
  explicit ThreadsDriver(SocketAddress address) : address_(address) {}
  SocketAddress address() const override { return address_; }
  bool StepUntil(const std::function<bool()>& done) override {
    const int64_t deadline_ns = MonotonicNs() + kStepNsMax;
    while (!done()) {
      if (MonotonicNs() > deadline_ns) return false;
      test_support::Rest();
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
                                     RandomSource* random = nullptr, const DiskOptions& disk = {},
                                     uint32_t item_lease_ms = 0) {
  Server::Options options{.clocks = MachineClocks()};
  options.device = TestDevice();
  options.listen = OwnAddress(TestDevice()).value();
  options.memory_bytes = 32 << 20;
  options.lock_words = 256;
  options.workers = workers;
  options.random = random;
  options.disk = disk;
  options.item_lease_ms = item_lease_ms;
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

// Clients answer from copies of a dead server's items, until the leases are over.
TEST(ServerThreadsTest, EndsAfterItsLeases) {
  auto threads = Start(1, 0, nullptr, nullptr, {}, kItemLeaseMsMax);
  const Server& server = threads->server();
  ThreadsDriver driver(server.address());
  RawPeer peer(&driver);
  ASSERT_TRUE(peer.Connect());
  RequestHeader put = peer.Header(Opcode::kPut);
  put.key_bytes = 3;
  put.value_bytes = 5;
  const ReplyHeader reply = peer.Call(put, "key", "value").value().header;
  const Touch touch = Touch::Of(Slot(reply.write.slot).offset(), 250);
  for (int i = 0; i < 4; ++i) {
    RequestHeader heartbeat{};
    heartbeat.value_bytes = sizeof(touch);
    peer.Call(heartbeat, "", {reinterpret_cast<const char*>(&touch), sizeof(touch)}).value();
  }
  const auto leased = [&] { return server.HasLeases(threads->now().server_time); };
  ASSERT_TRUE(driver.StepUntil(leased));
  threads->RequestStop();
  EXPECT_TRUE(threads->Wait().ok());
  EXPECT_FALSE(leased());
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

// While it lives, the process can make no file longer, as if each write to a disk failed.
class NoWrites {
 public:
  NoWrites() {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {.rlim_cur = 0, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  ~NoWrites() { setrlimit(RLIMIT_FSIZE, &before_); }
  NoWrites(const NoWrites&) = delete;
  NoWrites& operator=(const NoWrites&) = delete;

 private:
  rlimit before_{};
};

void SendPut(RawPeer* peer, std::string_view key, std::string_view value) {
  RequestHeader header = peer->Header(Opcode::kPut);
  header.key_bytes = static_cast<uint16_t>(key.size());
  header.value_bytes = static_cast<uint32_t>(value.size());
  ASSERT_TRUE(peer->Send(header, key, value));
}

TEST(ServerThreadsTest, AnswersNoWriteThatAFailingDiskDoesNotHave) {
  const test_support::TemporaryDirectory directory;
  auto threads =
      Start(2, 0, nullptr, nullptr, {.data = directory.path(), .sync = Journal::Sync::kAlways});
  ThreadsDriver driver(threads->server().address());
  RawPeer writer(&driver);
  RawPeer other(&driver);
  ASSERT_TRUE(writer.Connect());
  ASSERT_TRUE(other.Connect());
  ASSERT_EQ(writer.Put("key", "before"), ReplyStatus::kOk);
  {
    const NoWrites fails;
    SendPut(&writer, "key", "after!");
    ASSERT_TRUE(driver.StepUntil([&] { return threads->server().disk()->failed(); }));
    EXPECT_EQ(other.Put("other", "value"), ReplyStatus::kDiskRefuses);
    EXPECT_EQ(other.Get("key"), "before") << "what is not on disk was seen";
    EXPECT_EQ(writer.TryReceive(), std::nullopt);
  }
  threads->RequestStop();
  EXPECT_FALSE(threads->Wait().ok()) << "a clean stop, although the disk has not everything";
}

TEST(ServerThreadsTest, KeepsTheItemsOfARunThatWasStopped) {
  const test_support::TemporaryDirectory directory;
  const DiskOptions disk = {.data = directory.path(), .sync = Journal::Sync::kAlways};
  for (int run = 0; run < 2; ++run) {
    auto threads = Start(2, 50'000, nullptr, nullptr, disk);
    if (run > 0) {
      ThreadsDriver driver(threads->server().address());
      RawPeer peer(&driver);
      ASSERT_TRUE(peer.Connect());
      EXPECT_EQ(peer.Get("key0"), "key0=49");
      EXPECT_EQ(peer.Get("key3"), "key3=49");
    }
    Hammer(threads.get(), 4, 50);
    threads->RequestStop();
    EXPECT_TRUE(threads->Wait().ok());
  }
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
class HoldUpWorker final : public RandomSource {
 public:
  uint64_t Next() override {
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
  auto threads = Start(2, 0, &supervisor, &hold_up);
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
