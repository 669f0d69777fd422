// An index that grows while clients read, through a real server.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "softverbs/tests/support/child_process.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/common/rdma/test_device.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

constexpr std::chrono::seconds kGrowthMax{60};
constexpr uint32_t kGetsAtOnce = 16;

class GrowthTest : public ::testing::Test {
 protected:
  // Remembers no locations, so every GET looks the key up.
  std::unique_ptr<AsyncClient> Connect() {
    Options options{.connect_timeout = kGrowthMax, .deadline = kGrowthMax};
    options.location_cache_bytes = 0;
    options.depth = kGetsAtOnce;
    auto client = AsyncClient::Connect({server_.endpoint()}, options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  static std::string Key(uint64_t i) { return "key " + std::to_string(i); }

  // Takes completions of one client; returns how many.
  template <class Done>
  static size_t Take(AsyncClient& client, Done done) {
    std::array<Completion, kGetsAtOnce> batch;
    const size_t n = client.Poll(batch);
    for (const Completion& it : std::span(batch).first(n)) {
      EXPECT_EQ(it.code, absl::StatusCode::kOk);
      done(it);
    }
    return n;
  }

  // Writes `n` more keys. Calls meanwhile() again and again.
  template <class Meanwhile>
  void PutMore(uint64_t n, Meanwhile meanwhile) {
    const uint64_t end = keys_ + n;
    uint64_t next = keys_;
    while (keys_ < end) {
      while (next < end && writer_->Put(Key(next), "value", {}, next).ok()) ++next;
      keys_ += Take(*writer_, [](const Completion&) {});
      meanwhile();
    }
  }
  // GETs all keys, and counts those that are missed.
  uint64_t Missed(AsyncClient& client) {
    uint64_t next = 0, done = 0, missed = 0;
    const auto give_up = std::chrono::steady_clock::now() + kGrowthMax;
    while (done < keys_ && std::chrono::steady_clock::now() < give_up) {
      while (next < keys_ && client.Get(Key(next), {}, next).ok()) ++next;
      done += Take(client, [&](const Completion& it) { missed += !it.found; });
    }
    EXPECT_EQ(done, keys_) << "an operation hangs";
    return missed;
  }
  ServerStats Stats() {
    ServerStats stats;
    EXPECT_TRUE(writer_->Stats(0, &stats, 0).ok());
    while (Take(*writer_, [](const Completion&) {}) == 0) {
    }
    return stats;
  }

  // Waits until the server has no other clients than the writer and maybe `brief`, which it keeps
  // alive. How many connections each of them has, is its own decision.
  void AwaitTheOthersEnd(AsyncClient* brief) {
    const auto watcher = Client::Connect({server_.endpoint()}, {.connect_timeout = kGrowthMax});
    ASSERT_TRUE(watcher.ok()) << watcher.status();
    std::set<uint32_t> stay = {writer_->Info()[0].session_id, (*watcher)->Info()[0].session_id};
    if (brief != nullptr) stay.insert(brief->Info()[0].session_id);
    std::set<uint32_t> listed;
    while (listed != stay) {
      Take(*writer_, [](const Completion&) {});
      if (brief != nullptr) Take(*brief, [](const Completion&) {});
      const auto clients = (*watcher)->ConnectedClients(0, kGrowthMax);
      ASSERT_TRUE(clients.ok()) << clients.status();
      listed.clear();
      for (const ConnectedClient& it : *clients) listed.insert(it.session_id);
    }
  }

  ServerProcess server_{{"--memory=64M", "--index_slots=256", "--silence_ms=1000"}};
  std::unique_ptr<AsyncClient> writer_ = Connect();
  uint64_t keys_ = 0;  // written
};

TEST_F(GrowthTest, AGetOfACertainKeyHitsAlwaysAndCostsAtMostOneReadMore) {
  const uint64_t keys = 40'000 / TestSlowness();
  const auto reader = Connect();
  std::mt19937_64 random(test_support::TestSeed());
  std::array<uint64_t, 16> by_reads{};
  uint64_t begun = 0, gets = 0, reads = 0, by_rpc = 0, missed = 0;
  PutMore(100, [] {});
  const auto count = [&](const Completion& it) {
    ++gets;
    missed += !it.found;
    by_rpc += it.cost.by_rpc;
    if (it.cost.by_rpc) return;
    reads += it.cost.reads;
    ++by_reads[std::min<size_t>(it.cost.reads, by_reads.size() - 1)];
  };
  PutMore(keys, [&] {
    while (reader->Get(Key(random() % 100), {}, 0).ok()) ++begun;
    Take(*reader, count);
  });
  while (gets < begun) Take(*reader, count);
  const ServerStats stats = Stats();
  std::printf(
      "%lu growths to %lu slots; %lu GETs, %.4f READs each, %lu with 3, %lu with more, "
      "%lu by RPC\n",
      stats.index_growths, stats.slots_total, gets,
      static_cast<double>(reads) / static_cast<double>(gets - by_rpc), by_reads[3],
      gets - by_rpc - by_reads[2] - by_reads[3], by_rpc);
  EXPECT_GE(stats.index_growths, 3u);
  EXPECT_EQ(missed, 0u);
  EXPECT_GT(gets, 0u);
  EXPECT_LE(static_cast<double>(reads), 3.0 * static_cast<double>(gets - by_rpc));
  EXPECT_EQ(Missed(*reader), 0u);
}

// Stopped for good: its connections go, and then the indexes that it knew, whose memory is used
// again.
TEST_F(GrowthTest, AProcessThatIsStoppedMeanwhileFindsItsKeyAfterwards) {
  const uint64_t keys = 10'000 / TestSlowness();
  PutMore(100, [] {});
  test_support::ChildProcess other({.argv = {test_support::TestProgramPath("lock_holder"),
                                             TestDevice().name, server_.endpoint(), Key(5)}});
  ASSERT_EQ(other.ReadLine(), "CONNECTED") << other.Stderr();
  ASSERT_TRUE(other.WriteLine("lock"));
  const std::string before = other.ReadLine().value_or("");  // with the key's version
  ASSERT_TRUE(before.starts_with("LOCKED ") && before != "LOCKED 0") << before;
  other.Stop();
  PutMore(keys, [] {});
  AwaitTheOthersEnd(nullptr);
  PutMore(keys, [] {});
  EXPECT_GE(Stats().index_growths, 2u);
  other.Signal(SIGCONT);
  std::string after = "UNAVAILABLE";  // until it is connected again
  for (int tries = 0; tries < 20 && after == "UNAVAILABLE"; ++tries) {
    ASSERT_TRUE(other.WriteLine("lock"));
    after = other.ReadLine().value_or("nothing");
  }
  EXPECT_EQ(after, before);
}

// As a client that is stopped for a while: it does nothing, and its queue pairs stay.
TEST_F(GrowthTest, AClientThatStandsStillMeanwhileFindsEveryKeyAfterwards) {
  const uint64_t keys = 20'000 / TestSlowness();
  PutMore(100, [] {});
  const auto brief = Connect(), lasting = Connect();
  EXPECT_EQ(Missed(*brief), 0u);
  EXPECT_EQ(Missed(*lasting), 0u);
  PutMore(keys, [] {});
  EXPECT_GE(Stats().index_growths, 2u);
  EXPECT_EQ(Missed(*brief), 0u);  // its queue pairs are there, unless the machine is slow
  // The other one's go, and the first index with them, whose memory is used again.
  AwaitTheOthersEnd(brief.get());
  PutMore(keys, [&] { Take(*brief, [](const Completion&) {}); });
  EXPECT_EQ(Missed(*lasting), 0u);
  EXPECT_EQ(Missed(*brief), 0u);
}

}  // namespace
}  // namespace gannet
