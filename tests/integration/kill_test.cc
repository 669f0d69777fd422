// What kill -9 takes of a server with --data that does not sync always: of the writes that it
// acknowledged, the last 5 ms at most, whatever the machine does meanwhile.
//
// The server takes no write while one that it took 5 ms before is not written (Journal). A test
// cannot see when it takes a write. But it knows more than it needs: a write that is lost was taken
// before its client was answered, and another one was taken after its client began it. So if the
// other one began more than 5 ms after that answer, the server took it in spite of the rule. That
// holds for each pair of writes, however slow the machine is.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/environment_variable.h"
#include "tests/support/rest.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

constexpr int64_t kPromisedNs = 5 * kNsPerMs;
constexpr int kKeys = 20;  // of each writer

struct Acknowledged {
  int64_t began_ns = 0;
  int64_t answered_ns = 0;
  int key = 0;
  uint64_t version = 0;
};

class KillTest : public testing::Test {
 protected:
  static std::unique_ptr<Client> Connect(const ServerProcess& server) {
    auto client = Client::Connect({server.endpoint()}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  static std::string Key(int key) { return "key" + std::to_string(key); }
  // Puts a value. Returns false if it was not acknowledged within the deadline.
  static bool Put(Client* client, int key, const std::string& value,
                  std::chrono::milliseconds deadline, std::vector<Acknowledged>* all) {
    const int64_t began_ns = MonotonicNs();
    const auto version = client->Put(Key(key), value, {}, deadline);
    if (version.ok()) all->push_back({began_ns, MonotonicNs(), key, *version});
    return version.ok();
  }
  // Expects that the server, started again, has all but what was taken last.
  static void ExpectOnlyTheLastAreLost(const ServerProcess& server, size_t value_bytes,
                                       const std::vector<Acknowledged>& all) {
    const auto client = Connect(server);
    ASSERT_NE(client, nullptr);
    std::vector<uint64_t> found(1 + std::ranges::max(all, {}, &Acknowledged::key).key);
    for (size_t key = 0; key < found.size(); ++key) {
      const auto got = client->Get(Key(static_cast<int>(key)));
      ASSERT_TRUE(got.ok()) << got.status();
      if (got->has_value()) found[key] = (*got)->info.version;
    }
    size_t lost = 0;
    int64_t oldest_ns = std::numeric_limits<int64_t>::max();
    for (const Acknowledged& write : all) {
      if (found[write.key] >= write.version) continue;
      ++lost;
      oldest_ns = std::min(oldest_ns, write.answered_ns);
    }
    RecordProperty("lost_of_" + std::to_string(value_bytes) + "_bytes", static_cast<int>(lost));
    if (lost == 0) return;
    const int64_t newest_ns = std::ranges::max(all, {}, &Acknowledged::began_ns).began_ns;
    EXPECT_LE(newest_ns - oldest_ns, kPromisedNs)
        << lost << " of " << all.size() << " writes of " << value_bytes << " bytes are lost";
  }

  const test_support::TemporaryDirectory directory_;
};

TEST_F(KillTest, TakesTheLastWritesOnlyOfEachSize) {
  struct Size {
    size_t value_bytes;
    size_t writes;  // of each writer
  };
  for (const Size& size : {Size{100, 1'000}, {100'000, 400}, {1'000'000, 80}}) {
    constexpr int kWriters = 3;
    const std::string data = directory_.path() + "/" + std::to_string(size.value_bytes);
    ServerProcess server({"--data=" + data, "--memory=256M", "--on_full=evict"});
    std::vector<std::vector<Acknowledged>> of_writer(kWriters);
    std::atomic<bool> enough{false};
    std::vector<std::thread> writers;
    for (int i = 0; i < kWriters; ++i) {
      writers.emplace_back([&, i] {
        const auto client = Connect(server);
        const std::string value(size.value_bytes, 'v');
        for (int n = 0; client != nullptr; ++n) {
          if (!Put(client.get(), i * kKeys + n % kKeys, value, PatientOptions().deadline,
                   &of_writer[i])) {
            return;
          }
          if (of_writer[i].size() == size.writes) enough = true;
        }
      });
    }
    while (!enough) test_support::Rest();
    server.Kill();
    for (std::thread& writer : writers) writer.join();
    server.Restart();
    std::vector<Acknowledged> all;
    for (const auto& some : of_writer) all.insert(all.end(), some.begin(), some.end());
    ExpectOnlyTheLastAreLost(server, size.value_bytes, all);
  }
}

// The system takes nothing for as long as the test likes.
TEST_F(KillTest, WritesWaitWhileTheSystemTakesNoneAndGoOnThen) {
  if (test_support::kThreadSanitizer || test_support::kAddressSanitizer) {
    GTEST_SKIP() << "the preloaded library is not instrumented";
  }
  const test_support::EnvironmentVariable preload("LD_PRELOAD",
                                                  test_support::TestProgramPath("hanging_sync.so"));
  const std::string hangs = directory_.path() + "/hangs";
  const test_support::EnvironmentVariable when("GANNET_HANGING_WRITE", hangs);
  constexpr std::chrono::milliseconds kDeadline{200};
  for (const std::string sync : {"none", "interval"}) {
    ServerProcess server({"--data=" + directory_.path() + "/" + sync, "--sync=" + sync});
    std::vector<Acknowledged> all;
    {
      const auto client = Connect(server);
      ASSERT_NE(client, nullptr);
      const auto put = [&](std::chrono::milliseconds deadline) {
        return Put(client.get(), static_cast<int>(all.size()) % kKeys, "value", deadline, &all);
      };
      ASSERT_TRUE(put(PatientOptions().deadline));
      for (const bool last : {false, true}) {
        std::ofstream{hangs};
        constexpr size_t kTooMany = 20'000;  // without the rule, more would not be held back
        const size_t before = all.size();
        while (all.size() < before + kTooMany && put(kDeadline)) {
        }
        EXPECT_LT(all.size(), before + kTooMany);
        if (last) break;
        std::filesystem::remove(hangs);
        EXPECT_TRUE(put(PatientOptions().deadline)) << "nothing is refused for good";
      }
    }
    server.Kill();
    std::filesystem::remove(hangs);
    server.Restart();
    ExpectOnlyTheLastAreLost(server, /*value_bytes=*/5, all);
  }
}

}  // namespace
}  // namespace gannet
