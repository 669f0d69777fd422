// How many keys do not fit their window, and how many moves that costs, by share of all slots in
// use: the figures of docs/memory.md. READs of the index per GET = 1 + stash share; 1.000
// means at most 1.0005.

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "tests/server/memory/index/index_fixture.h"

namespace gannet {
namespace {

struct Fill {
  double share;  // of all slots
  double reads_per_hit_max;
  double reads_per_miss_max;
  double moves_per_insert_max;  // under churn
};

class IndexFillSharesTest : public testing::TestWithParam<Fill> {};

TEST_P(IndexFillSharesTest, FewKeysLiveInTheStashAfterChurn) {
  constexpr uint64_t kSlots = 1 << 20;
  constexpr uint64_t kSeed = 5;
  TestIndex index(kSlots, kSeed);
  const uint64_t n = static_cast<uint64_t>(GetParam().share * index->geometry().slots());
  std::vector<uint64_t> keys(n);
  for (uint64_t& key : keys) ASSERT_TRUE(index.Insert(key = index.NewKey()));
  const double fresh_stash = static_cast<double>(index->stash_used()) / n;
  const double fresh_moves = static_cast<double>(index->displacements()) / n;

  for (int round = 0; round < 2; ++round) {
    for (uint64_t& key : keys) {
      ASSERT_TRUE(index.Remove(key));
      ASSERT_TRUE(index.Insert(key = index.NewKey()));
    }
  }
  const double stash = static_cast<double>(index->stash_used()) / n;
  const double moves = static_cast<double>(index->displacements()) / (2 * n) - fresh_moves / 2;
  std::printf(
      "%2.0f %% of %lu slots (seed %lu): in the stash %.4f %% filled, %.4f %% after churn; moves "
      "per "
      "insert %.3f filling, %.3f churning\n",
      100 * GetParam().share, index->geometry().slots(), kSeed, 100 * fresh_stash, 100 * stash,
      fresh_moves, moves);
  EXPECT_LE(moves, GetParam().moves_per_insert_max);
  // A key that does not exist costs two more READs if its stash tag is set in its home: the stash,
  // and the window again.
  int sent_to_stash = 0;
  constexpr int kMisses = 1'000'000;
  for (int i = 0; i < kMisses; ++i) sent_to_stash += index.SendsToStash(KeyHash(Mix64(i + 1)));
  const double reads_per_miss = 1 + 2.0 * sent_to_stash / kMisses;
  const double reads_per_hit = 1 + stash;
  std::printf("     READs of the index: %.3f a hit, %.3f a miss\n", reads_per_hit, reads_per_miss);
  EXPECT_LE(reads_per_hit, GetParam().reads_per_hit_max);
  EXPECT_LE(reads_per_miss, GetParam().reads_per_miss_max);
  for (uint64_t key : keys) ASSERT_TRUE(index.Find(key));
  index.CheckAll(n);
}

TEST(IndexFillTest, TakesNearlyAllItsSlotsBeforeItRefuses) {
  TestIndex index(1 << 20, 6);
  uint64_t n = 0;
  while (index.Insert(index.NewKey())) ++n;
  const double share = static_cast<double>(n) / index->geometry().slots();
  std::printf("first refusal at %.2f %% of the slots\n", 100 * share);
  EXPECT_GE(share, 0.955);
  index.CheckAll(n);
}

INSTANTIATE_TEST_SUITE_P(Shares, IndexFillSharesTest,
                         testing::Values(Fill{0.50, 1.0, 1.0, 0.01},
                                         Fill{0.75, 1.0005, 1.001, 0.15},
                                         Fill{0.85, 1.002, 1.01, 0.5}, Fill{0.90, 1.006, 1.02, 1.0},
                                         Fill{0.95, 1.018, 1.08, 1.5}));

}  // namespace
}  // namespace gannet
