// Several threads take over what a former process left.

#include "server/memory/store/adopter.h"

#include <gtest/gtest.h>

#include <cstring>

#include "softverbs/tests/support/test_seed.h"
#include "tests/server/memory/store/at.h"
#include "tests/server/memory/store/killed_run.h"

namespace gannet {
namespace {

constexpr uint32_t kThreads = 4;
// All items with an expiry have expired (KilledRun).
constexpr uint64_t kExpiredMs = 2'000'000;

// Opens a copy of the region, as the next process would.
class NextProcess {
 public:
  NextProcess(KilledRun& run, std::span<const std::byte> left) : region_(left.size()) {
    std::memcpy(region_.span().data(), left.data(), left.size());
    auto store = run.Open(region_.span(), 0x5555);
    EXPECT_TRUE(store.ok()) << store.status();
    if (store.ok()) store_ = *std::move(store);
  }
  Store* store() { return store_.get(); }
  StatsReply Stats() const {
    StatsReply stats{};
    store_->FillStats(&stats);
    return stats;
  }

 private:
  TestRegion region_;
  std::unique_ptr<Store> store_;
};

KilledRun::Options Options(uint64_t seed, uint32_t threads) {
  return {.region_bytes = 2 << 20,
          .index_slots = 112,
          .keys = 400,
          .value_bytes_max = 200,
          .seed = seed,
          .take_over_threads = threads};
}

// The index grows meanwhile, so some moments are in the midst of that.
TEST(AdopterTest, ThreadsTakeOverWhatOneTakesOver) {
  const uint64_t seed = test_support::TestSeed();
  KilledRun one(Options(seed, 1));
  KilledRun several(Options(seed, kThreads));
  for (int moment = 0; moment < 30; ++moment) {
    one.Prepare(60);
    const KeyStates states = one.States(one.store());
    NextProcess by_one(one, one.region());
    NextProcess by_several(several, one.region());
    ASSERT_NE(by_one.store(), nullptr);
    ASSERT_NE(by_several.store(), nullptr);
    ASSERT_EQ(one.States(*by_several.store()), states);
    const SurveyCounts& counts = by_several.store()->taken_over()->counts;
    EXPECT_EQ(counts.items, states.size());
    EXPECT_EQ(counts.dropped(), 0u);
    EXPECT_EQ(counts.item_bytes, by_one.store()->taken_over()->counts.item_bytes);
    EXPECT_EQ(by_several.Stats().heap_bytes, by_one.Stats().heap_bytes);
  }
}

TEST(AdopterTest, ThreadsNoteWhenItemsExpire) {
  KilledRun run(Options(test_support::TestSeed(), kThreads));
  run.Prepare(2000);
  NextProcess next(run, run.region());
  ASSERT_NE(next.store(), nullptr);
  uint64_t for_ever = 0;
  const KeyStates states = run.States(*next.store());
  for (const auto& [key, state] : states) for_ever += state.attributes.expiry.never();
  ASSERT_LT(for_ever, states.size());
  EXPECT_EQ(next.Stats().items_expiring, states.size() - for_ever);
  while (next.store()->Tidy(At(kExpiredMs))) {
  }
  EXPECT_EQ(next.Stats().items, for_ever);
  EXPECT_EQ(next.Stats().items_expiring, 0u);
}

// Bits are flipped: items are lost, and no thread reads or writes where none may be.
TEST(AdopterTest, ThreadsDropWhatIsDamaged) {
  KilledRun run(Options(1, kThreads));
  run.Prepare(2000);
  const KeyStates states = run.States(run.store());
  std::mt19937_64 random(test_support::TestSeed());
  TestRegion damaged(run.region().size());
  for (int round = 0; round < 100; ++round) {
    std::memcpy(damaged.span().data(), run.region().data(), damaged.span().size());
    for (int flip = 0; flip < 200; ++flip) {
      const uint64_t at = kRecoveryEnd + random() % (256 << 10);
      damaged.span()[at] ^= std::byte(1 << random() % 8);
    }
    auto store = run.Open(damaged.span(), 0x5555);
    if (!store.ok()) continue;
    for (const auto& [key, state] : run.States(**store)) {
      ASSERT_TRUE(states.contains(key)) << key;
      // Nothing proves the bytes of a large value, to clients neither.
      if (state.value.size() < 4000) {
        ASSERT_EQ(state, states.at(key)) << key;
      }
    }
  }
}

}  // namespace
}  // namespace gannet
