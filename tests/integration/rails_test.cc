// A server and clients with two devices: READs by both rails, and what is left if one of them is
// lost. ctest sets SOFTVERBS_DEVICES=2. The server's ports go down by files (softverbs/NETWORK.md).

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/support/environment_variable.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr seconds kPatient{30};
// A rail that is back carries its share within this time.
constexpr seconds kBackWithin{5};
constexpr uint32_t kMegabyte = 1 << 20;

// A folder whose files take the server's ports down.
class PortFolder {
 public:
  PortFolder() : path_(std::filesystem::path(testing::TempDir()) / Name()) {
    std::filesystem::create_directory(path_);
  }
  ~PortFolder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }
  void TakeDown(int device) const { std::ofstream(File(device)) << ""; }
  void BringUp(int device) const { std::filesystem::remove(File(device)); }

 private:
  static std::string Name() { return absl::StrCat("ports-", getpid()); }
  std::filesystem::path File(int device) const { return path_ / absl::StrCat(device, ".down"); }

  const std::filesystem::path path_;
};

// The addresses of two hosts, the server's and the clients', if ctest names them.
struct Hosts {
  std::string servers, clients;
};
std::optional<Hosts> OtherHosts() {
  const char* const named = std::getenv("GANNET_TEST_HOSTS");
  if (named == nullptr) return std::nullopt;
  const std::pair<std::string, std::string> both = absl::StrSplit(named, '/');
  return Hosts{both.first, both.second};
}

std::unique_ptr<ServerProcess> StartServer(const PortFolder& ports) {
  const test_support::EnvironmentVariable folder("SOFTVERBS_PORTS", ports.path());
  std::optional<test_support::EnvironmentVariable> net;
  std::string listen = "127.0.0.1:0,127.0.1.1:0";
  if (const auto hosts = OtherHosts()) {
    net.emplace("SOFTVERBS_NET", hosts->servers);
    listen = absl::StrCat(absl::StrReplaceAll(hosts->servers, {{",", ":0,"}}), ":0");
  }
  return std::make_unique<ServerProcess>(
      std::vector<std::string>{"--listen=" + listen, "--on_full=evict"});
}

