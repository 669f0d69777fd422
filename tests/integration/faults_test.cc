#include <gannet/client.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "softverbs/control.h"
#include "tests/common/rdma/test_device.h"
#include "tests/integration/hot_key_run.h"
#include "tests/support/server_process.h"

// The store on a device that fails on demand: no wrong value, histories stay linearizable, and
// clients come back.

namespace gannet {
namespace {

using std::chrono::milliseconds;

constexpr int kOperations = 60;
constexpr int kEvictingOperations = 300;  // there are many more keys

// While it lives, servers that are started, and this process's clients, have these faults.
class Faults {
 public:
  Faults(const std::string& servers, const std::string& clients) {
    setenv("SOFTVERBS_FAULTS", servers.c_str(), 1);
    char error[512] = "";
    EXPECT_EQ(softverbs_set_faults(clients.c_str(), error, sizeof(error)), 0) << error;
  }
  ~Faults() {
    softverbs_clear_faults();
    unsetenv("SOFTVERBS_FAULTS");
  }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
};

// Ends the server, and returns how often a fault struck in it. The server prints that as it exits.
bool StruckInServer(ServerProcess& server, const std::string& fault) {
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0) << server.process().Stderr();
  const std::string text = server.process().Stderr();
  const std::string name = '"' + fault + "\":";
  const size_t at = text.rfind(name);
  return at != std::string::npos && text.at(at + name.size()) != '0';
}

TEST(FaultsTest, TornReadsGiveNoWrongValue) {
  const Faults faults("seed=1,tear_read=1/2:20us", "seed=1,tear_read=1/4:20us");
  HotKeyRun run({.operations = kOperations});
  run.Run();
  EXPECT_GT(softverbs_fault_count("tear_read"), 0u);
  EXPECT_TRUE(StruckInServer(run.server(), "tear_read"));
}

TEST(FaultsTest, TornReadsOfKeysThatAreEvictedGiveNoWrongValue) {
  const Faults faults("seed=6,tear_read=1/2:20us", "seed=6,tear_read=1/4:20us");
  HotKeyRun run({.operations = kEvictingOperations, .evicts = true});
  run.Run();
  EXPECT_GT(softverbs_fault_count("tear_read"), 0u);
  EXPECT_TRUE(StruckInServer(run.server(), "tear_read"));
}

TEST(FaultsTest, DelayedCompletionsAndStallsOnlyDelay) {
  const std::string plan = "seed=2,delay_completion=1/16:500us,stall_peer=1/64:500us";
  const Faults faults(plan, plan);
  HotKeyRun run({.operations = kOperations});
  run.Run();
  EXPECT_GT(softverbs_fault_count("delay_completion"), 0u);
  EXPECT_TRUE(StruckInServer(run.server(), "delay_completion"));
}

TEST(FaultsTest, StrictDeviceFindsNoMisuse) {
  const uint64_t misuses = softverbs_misuse_count();
  const Faults faults("seed=3,strict=1", "seed=3,strict=1");
  HotKeyRun run({.operations = kOperations});
  run.Run();
  EXPECT_EQ(softverbs_misuse_count(), misuses);
  EXPECT_TRUE(StruckInServer(run.server(), "delay_post"));
  EXPECT_EQ(run.server().process().Stderr().find("misuse"), std::string::npos)
      << run.server().process().Stderr();
}

TEST(FaultsTest, DroppedConnectionsAreMadeAnew) {
  // Less than each of the run's clients does, even where operations are slow.
  const Faults faults("seed=4,rnr=1/64", "seed=4,drop_connection_after=100");
  HotKeyRun run({.operations = kOperations});
  run.Run();
  EXPECT_GT(softverbs_fault_count("drop_connection_after"), 0u);
  EXPECT_GT(run.lines().load(), 0u) << "no client noticed";
}

TEST(FaultsTest, DroppedConnectionsAreMadeAnewWhileKeysAreEvicted) {
  const Faults faults("seed=7,rnr=1/64", "seed=7,drop_connection_after=1000");
  HotKeyRun run({.operations = kEvictingOperations, .evicts = true});
  run.Run();
  EXPECT_GT(softverbs_fault_count("drop_connection_after"), 0u);
  EXPECT_GT(run.lines().load(), 0u) << "no client noticed";
}

// If a lock was taken although its compare-and-swap was reported as failed, it must become free
// again, and no increment under locks may be lost.
TEST(FaultsTest, LostAnswersOfCompareAndSwapLoseNoUpdate) {
  constexpr int kClients = 3;
  const int increments = std::max(5, 30 / TestSlowness());
  ServerProcess server;
  const Faults faults("seed=5,rnr=0", "seed=5,lost_ack=cas:1/20");
  std::vector<std::thread> threads;
  std::atomic<int> certain{0}, possible{0};
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&] {
      auto client = Client::Connect({server.endpoint()}, {.connect_timeout = milliseconds(30'000),
                                                          .deadline = milliseconds(30'000)});
      ASSERT_TRUE(client.ok()) << client.status();
      for (int done = 0; done < increments;) {
        const auto locked = (*client)->LockAndGet("counter");
        if (!locked.ok()) continue;
        const int value = locked->value ? std::stoi(locked->value->data) : 0;
        const PutOptions put{
            .only_if_version = locked->value ? locked->value->info.version : 0,
            .lock = &locked->lock,
        };
        const auto version = (*client)->Put("counter", std::to_string(value + 1), put);
        if (version.ok()) certain.fetch_add(1);
        if (version.ok() || absl::IsUnknown(version.status())) possible.fetch_add(1);
        done += version.ok() ? 1 : 0;
        // May fail because the lock was lost with its connection, which freed it.
        const absl::Status unlocked = (*client)->Unlock(locked->lock);
        if (!unlocked.ok()) std::cout << "unlock: " << unlocked << std::endl;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(softverbs_fault_count("lost_ack"), 0u);
  auto client = Client::Connect({server.endpoint()}, {.deadline = milliseconds(30'000)});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto value = (*client)->Get("counter");
  ASSERT_TRUE(value.ok() && value->has_value()) << value.status();
  EXPECT_GE(std::stoi((*value)->data), certain.load());
  EXPECT_LE(std::stoi((*value)->data), possible.load());
}

}  // namespace
}  // namespace gannet
