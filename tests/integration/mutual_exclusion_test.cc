#include <gannet/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/common/rdma/test_device.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

constexpr std::chrono::seconds kPatient{30};
constexpr int kClients = 3;
constexpr int kIncrements = 400;  // of each client, on a machine that is not slow
constexpr char kCounter[] = "the counter under a lock";

struct Outcomes {
  std::atomic<int> applied{0};    // relaxed: counts, read after the threads were joined
  std::atomic<int> unknown{0};    // the connection broke under the write
  std::atomic<int> lock_lost{0};  // as it must say when the client was taken for dead
};

// Increments once under the lock. All writers hold the lock, so the version that was read with it
// can change only if the lock let two of them in.
void Increment(Client* client, Outcomes* outcomes) {
  auto locked = client->LockAndGet(kCounter, kPatient);
  ASSERT_TRUE(locked.ok()) << locked.status();
  ASSERT_TRUE(locked->value.has_value());
  PutOptions options;
  options.lock = &locked->lock;
  options.only_if_version = locked->value->info.version;
  const std::string next = std::to_string(std::stoi(locked->value->data) + 1);
  const absl::Status put = client->Put(kCounter, next, options, kPatient).status();
  if (put.ok()) {
    outcomes->applied.fetch_add(1, std::memory_order_relaxed);
  } else if (absl::IsUnknown(put)) {
    outcomes->unknown.fetch_add(1, std::memory_order_relaxed);
  } else {
    EXPECT_TRUE(absl::IsAborted(put)) << put;
    outcomes->lock_lost.fetch_add(1, std::memory_order_relaxed);
  }
  // A lost lock needs no unlocking.
  client->Unlock(locked->lock, kPatient).IgnoreError();
}

TEST(MutualExclusionTest, NoIncrementUnderTheLockIsLostOrDoneTwice) {
  ServerProcess server;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    auto client =
        Client::Connect({server.endpoint()}, {.connect_timeout = kPatient, .deadline = kPatient});
    ASSERT_TRUE(client.ok()) << client.status();
    clients.push_back(*std::move(client));
  }
  ASSERT_TRUE(clients[0]->Put(kCounter, "0").ok());
  const int increments = std::max(10, kIncrements / TestSlowness());
  Outcomes outcomes;
  std::vector<std::thread> threads;
  for (const auto& client : clients) {
    threads.emplace_back([&] {
      for (int i = 0; i < increments && !testing::Test::HasFailure(); ++i) {
        Increment(client.get(), &outcomes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto value = clients[0]->Get(kCounter, kPatient);
  ASSERT_TRUE(value.ok() && value->has_value()) << value.status();
  const int counted = std::stoi((*value)->data);
  std::printf("applied %d, unknown %d, lock lost %d\n", outcomes.applied.load(),
              outcomes.unknown.load(), outcomes.lock_lost.load());
  EXPECT_GE(counted, outcomes.applied.load());
  EXPECT_LE(counted, outcomes.applied.load() + outcomes.unknown.load());
  EXPECT_GT(outcomes.applied.load(), 0);
}

}  // namespace
}  // namespace gannet
