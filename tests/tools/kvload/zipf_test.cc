#include "tools/kvload/zipf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gannet::kvload {
namespace {

constexpr double kTheta = 0.99;

double Harmonic(uint64_t n) {
  double sum = 0;
  for (uint64_t k = 1; k <= n; ++k) sum += std::pow(static_cast<double>(k), -kTheta);
  return sum;
}

// Each rank's count is binomial, and must be within five standard deviations, with a fixed seed.
TEST(ZipfTest, FrequenciesFollowThePowerLaw) {
  constexpr uint64_t kItems = 1000;
  constexpr int kDraws = 1'000'000;
  const Zipf zipf(kTheta);
  Random random(7);
  std::vector<int> counts(kItems);
  for (int i = 0; i < kDraws; ++i) ++counts.at(zipf.Draw(kItems, random));
  const double total = Harmonic(kItems);
  for (const uint64_t rank : {0, 1, 2, 3, 9, 99, 500, 999}) {
    const double p = std::pow(static_cast<double>(rank + 1), -kTheta) / total;
    const double expected = p * kDraws;
    const double sigma = std::sqrt(kDraws * p * (1 - p));
    EXPECT_NEAR(counts[rank], expected, 5 * sigma) << "rank " << rank;
  }
}

TEST(ZipfTest, StaysInRangeForAnyNumberOfItems) {
  const Zipf zipf(kTheta);
  Random random(8);
  for (const uint64_t n : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{1} << 40}) {
    for (int i = 0; i < 10'000; ++i) ASSERT_LT(zipf.Draw(n, random), n);
  }
}

// The share of the hottest 1 % of 10 million keys. A location cache depends on it.
TEST(ZipfTest, HottestPercentOfTenMillionGetsItsShare) {
  constexpr uint64_t kItems = 10'000'000;
  constexpr int kDraws = 200'000;
  const Zipf zipf(kTheta);
  Random random(9);
  int hot = 0;
  for (int i = 0; i < kDraws; ++i) hot += zipf.Draw(kItems, random) < kItems / 100 ? 1 : 0;
  const double p = Harmonic(kItems / 100) / Harmonic(kItems);
  EXPECT_NEAR(hot, p * kDraws, 5 * std::sqrt(kDraws * p * (1 - p)));
}

// A seed identifies a run: it is the same on every machine, for ever.
TEST(ZipfTest, SeedDeterminesTheDraws) {
  const Zipf zipf(kTheta);
  Random random(42);
  std::vector<uint64_t> drawn;
  for (int i = 0; i < 6; ++i) drawn.push_back(zipf.Draw(1'000'000, random));
  EXPECT_EQ(drawn, (std::vector<uint64_t>{0, 15, 1636, 62864, 1, 900}));
}

TEST(ScrambleTest, IsABijection) {
  for (const uint64_t n : {1, 2, 3, 5, 64, 100, 1000, 4097}) {
    std::vector<bool> seen(n);
    for (uint64_t rank = 0; rank < n; ++rank) {
      const uint64_t spread = Scramble(rank, n);
      ASSERT_LT(spread, n);
      ASSERT_FALSE(seen[spread]) << rank << " of " << n;
      seen[spread] = true;
    }
  }
}

TEST(ScrambleTest, SpreadsTheHotRanks) {
  constexpr uint64_t kItems = 1'000'000;
  std::vector<int> tenths(10);
  for (uint64_t rank = 0; rank < 1000; ++rank) ++tenths[Scramble(rank, kItems) * 10 / kItems];
  for (const int count : tenths) EXPECT_NEAR(count, 100, 50);
}

TEST(RandomTest, BelowAndFractionStayInRange) {
  Random random(5);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_LT(random.Below(7), 7u);
    const double fraction = random.Fraction();
    ASSERT_GT(fraction, 0);
    ASSERT_LE(fraction, 1);
  }
}

}  // namespace
}  // namespace gannet::kvload
