// Why the store evicts as it does: exact simulations of the policies that it was chosen from.

#include "tests/server/memory/store/cache_policies.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace gannet {
namespace {

std::vector<NamedPolicy> Policies() {
  const auto counting = [](double halved_after, double size_power, bool remembers) {
    return [=](uint64_t capacity) {
      return MakeCounting(capacity, {halved_after, size_power, remembers, 32, 32});
    };
  };
  return {{"chosen", counting(16, 0.75, true)},
          {"LRU", MakeLru},
          {"segmented LRU", MakeSegmentedLru},
          {"Redis LFU", MakeRedisLfu},
          {"SIEVE", MakeSieve},
          {"S3-FIFO", MakeS3Fifo},
          {"CLOCK, 2 bits", [](uint64_t capacity) { return MakeClock(capacity, 2); }},
          {"CLOCK, 3 bits", [](uint64_t capacity) { return MakeClock(capacity, 3); }},
          {"LFU, no size", counting(16, 0, true)},
          {"size^0.5", counting(16, 0.5, true)},
          {"size^1", counting(16, 1, true)},
          {"forgets the evicted", counting(16, 0.75, false)},
          {"halved after 4", counting(4, 0.75, true)},
          {"halved after 8", counting(8, 0.75, true)}};
}
// The others' policies, which the chosen one must not fall behind.
constexpr size_t kOthersEnd = 4;

constexpr int kShares[] = {5, 10, 20, 40, 80};

// Returns the hit ratios of the first `policies` policies, by share of the footprint.
std::vector<std::vector<double>> Table(const char* name, const std::vector<CacheRequest>& requests,
                                       size_t policies) {
  const std::vector<NamedPolicy> all = Policies();
  const uint64_t footprint = FootprintBytes(requests);
  std::vector<std::vector<double>> table;
  for (const int share : kShares) {
    std::printf("%-14s %3d %%", name, share);
    auto& row = table.emplace_back();
    for (size_t i = 0; i < policies; ++i) {
      const auto policy = all[i].make(footprint * share / 100);
      row.push_back(HitRatio(*policy, requests));
      std::printf("  %s %.2f", all[i].name.c_str(), 100 * row.back());
    }
    std::printf("\n");
  }
  return table;
}

void ExpectChosenAhead(const std::vector<std::vector<double>>& table) {
  for (size_t share = 0; share < table.size(); ++share) {
    for (size_t other = 1; other < kOthersEnd; ++other) {
      EXPECT_GE(table[share][0], table[share][other]) << kShares[share] << " %, " << other;
    }
  }
}

// GANNET_ALL_POLICIES=1 prints the whole table of docs/memory.md.
size_t PoliciesShown() {
  return std::getenv("GANNET_ALL_POLICIES") == nullptr ? kOthersEnd : Policies().size();
}

TEST(CachePoliciesTest, TheChosenOneIsAheadOfTheOthersUnderZipf) {
  ExpectChosenAhead(
      Table("zipf 0.99", ZipfRequests(10'000, 0.99, false, 100'000, 1), PoliciesShown()));
  ExpectChosenAhead(
      Table("zipf 0.8", ZipfRequests(10'000, 0.8, false, 100'000, 1), PoliciesShown()));
}

TEST(CachePoliciesTest, TheChosenOneIsAheadOfTheOthersWithScans) {
  ExpectChosenAhead(
      Table("zipf 0.99 scan", ZipfRequests(10'000, 0.99, true, 100'000, 1), PoliciesShown()));
  ExpectChosenAhead(
      Table("zipf 0.8 scan", ZipfRequests(10'000, 0.8, true, 100'000, 1), PoliciesShown()));
}

// A scan of keys that nobody asks for again must not flush the cache.
TEST(CachePoliciesTest, AScanFlushesLruAndNotTheChosenOne) {
  const auto warm = ZipfRequests(10'000, 0.99, false, 100'000, 1);
  const uint64_t capacity = FootprintBytes(warm) / 10;
  const auto after_scan = [&](CachePolicy& policy) {
    HitRatio(policy, warm);
    for (uint64_t i = 0; i < 3'000; ++i) policy.Request({kFirstScanKey + i, 2'000});
    const std::vector<CacheRequest> then(warm.begin(), warm.begin() + 1'000);
    return HitRatio(policy, then);
  };
  const auto undisturbed = [&](CachePolicy& policy) {
    HitRatio(policy, warm);
    const std::vector<CacheRequest> then(warm.begin(), warm.begin() + 1'000);
    return HitRatio(policy, then);
  };
  const auto lru = MakeLru(capacity), lru_scanned = MakeLru(capacity);
  const auto chosen = MakeCounting(capacity, {}), chosen_scanned = MakeCounting(capacity, {});
  EXPECT_LT(after_scan(*lru_scanned), undisturbed(*lru) - 0.15);
  EXPECT_GT(after_scan(*chosen_scanned), undisturbed(*chosen) - 0.02);
}

// GANNET_TRACE names the CSV file of a block trace: version, time, op, size, lbn.
TEST(CachePoliciesTest, TheChosenOneIsAheadOfTheOthersOnATrace) {
  const char* path = std::getenv("GANNET_TRACE");
  if (path == nullptr) GTEST_SKIP() << "no trace here: GANNET_TRACE is not set";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::vector<CacheRequest> requests;
  std::string line, field;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    uint64_t numbers[5] = {};
    for (int i = 0; std::getline(fields, field, ','); ++i) {
      if (i < 5 && i != 2) numbers[i] = std::stoull(field);
    }
    requests.push_back({numbers[4], numbers[3] + 50});
  }
  ExpectChosenAhead(Table("trace", requests, PoliciesShown()));
}

}  // namespace
}  // namespace gannet
