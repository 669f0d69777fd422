// kvserver --on_full=evict, with clients whose GETs the server does not see.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "softverbs/tests/support/temporary_directory.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

constexpr int kClients = 3;
constexpr int kHotKeys = 300;  // of each client
constexpr int kScanKeys = 12'000;
constexpr size_t kValueBytes = 1'000;

// Every value says whose it is, so that a wrong one is found.
std::string ValueOf(const std::string& key) {
  std::string value = key + " ";
  while (value.size() < kValueBytes) value += key;
  value.resize(kValueBytes);
  return value;
}

struct Seen {
  int hot_misses = 0;
  int wrong = 0;
  int failed = 0;
};

// Reads some keys again and again, while it writes many others once.
Seen Use(Client& client, int number) {
  Seen seen;
  const std::string name = std::to_string(number);
  const auto put = [&](const std::string& key) {
    seen.failed += !client.Put(key, ValueOf(key), {}, std::chrono::seconds(20)).ok();
  };
  for (int i = 0; i < kHotKeys; ++i) put("hot" + name + "-" + std::to_string(i));
  for (int i = 0; i < kScanKeys; ++i) {
    put("scan" + name + "-" + std::to_string(i));
    const std::string key = "hot" + name + "-" + std::to_string(i % kHotKeys);
    const auto got = client.Get(key, std::chrono::seconds(20));
    if (!got.ok()) {
      ++seen.failed;
    } else if (!got->has_value()) {
      ++seen.hot_misses;
      put(key);
    } else if ((*got)->data != ValueOf(key)) {
      ++seen.wrong;
    }
  }
  return seen;
}

TEST(EvictionTest, KeepsWhatSeveralClientsReadOneSidedAndEvictsTheRest) {
  ServerProcess server({"--memory=8M", "--on_full=evict", "--workers=2"});
  std::vector<Seen> seen(kClients);
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      auto client = Client::Connect({server.endpoint()}, PatientOptions());
      ASSERT_TRUE(client.ok()) << client.status();
      seen[i] = Use(**client, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Seen& one : seen) {
    std::printf("%d misses of %d GETs\n", one.hot_misses, kScanKeys);
    EXPECT_EQ(one.failed, 0);
    EXPECT_EQ(one.wrong, 0);
    // LRU would miss each of them each time: 7 MB of other items come between two uses.
    EXPECT_LT(one.hot_misses, kScanKeys / 20);
  }
  auto client = Client::Connect({server.endpoint()}, PatientOptions());
  ASSERT_TRUE(client.ok());
  const auto stats = (*client)->Stats().at(0).stats;
  ASSERT_TRUE(stats.ok());
  EXPECT_GT(stats->items_evicted, 20'000u);
  EXPECT_EQ(stats->refused_heap_full + stats->refused_index_full, 0u);
  EXPECT_GT(stats->eviction_watermark, 0u);
}

// A write that finds no room waits until what is evicted for it is on disk, and nobody but the
// server itself asks for that.
TEST(EvictionTest, WithSyncAlwaysWritesFindRoomAndWhatWasGoneStaysGone) {
  const test_support::TemporaryDirectory directory;
  ServerProcess server(
      {"--memory=8M", "--on_full=evict", "--data=" + directory.path(), "--sync=always"});
  auto client = Client::Connect({server.endpoint()}, PatientOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  constexpr int kValues = 120;
  const auto key_of = [](int i) { return "key" + std::to_string(i); };
  const auto value_of = [&](int i) {
    return std::string(i % 10 == 0 ? 500'000 : 60'000, 'a' + i % 26);
  };
  const auto is_there = [&](int i) {
    const auto got = (*client)->Get(key_of(i), std::chrono::seconds(20));
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok() || !got->has_value()) return false;
    EXPECT_EQ((*got)->data, value_of(i));
    return true;
  };
  for (int i = 0; i < kValues; ++i) {
    const auto put = (*client)->Put(key_of(i), value_of(i), {}, std::chrono::seconds(20));
    EXPECT_TRUE(put.ok()) << i << ": " << put.status();
  }
  std::vector<int> gone;
  for (int i = 0; i < kValues; ++i) {
    if (!is_there(i)) gone.push_back(i);
  }
  EXPECT_GT(gone.size(), 5u) << "12 MB do not fit 8";
  server.Kill();
  server.Restart();
  client = Client::Connect({server.endpoint()}, PatientOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  for (const int i : gone) EXPECT_FALSE(is_there(i)) << i;
}

}  // namespace
}  // namespace gannet
