#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "tests/client/tables/zipf_gets.h"

namespace gannet {
namespace {

// Measures the figure of docs/performance.md at its full size.
TEST(LocationCacheFigureTest, ZipfOverTenMillionKeysWithOnePercentCached) {
  constexpr uint64_t kKeys = 10'000'000, kEntries = kKeys / 100;
  constexpr uint64_t kWarmUp = 20'000'000, kMeasured = 10'000'000;
  const Zipf zipf(kKeys);
  std::mt19937_64 random(9);
  LocationCache cache(kEntries * LocationCache::kEntryBytes);
  uint64_t hits = 0;
  for (uint64_t i = 0; i < kWarmUp + kMeasured; ++i) {
    const bool hit = Get(cache, zipf.Draw(random));
    if (i >= kWarmUp) hits += hit;
  }
  printf("READs a GET: %.3f\n", ReadsPerGet(hits, kMeasured));
  EXPECT_LE(ReadsPerGet(hits, kMeasured), 1.33);
}

}  // namespace
}  // namespace gannet
