// A store in a memory file, whose process is killed after any store that it makes to the region.
// The next one has every key as it was, and of an operation that was under way either the state
// before it or the state after it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "common/base/words.h"
#include "server/memory/recovery/survey.h"
#include "server/memory/store/stubs.h"
#include "softverbs/tests/support/sanitizer.h"
#include "tests/server/memory/store/at.h"
#include "tests/server/memory/store/killed_run.h"
#include "tests/server/memory/store/store_trace.h"

namespace gannet {
namespace {

enum class Absent : uint8_t { kIsLost, kMayBe };

// Each key is as before or as after.
::testing::AssertionResult OneOf(const KeyStates& found, const KeyStates& before,
                                 const KeyStates& after, Absent absent = Absent::kIsLost) {
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
    if (absent == Absent::kMayBe && !found.contains(key)) continue;
    return ::testing::AssertionFailure()
           << key << (found.contains(key) ? " has a state that it never had" : " is lost");
  }
  return ::testing::AssertionSuccess();
}

void CopyRegion(std::span<const std::byte> from, std::span<std::byte> to) {
  std::memcpy(to.data(), from.data(), from.size());
}

// Clients find what a store took over: all items and buckets prove themselves for it.
void ExpectProven(std::span<const std::byte> region, size_t items) {
  const auto survey = Survey::Of(region, kRecoveryEnd);
  ASSERT_TRUE(survey.ok()) << survey.status();
  ASSERT_EQ(survey->place().taking_over, 0u);
  ASSERT_EQ(survey->counts().items, items);
  ASSERT_EQ(survey->counts().dropped(), 0u);
  for (const Survey::Table& table : survey->tables()) {
    for (uint64_t i = 0; i < table.geometry.buckets(); ++i) {
      Bucket bucket;
      LoadWords(&bucket, region.data() + table.geometry.BucketOffset(i), sizeof(bucket));
      const uint64_t seed =
          BucketSeed(survey->superblock().incarnation, table.geometry.generation, i);
      ASSERT_TRUE(BucketValid(bucket, seed)) << i;
    }
  }
}

// Every key can be written and deleted, and the memory is as free as it was.
void UseUp(KilledRun& run, Store& store) {
  Writes writes(&store);
  for (const auto& [key, state] : run.States(store)) {
    ASSERT_EQ(writes.Put(key, "new", {}, {}, At(kKilledRunMs)).outcome.status, ReplyStatus::kOk);
    ASSERT_EQ(writes.Delete(key, {}, At(kKilledRunMs)).outcome.status, ReplyStatus::kOk);
  }
  while (store.Tidy(At(kKilledRunMs))) {
  }
  StatsReply stats{};
  store.FillStats(&stats);
  EXPECT_EQ(stats.items, 0u);
  EXPECT_EQ(stats.heap_bytes, 0u) << "blocks of no item";
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
  run.Record(test_support::Part(operations), trace);
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
      // An operation may evict the key that it writes.
      const Absent absent = options.evict ? Absent::kMayBe : Absent::kIsLost;
      ASSERT_TRUE(OneOf(found, step.before, step.after, absent)) << "after store " << at;
      ExpectProven(region.span(), found.size());
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

TEST(MemoryFileTest, KilledWhileTheIndexGrows) {
  KillAtEveryStore({.index_slots = 56, .keys = 160, .value_bytes_max = 20, .large_bytes = 0}, 20,
                   130);
}

// The index does not grow and has no room to spare, so that keys move within it and to its stash.
TEST(MemoryFileTest, KilledWhileKeysMoveInAFullIndex) {
  KillAtEveryStore({.index_slots = 84,
                    .index_grows = false,
                    .keys = 100,
                    .value_bytes_max = 20,
                    .large_bytes = 0},
                   400, 80);
}

TEST(MemoryFileTest, KilledWhileItEvicts) {
  KillAtEveryStore({.region_bytes = 384 << 10,
                    .evict = true,
                    .keys = 80,
                    .value_bytes_max = 3000,
                    .large_bytes = 12000},
                   200, 30);
}

constexpr TierOfStore kFileTier{.number = 7, .segment_bytes = 64 << 20, .segments = 16};

TEST(MemoryFileTest, KilledWhileItMakesStubs) {
  for (const uint64_t seed : {1, 2}) {
    KillAtEveryStore({.evict = true, .tier = kFileTier, .keys = 40, .seed = seed}, 150, 60);
  }
}

TEST(MemoryFileTest, KilledWhileTheIndexGrowsWithStubs) {
  KillAtEveryStore({.index_slots = 56,
                    .evict = true,
                    .tier = kFileTier,
                    .keys = 160,
                    .value_bytes_max = 20,
                    .large_bytes = 0},
                   20, 130);
}

// Those that lead nowhere are deleted, and what is not on a disk stays.
TEST(MemoryFileTest, StubsGoWithTheirTier) {
  KilledRun run({.evict = true, .tier = kFileTier, .keys = 60});
  run.Prepare(400);
  const KeyStates states = run.States(run.store());
  const uint64_t stubs = run.store().stubs()->count();
  ASSERT_GT(stubs, 0u);
  TierOfStore other = kFileTier;
  ++other.number;
  TierOfStore shorter = kFileTier;
  shorter.segment_bytes = kTierBlockBytes;
  TestRegion region(1 << 20);
  for (const std::optional<TierOfStore>& tier :
       {std::optional(kFileTier), std::optional(other), std::optional(shorter),
        std::optional<TierOfStore>()}) {
    CopyRegion(run.region(), region.span());
    EXPECT_EQ(LoadRecoveryHeader(region.span()).format, kRecoveryFormatWithStubs);
    auto store = run.Open(region.span(), 0x5555, tier);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->taken_over()->counts.stubs, stubs);
    EXPECT_EQ(LoadRecoveryHeader(region.span()).format,
              tier ? kRecoveryFormatWithStubs : kRecoveryFormat);
    const KeyStates found = run.States(**store);
    ASSERT_TRUE(OneOf(found, states, {}, Absent::kMayBe));
    const size_t on_disk = static_cast<size_t>(std::ranges::count_if(
        found, [](const auto& it) { return it.second.value.starts_with("on disk"); }));
    EXPECT_EQ(found.size() - on_disk, states.size() - stubs);
    if (!tier || tier->number == other.number) {
      EXPECT_EQ(on_disk, 0u);
    } else if (tier->segment_bytes == shorter.segment_bytes) {
      EXPECT_LT(on_disk, stubs);
    } else {
      EXPECT_EQ(on_disk, stubs);
    }
    UseUp(run, **store);
  }
}

TEST(MemoryFileTest, ACircleGoesOnBehindTheStubsThatWereTakenOver) {
  KilledRun run({.evict = true, .tier = kFileTier, .keys = 1});
  const auto put = [&](std::string_view key, uint64_t position, uint32_t lap) {
    const uint64_t version =
        run.writes().Put(key, std::string(5000, 'v'), {}, {}, At(kKilledRunMs)).outcome.version;
    const TierPlace place{
        .position = position, .lap = lap, .value_bytes = 5000, .version = version};
    ASSERT_TRUE(run.store().stubs()->Make(run.store().HashOf(key), place));
  };
  put("a", kTierBlockBytes, 4);
  put("b", kTierBlockBytes + 2 * kFileTier.segment_bytes - kTierBlockBytes, 4);
  put("c", kTierBlockBytes + 15 * kFileTier.segment_bytes, 3);
  run.Stop();
  auto store = run.Open(run.region(), 0x5555);
  ASSERT_TRUE(store.ok()) << store.status();
  std::vector<uint32_t> laps(16);
  laps[0] = laps[1] = 4;
  laps[15] = 3;
  EXPECT_EQ((*store)->stubs()->Laps(), laps);
  EXPECT_EQ((*store)->stubs()->count(), 3u);
}

// The process that takes over is killed too, after each of its stores.
TEST(MemoryFileTest, KilledWhileItTakesOver) {
  if (!StoreTrace::Supported()) GTEST_SKIP() << "x86-64 only";
  const KilledRun::Options options{.index_slots = 56, .keys = 50};
  KilledRun run(options);
  run.Prepare(150);
  TestRegion first(options.region_bytes), image(options.region_bytes), region(options.region_bytes);
  CopyRegion(run.region(), first.span());
  StoreTrace trace(run.region());
  run.Record(40, trace);
  trace.Stop();
  uint32_t at = 0;
  for (const KilledRun::Step& step : run.steps()) {
    if (step.end == step.begin) continue;
    for (const uint32_t end = step.begin + (step.end - step.begin) / 2; at < end; ++at) {
      StoreWord(first.span().data() + trace.OffsetOf(at), trace.WordAt(trace.OffsetOf(at), at + 1));
    }
    if (step.begin % 5 != 0) continue;  // some of them are enough
    CopyRegion(first.span(), image.span());
    CopyRegion(first.span(), region.span());
    StoreTrace taking_over(region.span());
    auto store = run.Open(region.span(), 0x5555);
    taking_over.Stop();
    ASSERT_TRUE(store.ok()) << store.status();
    const KeyStates states = run.States(**store);
    ASSERT_TRUE(OneOf(states, step.before, step.after));
    store->reset();
    for (uint32_t i = 0; i < taking_over.now(); ++i) {
      const uint64_t offset = taking_over.OffsetOf(i);
      StoreWord(image.span().data() + offset, taking_over.WordAt(offset, i + 1));
      CopyRegion(image.span(), region.span());
      auto again = run.Open(region.span(), 0x6666);
      ASSERT_TRUE(again.ok()) << again.status();
      ASSERT_TRUE(OneOf(run.States(**again), states, states)) << "after store " << i;
      ExpectProven(region.span(), states.size());
      if (::testing::Test::HasFatalFailure()) FAIL() << "after store " << i;
    }
  }
}

// Nothing proves the bytes of a large value, to clients neither.
KeyStates WithoutLargeValues(KeyStates states) {
  for (auto& [key, state] : states) {
    if (state.value.size() > 4000) state.value.assign(state.value.size(), ' ');
  }
  return states;
}

// Whatever is damaged: an error, or the items that are whole.
TEST(MemoryFileTest, DamageIsAnErrorOrLosesItems) {
  const KilledRun::Options options{.index_slots = 200, .keys = 80};
  KilledRun run(options);
  run.Prepare(600);
  const KeyStates states = WithoutLargeValues(run.States(run.store()));
  TestRegion region(options.region_bytes);
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed());
  int opened = 0, lost = 0;
  for (int round = 0; round < 2000; ++round) {
    CopyRegion(run.region(), region.span());
    // Most of the memory is free, so most of the flips are in the part that is used.
    const uint64_t end = round % 4 == 0 ? options.region_bytes : kRecoveryEnd + (160 << 10);
    const uint64_t begin = round % 4 < 2 ? 0 : kRecoveryEnd;
    const int flips = 1 << random() % 12;
    for (int i = 0; i < flips; ++i) {
      region.span()[begin + random() % (end - begin)] ^= std::byte(1 << random() % 8);
    }
    if (round % 16 == 15)
      std::memset(region.span().data() + end / 2, 0, options.region_bytes - end / 2);
    auto store = run.Open(region.span(), 0x5555);
    if (!store.ok()) {
      ASSERT_FALSE(store.status().message().empty());
      continue;
    }
    ++opened;
    const KeyStates found = WithoutLargeValues(run.States(**store));
    ASSERT_TRUE(OneOf(found, states, {}, Absent::kMayBe)) << "round " << round;
    if (found.size() < states.size()) ++lost;
    if (round % 8 == 0) UseUp(run, **store);
  }
  EXPECT_GT(opened, 500);
  EXPECT_GT(lost, 100);
}

