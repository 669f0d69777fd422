// A store in a memory file, whose process is killed after any store that it makes to the region. The
// next one has every key as it was, and of an operation that was under way either the state before
// it or the state after it.

#include <gtest/gtest.h>

#include <cstring>

#include "common/base/words.h"
#include "server/recovery/recovery_area.h"
#include "tests/server/store/killed_run.h"
#include "tests/server/store/store_trace.h"

namespace gannet {
namespace {

constexpr uint64_t kNowMs = 1'000;

// Each key is as before or as after.
::testing::AssertionResult OneOf(const KeyStates& found, const KeyStates& before,
                                 const KeyStates& after) {
  const auto same = [](const KeyStates& a, const KeyStates& b, const std::string& key) {
    const auto in_a = a.find(key);
    const auto in_b = b.find(key);
    if (in_a == a.end() || in_b == b.end()) return in_a == a.end() && in_b == b.end();
    return in_a->second == in_b->second;
  };
  KeyStates keys = before;
  keys.insert(after.begin(), after.end());
  keys.insert(found.begin(), found.end());
  for (const auto& [key, state] : keys) {
    if (same(found, before, key) || same(found, after, key)) continue;
    return ::testing::AssertionFailure()
           << key << (found.contains(key) ? " has a state that it never had" : " is lost");
  }
  return ::testing::AssertionSuccess();
}

void CopyRegion(std::span<const std::byte> from, std::span<std::byte> to) {
  std::memcpy(to.data(), from.data(), from.size());
}

// Every key can be written and deleted, and the memory is as free as it was.
void UseUp(KilledRun& run, Store& store) {
  for (const auto& [key, state] : run.States(store)) {
    ASSERT_EQ(store.Put(key, "new", {}, {}, kNowMs).status, ReplyStatus::kOk);
    ASSERT_EQ(store.Delete(key, {}, kNowMs).status, ReplyStatus::kOk);
  }
  while (store.Tidy(kNowMs)) {
  }
  StatsReply stats{};
  store.FillStats(&stats);
  EXPECT_EQ(stats.items, 0u);
  EXPECT_EQ(stats.heap_bytes, 0u);
}

// Kills the process after each store of some operations, and restarts.
void KillAtEveryStore(const KilledRun::Options& options, int prepare, int operations) {
  if (!StoreTrace::Supported()) GTEST_SKIP() << "x86-64 only";
  KilledRun run(options);
  run.Prepare(prepare);
  TestRegion image(options.region_bytes);
  TestRegion region(options.region_bytes);
  CopyRegion(run.region(), image.span());
  StoreTrace trace(run.region());
  run.Record(operations, trace);
  trace.Stop();
  ASSERT_TRUE(trace.Complete());
  uint32_t at = 0;
  for (const KilledRun::Step& step : run.steps()) {
    for (; at <= step.end; ++at) {
      if (at > step.begin) {
        const uint64_t offset = trace.OffsetOf(at - 1);
        StoreWord(image.span().data() + offset, trace.WordAt(offset, at));
      }
      CopyRegion(image.span(), region.span());
      auto store = run.Open(region.span(), 0x5555);
      ASSERT_TRUE(store.ok()) << store.status() << " after store " << at;
      ASSERT_TRUE((*store)->taken_over().has_value());
      ASSERT_EQ((*store)->taken_over()->counts.dropped(), 0u) << "after store " << at;
      const KeyStates found = run.States(**store);
      ASSERT_TRUE(OneOf(found, step.before, step.after)) << "after store " << at;
      if (at == step.end) {
        ASSERT_TRUE(OneOf(found, step.after, step.after)) << at;
      }
      if (at % 16 == 0) UseUp(run, **store);
    }
  }
}

TEST(MemoryFileTest, KilledAtAnyStoreOfAnyOperation) {
  for (const uint64_t seed : {1, 2}) KillAtEveryStore({.seed = seed}, 150, 60);
}

}  // namespace
}  // namespace gannet