class RailsTest : public ::testing::Test {
 protected:
  RailsTest() {
    if (const auto hosts = OtherHosts()) net_.emplace("SOFTVERBS_NET", hosts->clients);
  }
  std::unique_ptr<Client> Connect(Options options = {}) const {
    options.deadline = kPatient;
    auto client = Client::Connect({server_->endpoint()}, options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  static void GetAll(Client& client, int keys, size_t bytes) {
    for (int i = 0; i < keys; ++i) {
      const auto value = client.Get(absl::StrCat("key", i));
      ASSERT_TRUE(value.ok()) << value.status();
      ASSERT_TRUE(value->has_value());
      ASSERT_EQ((*value)->data, ValueOf(i, bytes));
    }
  }
  static std::string ValueOf(int i, size_t bytes) {
    std::string value(bytes, static_cast<char>('a' + i % 26));
    for (size_t at = 0; at < bytes; at += 4096) value[at] = static_cast<char>(at / 4096 + i);
    return value;
  }
  static void PutAll(Client& client, int keys, size_t bytes) {
    for (int i = 0; i < keys; ++i) {
      const auto put = client.Put(absl::StrCat("key", i), ValueOf(i, bytes));
      ASSERT_TRUE(put.ok()) << put.status();
    }
  }
  // Returns the least share of a rail of the works that `use` posts.
  template <class Use>
  static double LeastShare(Client& client, Use use) {
    const auto before = client.Info()[0].rails;
    use();
    const auto after = client.Info()[0].rails;
    if (before.size() != 2 || after.size() != 2) return 0;
    const double first = static_cast<double>(after[0].works - before[0].works);
    const double second = static_cast<double>(after[1].works - before[1].works);
    return std::min(first, second) / std::max(first + second, 1.0);
  }
  static bool UsesBoth(Client& client) {
    const auto rails = client.Info()[0].rails;
    return rails.size() == 2 && rails[0].connected && rails[1].connected;
  }
  // GETs until both rails are connected, or until it took too long.
  static void AwaitBoth(Client& client) {
    const auto until = Clock::now() + kBackWithin;
    while (!UsesBoth(client) && Clock::now() < until) (void)client.Ping();
    EXPECT_TRUE(UsesBoth(client));
  }

  PortFolder ports_;
  std::unique_ptr<ServerProcess> server_ = StartServer(ports_);
  // Of this process, behind the server's.
  std::optional<test_support::EnvironmentVariable> net_;
};

TEST_F(RailsTest, ReadsAreSpreadOverBothRails) {
  const auto client = Connect();
  PutAll(*client, 50, 100);
  AwaitBoth(*client);
  EXPECT_GE(LeastShare(*client,
                       [&] {
                         for (int i = 0; i < 20; ++i) GetAll(*client, 50, 100);
                       }),
            0.45);
}

TEST_F(RailsTest, LongValuesAreReadInStripes) {
  const auto client = Connect();
  PutAll(*client, 3, 4 * kMegabyte + 5);
  AwaitBoth(*client);
  EXPECT_GE(LeastShare(*client, [&] { GetAll(*client, 3, 4 * kMegabyte + 5); }), 0.3);
}

TEST_F(RailsTest, AClientMayUseOne) {
  Options options;
  options.rails = 1;
  const auto client = Connect(options);
  PutAll(*client, 5, 100);
  GetAll(*client, 5, 100);
  EXPECT_TRUE(client->Info()[0].rails.empty());
}

TEST_F(RailsTest, AnotherRailThatIsLostCostsNoAnswerAndNoLock) {
  const auto client = Connect();
  PutAll(*client, 20, 100);
  PutAll(*client, 1, 2 * kMegabyte);
  AwaitBoth(*client);
  auto lock = client->AcquireLock("locked");
  ASSERT_TRUE(lock.ok()) << lock.status();
  ports_.TakeDown(1);
  milliseconds longest{};
  const auto until = Clock::now() + seconds(2);
  while (Clock::now() < until) {
    const auto began = Clock::now();
    GetAll(*client, 1, 2 * kMegabyte);
    ASSERT_TRUE(client->Get("key7").ok());
    longest = std::max(longest, std::chrono::duration_cast<milliseconds>(Clock::now() - began));
  }
  EXPECT_FALSE(UsesBoth(*client));
  EXPECT_TRUE(client->Unlock(*lock).ok()) << "the lock rail lives";
  ports_.BringUp(1);
  AwaitBoth(*client);
  PutAll(*client, 20, 100);
  EXPECT_GE(LeastShare(*client,
                       [&] {
                         for (int i = 0; i < 20; ++i) GetAll(*client, 20, 100);
                       }),
            0.45);
  RecordProperty("longest_ms", static_cast<int>(longest.count()));
}

// Calls use(thread) on so many threads.
template <class Use>
void OnThreads(int threads, Use use) {
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) all.emplace_back(use, thread);
  for (std::thread& it : all) it.join();
}

TEST_F(RailsTest, LongValuesArePutByBothRails) {
  const auto client = Connect();
  AwaitBoth(*client);
  constexpr int kThreads = 4;
  const auto put_all = [&] {
    OnThreads(kThreads, [&](int thread) {
      for (int i = 0; i < 10; ++i) {
        const int key = thread * 100 + i;
        const auto put = client->Put(absl::StrCat("key", key), ValueOf(key, kMegabyte));
        EXPECT_TRUE(put.ok()) << put.status();
      }
    });
  };
  // Which rail is the least loaded shows only while several are under way, so threads that wait for
  // a core may spoil a round.
  double share = 0;
  for (int round = 0; round < 20 && share < 0.3; ++round) share = LeastShare(*client, put_all);
  EXPECT_GE(share, 0.3);
  for (int thread = 0; thread < kThreads; ++thread) {
    const int key = thread * 100 + 9;
    const auto value = client->Get(absl::StrCat("key", key));
    ASSERT_TRUE(value.ok() && value->has_value());
    EXPECT_EQ((*value)->data, ValueOf(key, kMegabyte));
  }
}

// Each rail goes down in turn, the first connection's, too.
TEST_F(RailsTest, WritesAreDoneOnceWhicheverRailIsLost) {
  const auto client = Connect();
  AwaitBoth(*client);
  constexpr int kThreads = 4;
  for (const int rail : {1, 0, 1}) {
    std::atomic<bool> down{false}, over{false};
    std::array<int64_t, kThreads> counts{};
    std::thread cutter([&] {
      while (!down) std::this_thread::yield();
      ports_.TakeDown(rail);
      std::this_thread::sleep_for(seconds(1));
      over = true;
    });
    OnThreads(kThreads, [&](int thread) {
      const std::string counter = absl::StrCat("counter", rail, "-", thread);
      const int64_t before = client->Incr(counter, 0).value_or(-1);
      while (!over) {
        const auto put = client->Put(absl::StrCat("key", thread), ValueOf(thread, kMegabyte));
        EXPECT_TRUE(put.ok()) << put.status();
        const absl::StatusOr<int64_t> now = client->Incr(counter, 1);
        ASSERT_TRUE(now.ok()) << now.status();
        ASSERT_EQ(*now, before + ++counts[thread]) << "an increment was done twice, or not";
        down = true;
      }
    });
    cutter.join();
    EXPECT_GT(*std::ranges::min_element(counts), 0);
    ports_.BringUp(rail);
    AwaitBoth(*client);
  }
}

// The dead rail is found to be so only when its queue pair gives up. A request that has it is given
// up before that, and then others are executed.
TEST_F(RailsTest, WhatADeadRailKeepsHoldsUpNobodyAfterItsDeadline) {
  bool seen = false;
  for (int tried = 0; tried < 10 && !seen; ++tried) {
    Options options;
    options.deadline = milliseconds(100);
    auto connected = Client::Connect({server_->endpoint()}, options);
    ASSERT_TRUE(connected.ok()) << connected.status();
    Client& client = **connected;
    AwaitBoth(client);
    ports_.TakeDown(1);
    std::atomic<int> failed{0};
    OnThreads(2, [&](int thread) {
      failed += !client.Put(absl::StrCat("key", thread), ValueOf(thread, kMegabyte)).ok();
    });
    const bool done = client.Put("small", "value").ok();
    seen = failed > 0 && done && UsesBoth(client);
    ports_.BringUp(1);
  }
  EXPECT_TRUE(seen);
}

TEST_F(RailsTest, IfTheFirstRailIsLostWritesAreDoneOnceAndLocksAreLost) {
  const auto client = Connect();
  AwaitBoth(*client);
  auto lock = client->AcquireLock("locked");
  ASSERT_TRUE(lock.ok()) << lock.status();
  int64_t count = 0;
  ports_.TakeDown(0);
  const auto until = Clock::now() + seconds(2);
  while (Clock::now() < until) {
    const absl::StatusOr<int64_t> now = client->Incr("counter", 1);
    ASSERT_TRUE(now.ok()) << now.status();
    ASSERT_EQ(*now, ++count) << "an increment was done twice, or not";
  }
  EXPECT_FALSE(client->Unlock(*lock).ok()) << "its connection is gone";
  PutAll(*client, 2, 2 * kMegabyte);
  GetAll(*client, 2, 2 * kMegabyte);
  ports_.BringUp(0);
  AwaitBoth(*client);
  const auto again = client->AcquireLock("locked");
  EXPECT_TRUE(again.ok()) << again.status();
}

// The client's first connection is of the second rail, so it locks by requests.
class LocksOfAnotherRailTest : public RailsTest {
 protected:
  // What READY says: " rail=ADDRESS/DEVICE".
  std::unique_ptr<Client> ConnectToSecond(Options options = {.deadline = kPatient}) const {
    const std::string& line = server_->ready_line();
    const size_t begin = line.find(" rail=") + sizeof(" rail=") - 1;
    auto client = Client::Connect({line.substr(begin, line.find('/', begin) - begin)}, options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
};

TEST_F(LocksOfAnotherRailTest, OutliveItsLinkAndAreReleased) {
  const auto client = ConnectToSecond(), other = Connect();
  AwaitBoth(*client);
  const auto put = client->Put("written", "old");
  ASSERT_TRUE(put.ok()) << put.status();
  const auto written = client->AcquireLock("written");
  const auto extended = client->AcquireLock("extended", {}, {.lease = seconds(20)});
  const auto released = client->AcquireLock("released");
  ASSERT_TRUE(written.ok() && extended.ok() && released.ok());
  ports_.TakeDown(1);
  const auto until = Clock::now() + seconds(2);
  while (Clock::now() < until) ASSERT_TRUE(client->Incr("counter", 1).ok());
  EXPECT_FALSE(UsesBoth(*client));
  for (const char* key : {"written", "extended", "released"}) {
    const auto taken = other->TryLock(key);
    EXPECT_TRUE(taken.ok() && !taken->has_value()) << key;
  }
  EXPECT_TRUE(client->Extend(*extended, seconds(20)).ok());
  EXPECT_TRUE(client->Unlock(*released).ok());
  const auto taken = other->TryLock("released");
  EXPECT_TRUE(taken.ok() && taken->has_value());
  EXPECT_TRUE(client->Put("written", "new", {.only_if_version = *put, .lock = &*written}).ok());
  EXPECT_TRUE(client->Unlock(*written).ok());
}

// The call ends while the connection breaks, and the lock does not outlive it.
TEST_F(LocksOfAnotherRailTest, AreReleasedAfterTheCallThatWasToReleaseThem) {
  const auto client = ConnectToSecond(), other = Connect();
  AwaitBoth(*client);
  const auto lock = client->AcquireLock("key");
  ASSERT_TRUE(lock.ok()) << lock.status();
  const auto probe = ConnectToSecond({.deadline = milliseconds(50), .rails = 1});
  ports_.TakeDown(1);
  while (probe->Incr("probe", 1).ok()) {
  }
  EXPECT_FALSE(client->Unlock(*lock, milliseconds(20)).ok()) << "the link is down";
  ASSERT_TRUE(client->Incr("counter", 1).ok());
  const auto taken = other->AcquireLock("key", kBackWithin);
  EXPECT_TRUE(taken.ok()) << taken.status();
}

TEST_F(LocksOfAnotherRailTest, AreLostWithTheLockRailAndSaySo) {
  const auto client = ConnectToSecond();
  AwaitBoth(*client);
  const auto lock = client->AcquireLock("key");
  ASSERT_TRUE(lock.ok()) << lock.status();
  ports_.TakeDown(0);
  const auto until = Clock::now() + seconds(4);
  while (Clock::now() < until) ASSERT_TRUE(client->Incr("counter", 1).ok());
  EXPECT_EQ(client->Unlock(*lock).code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace gannet