TEST(MemoryFileTest, SaysWhatItFound) {
  KilledRun run({.keys = 30});
  run.Prepare(200);
  const KeyStates states = run.States(run.store());
  TestRegion region(1 << 20);
  CopyRegion(run.region(), region.span());
  auto store = run.Open(region.span(), 0x5555);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->taken_over()->stopped_in_order);
  EXPECT_EQ((*store)->taken_over()->counts.items, states.size());
  EXPECT_EQ((*store)->superblock().incarnation, 0x5555u);
  run.Stop();
  store = run.Open(run.region(), 0x6666);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->taken_over()->stopped_in_order);
  EXPECT_EQ(run.States(**store), states);
}

// Also above those of items that are gone, whatever the clock says.
TEST(MemoryFileTest, VersionsGoOnAboveAllThatWereGiven) {
  KilledRun run({.keys = 1});
  const uint64_t given =
      run.writes().Put("gone", "value", {}, {}, At(kKilledRunMs)).outcome.version;
  ASSERT_EQ(run.writes().Delete("gone", {}, At(kKilledRunMs)).outcome.status, ReplyStatus::kOk);
  TestRegion region(1 << 20);
  CopyRegion(run.region(), region.span());
  auto store = run.Open(region.span(), 0x5555);
  ASSERT_TRUE(store.ok()) << store.status();
  Writes writes(store->get());
  EXPECT_GT(writes.Put("gone", "value", {}, {}, At(kKilledRunMs)).outcome.version, given);
}

