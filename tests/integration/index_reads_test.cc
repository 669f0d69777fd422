// READs per GET through a real server after churn, by share of all index slots in use.
// tests/server/memory/index/index_fill_test shows it for the index alone; here clients must pay the
// same.

#include <gannet/async_client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/server_process.h"

namespace gannet {
namespace {

// So many slots that chance changes the shares only by a few percent: keys meet buckets at random,
// by a seed that the server chooses.
constexpr uint64_t kSlots = 1 << 18;
constexpr uint32_t kDepth = 128;
constexpr std::chrono::seconds kPatient{60};
constexpr uint64_t kWholeIndexCached = 64 << 20;

class IndexReadsTest : public ::testing::Test {
 protected:
  struct Sums {
    uint64_t found = 0;
    uint64_t reads = 0;
    uint64_t from_cached_location = 0;
    uint64_t reads_of_cached = 0;
    uint64_t by_rpc = 0;
  };

  std::unique_ptr<AsyncClient> Connect(uint64_t location_cache_bytes, uint32_t depth = kDepth) {
    Options options{.connect_timeout = kPatient, .deadline = kPatient};
    options.location_cache_bytes = location_cache_bytes;
    options.depth = depth;
    auto client = AsyncClient::Connect({server_.endpoint()}, options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  // Runs `start` for all of [begin, end), with as many at once as the client takes.
  template <class Start, class Done>
  static void Run(AsyncClient& client, uint64_t begin, uint64_t end, Start start, Done done) {
    uint64_t next = begin, finished = begin;
    auto give_up = std::chrono::steady_clock::now() + kPatient;
    while (finished < end && std::chrono::steady_clock::now() < give_up) {
      while (next < end && start(next).ok()) ++next;
      std::array<Completion, kDepth> batch;
      const size_t n = client.Poll(batch);
      if (n > 0) give_up = std::chrono::steady_clock::now() + kPatient;
      for (const Completion& it : std::span(batch).first(n)) {
        ASSERT_EQ(it.code, absl::StatusCode::kOk);
        done(it);
      }
      finished += n;
    }
    ASSERT_EQ(finished, end) << "an operation hangs";
  }

  static std::string Key(uint64_t i) { return "key " + std::to_string(i); }
  static std::string Absent(uint64_t i) { return "absent " + std::to_string(i); }

  void Put(uint64_t begin, uint64_t end) {
    Run(
        *writer_, begin, end, [&](uint64_t i) { return writer_->Put(Key(i), "value", {}, i); },
        [](const Completion&) {});
  }
  void Delete(uint64_t begin, uint64_t end) {
    Run(
        *writer_, begin, end, [&](uint64_t i) { return writer_->Delete(Key(i), {}, i); },
        [](const Completion& it) { EXPECT_TRUE(it.found); });
  }
  // Deletes and inserts every key again, twice.
  void Churn(uint64_t keys) {
    constexpr uint64_t kAtOnce = 4096;
    for (int round = 0; round < 2; ++round) {
      for (uint64_t i = 0; i < keys; i += kAtOnce) {
        ASSERT_NO_FATAL_FAILURE(Delete(i, std::min(keys, i + kAtOnce)));
        ASSERT_NO_FATAL_FAILURE(Put(i, std::min(keys, i + kAtOnce)));
      }
    }
  }
  ServerStats Stats() {
    ServerStats stats;
    Run(
        *writer_, 0, 1, [&](uint64_t) { return writer_->Stats(0, &stats, 0); },
        [](const Completion&) {});
    return stats;
  }
  // Inserts keys until that share of all slots is in use, the stash's included.
  void FillTo(double share) {
    const uint64_t keys = static_cast<uint64_t>(share * static_cast<double>(Stats().slots_total));
    ASSERT_NO_FATAL_FAILURE(Put(keys_, keys));
    keys_ = keys;
    ASSERT_NO_FATAL_FAILURE(Churn(keys_));
    ASSERT_EQ(Stats().slots_used, keys_);
  }

  template <class KeyOf>
  static Sums Get(AsyncClient& client, uint64_t gets, KeyOf key_of) {
    Sums sums;
    Run(
        client, 0, gets, [&](uint64_t i) { return client.Get(key_of(i), {}, i); },
        [&](const Completion& it) {
          sums.found += it.found;
          sums.reads += it.cost.reads;
          sums.from_cached_location += it.cost.from_cached_location;
          if (it.cost.from_cached_location) sums.reads_of_cached += it.cost.reads;
          sums.by_rpc += it.cost.by_rpc;
        });
    return sums;
  }

  ServerProcess server_{std::vector<std::string>{"--memory=128M", "--index_grows=false",
                                                 "--index_slots=" + std::to_string(kSlots)}};
  std::unique_ptr<AsyncClient> writer_ = Connect(0);
  uint64_t keys_ = 0;
};

double Each(uint64_t reads, uint64_t gets) {
  return static_cast<double>(reads) / static_cast<double>(gets);
}

TEST_F(IndexReadsTest, AHitIsOneReadOfTheIndexAtNearlyAnyFill) {
  // 1.000 means at most 1.0005: a slot's tag of 20 bits is now and then another key's.
  struct {
    double share;
    double reads_max;
  } const bounds[] = {{0.50, 1.0005}, {0.75, 1.0005}, {0.85, 1.002}, {0.90, 1.006}, {0.95, 1.018}};
  for (const auto& bound : bounds) {
    ASSERT_NO_FATAL_FAILURE(FillTo(bound.share));
    const Sums cold = Get(*Connect(0), keys_, Key);
    EXPECT_EQ(cold.found, keys_);
    EXPECT_EQ(cold.by_rpc, 0u);
    // One READ of each is the item's.
    const double reads = Each(cold.reads - keys_, keys_);
    std::printf("%2.0f %% of %lu slots: %.3f READs of the index a hit\n", 100 * bound.share, kSlots,
                reads);
    EXPECT_LE(reads, bound.reads_max) << bound.share;
  }
}

TEST_F(IndexReadsTest, ColdWarmAndMissedAtNineTenths) {
  ASSERT_NO_FATAL_FAILURE(FillTo(0.90));
  const auto client = Connect(kWholeIndexCached);
  const Sums cold = Get(*client, keys_, Key);
  EXPECT_EQ(cold.found, keys_);
  EXPECT_LE(Each(cold.reads, keys_), 2.02);
  // Nothing was written meanwhile, so that no location is stale.
  const Sums warm = Get(*client, keys_, Key);
  EXPECT_EQ(warm.found, keys_);
  EXPECT_GE(warm.from_cached_location, keys_ / 2);
  EXPECT_EQ(warm.reads_of_cached, warm.from_cached_location);
  // One at a time: a miss needs a READ of less than a millisecond. If a busy machine is held up,
  // this makes one READ slow, and not as many as are in flight.
  const Sums missed = Get(*Connect(0, 1), keys_, Absent);
  EXPECT_EQ(missed.found, 0u);
  EXPECT_LE(Each(missed.reads, keys_), 1.02);
  std::printf("cold %.3f, from a cached location %.3f (%.1f %% were), missed %.3f READs a GET\n",
              Each(cold.reads, keys_), Each(warm.reads_of_cached, warm.from_cached_location),
              100 * Each(warm.from_cached_location, keys_), Each(missed.reads, keys_));
}

}  // namespace
}  // namespace gannet
