// Many clients of one server: what they cost while idle, and how they come back after a restart.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/api/patient_options.h"
#include "tests/common/rdma/test_device.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::vector<std::unique_ptr<AsyncClient>> ConnectAll(const std::string& endpoint, size_t count,
                                                     const Options& options) {
  std::vector<std::unique_ptr<AsyncClient>> clients;
  while (clients.size() < count) {
    auto client = AsyncClient::Connect({endpoint}, options);
    EXPECT_TRUE(client.ok()) << client.status();
    if (!client.ok()) break;
    clients.push_back(*std::move(client));
  }
  return clients;
}

// Returns how often the threads of a process fell asleep so far. A busy machine takes cores from
// threads, which does not count.
uint64_t Switches(pid_t pid) {
  uint64_t sum = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("voluntary_ctxt_switches:")) continue;
      sum += std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return sum;
}

constexpr milliseconds kSilence{5000};

// Counts, not times: an idle client wakes for its heartbeats, and wakes its server for these.
TEST(CrowdTest, IdleClientsWakeForHeartbeatsOnly) {
  constexpr size_t kClients = 64;
  // A tenth of the silence apart. Each takes a few switches: the client's thread and its device's,
  // then the server's worker for the heartbeat and for the acknowledgement of its answer.
  constexpr milliseconds kHeartbeat = kSilence / 10;
  constexpr uint64_t kMostPerHeartbeat = 12;
  constexpr int kHeartbeats = 5;

  ServerProcess server({"--silence_ms=" + std::to_string(kSilence.count())});
  const auto clients = ConnectAll(server.endpoint(), kClients, PatientOptions());
  ASSERT_EQ(clients.size(), kClients);
  std::vector<std::thread> sleepers;
  std::atomic<bool> over{false};
  for (const auto& client : clients) {
    sleepers.emplace_back([&over, sleeper = client.get()] {
      std::array<Completion, 1> none;
      while (!over) EXPECT_EQ(sleeper->Wait(none, kSilence), 0u);
    });
  }
  const auto counted = [&] { return Switches(getpid()) + Switches(server.process().pid()); };
  const auto watcher = Client::Connect({server.endpoint()}, PatientOptions()).value();
  const auto heartbeats = [&] { return watcher->Stats().at(0).stats.value().heartbeats; };
  std::this_thread::sleep_for(kHeartbeat);
  const uint64_t beats_before = heartbeats();
  const uint64_t before = counted();
  std::this_thread::sleep_for(kHeartbeat * kHeartbeats);  // what is measured, not a wait
  const uint64_t switches = counted() - before;
  // However long that took.
  const uint64_t beats = heartbeats() - beats_before;
  over = true;
  for (std::thread& sleeper : sleepers) sleeper.join();
  RecordProperty("switches", static_cast<int>(switches));
  std::printf("%.1f switches a heartbeat\n",
              static_cast<double>(switches) / static_cast<double>(beats));
  // Those that poll, or look from time to time, are far above.
  EXPECT_LE(switches, (beats + kClients) * kMostPerHeartbeat);
  for (const auto& client : clients) EXPECT_TRUE(client->Info().at(0).connected);
}

// All reconnect at the same time, each with a GET that waits for the connection.
TEST(CrowdTest, AThousandClientsComeBackAfterARestart) {
  const size_t count = 1000 / static_cast<size_t>(TestSlowness());
  Options options = PatientOptions();
  options.depth = 1;
  options.location_cache_bytes = 0;
  ServerProcess server({"--silence_ms=30000"});
  const auto clients = ConnectAll(server.endpoint(), count, options);
  ASSERT_EQ(clients.size(), count);

  server.Kill();
  server.Restart();
  const auto restarted = steady_clock::now();
  std::vector<std::optional<steady_clock::duration>> back_after(count);
  const auto begin_get = [&](size_t i) { EXPECT_TRUE(clients[i]->Get("key", {}, i).ok()); };
  for (size_t i = 0; i < count; ++i) begin_get(i);
  size_t back = 0;
  const auto give_up = restarted + test_support::kStepTimeout;
  while (back < count && steady_clock::now() < give_up) {
    for (size_t i = 0; i < count; ++i) {
      std::array<Completion, 1> done;
      if (clients[i]->Poll(done) == 0) continue;
      if (done[0].code == absl::StatusCode::kOk && !back_after[i].has_value()) {
        back_after[i] = steady_clock::now() - restarted;
        ++back;
      }
      begin_get(i);
    }
  }
  ASSERT_EQ(back, count) << "so many are back";
  const auto [first, last] = std::ranges::minmax(back_after);
  std::printf("%zu clients: the first is back after %.2f s, the last after %.2f s\n", count,
              std::chrono::duration<double>(*first).count(),
              std::chrono::duration<double>(*last).count());
}

}  // namespace
}  // namespace gannet