TEST(MemoryFileTest, ARegionThatIsNoneIsRefused) {
  KilledRun run({.keys = 10});
  run.Prepare(50);
  const auto refused = [&](uint64_t offset, uint64_t value) {
    TestRegion region(1 << 20);
    CopyRegion(run.region(), region.span());
    StoreWord(region.span().data() + kRecoveryOffset + offset, value);
    return run.Open(region.span(), 0x5555).status();
  };
  EXPECT_TRUE(absl::IsDataLoss(refused(offsetof(RecoveryHeader, allocator), 7)));
  TestRegion longer(2 << 20);
  CopyRegion(run.region(), longer.span());
  EXPECT_TRUE(absl::IsInvalidArgument(run.Open(longer.span(), 0x5555).status()));
  TestRegion other(1 << 20);
  std::memset(other.span().data(), 'x', other.span().size());
  EXPECT_TRUE(absl::IsInvalidArgument(run.Open(other.span(), 0x5555).status()));
}

// A write in place would leave neither item if the process were killed meanwhile.
TEST(MemoryFileTest, NothingIsOverwritten) {
  KilledRun run({.keys = 1});
  const uint64_t first = run.writes().Put("key", "value1", {}, {}, At(kKilledRunMs)).outcome.slot;
  EXPECT_NE(run.writes().Put("key", "value2", {}, {}, At(kKilledRunMs)).outcome.slot, first);
  Store::Guess guess;
  run.store().GuessBucket("key", &guess);
  run.store().GuessItem(&guess);
  Store::Update update;
  EXPECT_FALSE(run.store().UpdateInPlace(
      guess, "key", "value3", [] { return 0u; }, &update));
}

}  // namespace
}  // namespace gannet
