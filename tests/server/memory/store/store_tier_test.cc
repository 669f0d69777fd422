// A store with a tier: what is written ahead, what becomes a stub, what goes, and threads that do
// all of it at once.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/words.h"
#include "server/memory/store/stubs.h"
#include "server/memory/tier/tier_buffer.h"
#include "server/memory/tier/tier_writer.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/memory/tier/bad_disk.h"

namespace gannet {
namespace {

constexpr uint64_t kStoreBytes = 4 << 20;
constexpr uint64_t kSegmentBytes = 512 << 10;
constexpr uint64_t kSegments = 16;
constexpr TierOfStore kSomeTierOfStore{
    .number = 0x1122334455667788, .segment_bytes = kSegmentBytes, .segments = kSegments};

std::string KeyOfTier(uint64_t i) {
  return "key" + std::to_string(i) + std::string(i * 13 % 200, '-');
}

// A store, its tier, and who writes there.
class StoreWithTier {
 public:
  explicit StoreWithTier(uint64_t region_bytes = kStoreBytes,
                         uint64_t segment_bytes = kSegmentBytes)
      : tier_{.number = kSomeTierOfStore.number,
              .segment_bytes = segment_bytes,
              .segments = kSegments},
        store_(region_bytes, 1024, /*index_grows=*/true, TestStore::OnFull::kEvict, nullptr,
               tier_) {}

  TestStore& store() { return store_; }
  Stubs& stubs() { return *store_->stubs(); }
  BadDisk& disk() { return disk_; }
  TierWriter& writer() { return writer_; }
  void Poll() {
    now_ns_ += kNsPerSecond / 4;
    writer_.Poll(now_ns_);
  }
  // A step in the background, and what is to be written then.
  void Work() {
    store_->Tidy(At(1));
    WriteAll();
  }
  // What is to be written now.
  void WriteAll() {
    now_ns_ += kNsPerSecond / 4;
    while (writer_.Poll(now_ns_) == TierWriter::Did::kWorked) {
    }
  }
  void PutAndWork(uint64_t i, size_t bytes) {
    ASSERT_EQ(store_.Put(KeyOfTier(i), std::string(bytes, 'v')).status, ReplyStatus::kOk);
    Work();
  }
  // As if the NIC READ the value. Returns false if it is put off.
  bool PutLong(uint64_t i, const std::string& value) {
    return store_.PutReserved(KeyOfTier(i), value).status == ReplyStatus::kOk;
  }
  void Forget(const TierCircle::Segment& segment) { stubs().Forget(segment, &circle_); }
  absl::StatusOr<std::string> Read(const TierPlace& place, std::string_view key) {
    if (!circle_.Pin(place)) return absl::NotFoundError("the segment was taken again");
    const TierBuffer buffer(kTierReadBytesMax);
    const absl::StatusOr<std::string_view> value = circle_.Read(place, key, buffer.bytes());
    circle_.Unpin(place);
    if (!value.ok()) return value.status();
    return std::string(*value);
  }
  // The value, wherever it is. What cannot be read is deleted.
  std::optional<std::string> Get(const std::string& key, uint64_t now_ms = 1) {
    std::string value(64 << 10, ' ');
    const ReadOutcome read = store_->Get(key, std::as_writable_bytes(std::span(value)), At(now_ms));
    if (read.status == ReplyStatus::kOk) return value.substr(0, read.value_bytes);
    if (!read.on_disk) return std::nullopt;
    auto on_disk = Read(*read.on_disk, key);
    if (on_disk.ok()) {
      stubs().Promote(store_->HashOf(key), *read.on_disk, key, *on_disk);
      return *std::move(on_disk);
    }
    stubs().Delete(store_->HashOf(key), *read.on_disk);
    return std::nullopt;
  }

 private:
  const TierOfStore tier_;
  BadDisk disk_{kTierBlockBytes + kSegments * tier_.segment_bytes};
  TestStore store_;
  TierCircle circle_{{.file = &disk_,
                      .tier = tier_.number,
                      .segment_bytes = tier_.segment_bytes,
                      .segments = kSegments,
                      .laps = {}}};
  TierWriter writer_{&circle_, &stubs()};
  int64_t now_ns_ = 0;
};

// The set is longer than the memory, and the tier has room for all of it. Some items are evicted to
// make room for stubs in one piece.
TEST(StoreTierTest, WhatIsEvictedIsOnTheDisk) {
  StoreWithTier tier;
  constexpr uint64_t kItems = 800;
  for (uint64_t i = 0; i < kItems; ++i) tier.PutAndWork(i, 8000);
  EXPECT_GT(tier.stubs().count(), kItems / 3);
  uint64_t found = 0;
  for (uint64_t i = 0; i < kItems; ++i) {
    found += tier.Get(KeyOfTier(i)) == std::string(8000, 'v');
  }
  EXPECT_EQ(found, tier.store().Stats().items);
  EXPECT_GT(found, kItems * 95 / 100);
  EXPECT_LT(tier.writer().records_written(), tier.stubs().counts().made + 80)
      << "no more is written ahead than will soon be evicted";
}

constexpr uint64_t kLongStoreBytes = 24 << 20;
constexpr uint64_t kManyPuts = 240;
std::string KeyOfLong(uint64_t i) { return std::string(50, 'k') + std::to_string(100 + i); }
StoreWithTier LongValues(uint64_t store_bytes = kLongStoreBytes) {
  return StoreWithTier(store_bytes, 8 << 20);
}

// Puts more than the memory has room for, eight at once, on a disk that is fast. The background
// steps seldom. Returns how many are lost.
uint64_t LostOfManyPuts(std::span<const size_t> lengths, uint64_t store_bytes = kLongStoreBytes) {
  StoreWithTier tier = LongValues(store_bytes);
  constexpr uint64_t kAtOnce = 8;
  constexpr uint64_t kTidiedOnceIn = 64;
  constexpr uint64_t kTriesMax = 100;
  for (uint64_t i = 0; i < kManyPuts; ++i) {
    const std::string value(lengths[i % lengths.size()], 'v');
    uint64_t tries = 1;
    while (tries < kTriesMax && !tier.PutLong(i, value)) {
      tier.WriteAll();
      ++tries;
    }
    EXPECT_LT(tries, kTriesMax) << "the disk is fast";
    if (i % kAtOnce == kAtOnce - 1) tier.WriteAll();
    if (i % kTidiedOnceIn == kTidiedOnceIn - 1) tier.store()->Tidy(At(1));
  }
  EXPECT_GT(tier.stubs().count(), kManyPuts / 4);
  uint64_t lost = 0;
  for (uint64_t i = 0; i < kManyPuts; ++i) {
    lost += tier.store()->Get(KeyOfTier(i), {}, At(1)).status == ReplyStatus::kNotFound;
  }
  return lost;
}

TEST(StoreTierTest, LongValuesAreWrittenBeforeTheyGo) {
  EXPECT_EQ(LostOfManyPuts(std::array<size_t, 1>{300 << 10}), 0u);
}

TEST(StoreTierTest, LongValuesOfManyLengthsAreWrittenBeforeTheyGo) {
  EXPECT_EQ(
      LostOfManyPuts(std::array<size_t, 5>{300 << 10, 64 << 10, 1 << 20, 520 << 10, 40 << 10}), 0u);
}

// Many are put at once, while the writer works, and take most of a small memory before they are
// committed. So some of it has to be cleared in one piece, where stubs are, too.
TEST(StoreTierTest, NoLongValueIsLostWhileManyArePut) {
  std::mt19937_64 random(test_support::TestSeed());
  const auto once_in = [&random](uint64_t n) { return random() % n == 0; };
  for (int life = 0; life < 20; ++life) {
    const std::string value((random() % 8 + 1) * (48 << 10), 'v');
    const uint64_t at_once = 4 + random() % (4 << 20) / value.size();
    const uint64_t tidied = 8 + random() % 64;
    const uint64_t written = 1 + random() % 32;
    const uint64_t committed = 1 + random() % 16;
    StoreWithTier tier = LongValues(8 << 20);
    std::map<uint64_t, std::optional<Store::Reservation>> puts;
    uint64_t begun = 0;
    uint64_t steps = 0;
    for (; (begun < kManyPuts || !puts.empty()) && steps < 1000 * kManyPuts; ++steps) {
      if (begun < kManyPuts && puts.size() < at_once) puts.try_emplace(begun++);
      if (once_in(tidied)) tier.store()->Tidy(At(1));
      if (once_in(written)) tier.Poll();
      const auto put = std::next(puts.begin(), static_cast<ptrdiff_t>(random() % puts.size()));
      auto& [i, reservation] = *put;
      if (!reservation) {
        reservation = tier.store()->Reserve(KeyOfLong(i), value.size(), At(1));
      } else if (once_in(committed)) {
        StoreValueAt(reservation->value.data(), value);
        ASSERT_EQ(tier.store().CommitPut(*reservation, KeyOfLong(i)), ReplyStatus::kOk);
        puts.erase(put);
      }
    }
    EXPECT_EQ(begun, kManyPuts);
    EXPECT_TRUE(puts.empty()) << "the disk is fast";
    for (uint64_t i = 0; i < kManyPuts; ++i) {
      ASSERT_NE(tier.store()->Get(KeyOfLong(i), {}, At(1)).status, ReplyStatus::kNotFound)
          << i << " in life " << life;
    }
  }
}

// One that is short does not wait, and what is not written yet may go for it.
TEST(StoreTierTest, FewLongValuesAreLostForShortOnes) {
  EXPECT_LT(
      LostOfManyPuts(std::array<size_t, 5>{300 << 10, 64 << 10, 1 << 20, 520 << 10, 20 << 10}),
      kManyPuts * 3 / 100);
}

TEST(StoreTierTest, LongValuesWaitForADiskOnlyAsLongAsItWrites) {
  StoreWithTier tier = LongValues();
  const std::string value(300 << 10, 'v');
  uint64_t i = 0;
  for (; tier.stubs().counts().made < 10; ++i) {
    tier.PutLong(i, value);
    tier.WriteAll();
  }
  // It hangs.
  while (tier.PutLong(i, value)) ++i;
  const uint64_t made = tier.stubs().counts().made;
  uint64_t steps = 0;
  for (; steps < 1000 && !tier.PutLong(i, value); ++steps) tier.store()->Tidy(At(1));
  EXPECT_GT(steps, 10u);
  EXPECT_LT(steps, 200u);
  EXPECT_TRUE(tier.PutLong(++i, value)) << "nobody waits any more";
  EXPECT_EQ(tier.stubs().counts().made, made);
  // It works again, and then it fails.
  tier.WriteAll();
  while (tier.PutLong(i, value)) ++i;
  tier.disk().SetWrites(BadDisk::Write::kFails);
  tier.WriteAll();
  for (uint64_t n = 0; n < 100; ++n) EXPECT_TRUE(tier.PutLong(i + n, value)) << n;
}

TEST(StoreTierTest, OnlyValuesThatATierTakesAreWritten) {
  StoreWithTier tier;
  for (uint64_t i = 0; i < 2000; ++i) tier.PutAndWork(i, 4000);
  EXPECT_EQ(tier.writer().records_written(), 0u);
  EXPECT_GT(tier.store().Stats().items_evicted, 500u);
}

TEST(StoreTierTest, ADiskThatIsFullHasItemsEvictedAsWithout) {
  StoreWithTier tier;
  for (uint64_t i = 0; i < 600; ++i) tier.PutAndWork(i, 8000);
  const uint64_t made = tier.stubs().counts().made;
  EXPECT_GT(made, 0u);
  tier.disk().SetWrites(BadDisk::Write::kNoSpace);
  for (uint64_t i = 0; i < 400; ++i) tier.PutAndWork(1000 + i, 8000);
  EXPECT_LT(tier.stubs().counts().made, made + 100);
  EXPECT_GT(tier.store().Stats().items_evicted, 200u);
  EXPECT_GT(tier.writer().records_dropped(), 0u);
  const uint64_t made_until_full = tier.stubs().counts().made;
  tier.disk().SetWrites(BadDisk::Write::kDone);
  for (uint64_t i = 0; i < 200; ++i) tier.PutAndWork(2000 + i, 8000);
  EXPECT_GT(tier.stubs().counts().made, made_until_full + 100)
      << "what was not written is chosen again";
}

// Also if its segment has no list.
TEST(StoreTierTest, TheValueOfALockedKeyComesBackBeforeItsSegmentGoes) {
  for (const bool lists : {true, false}) {
    StoreWithTier tier;
    std::map<uint64_t, TierPlace> locked;
    uint64_t i = 0;
    while (locked.size() < 3) {
      tier.PutAndWork(i++, 8000);
      for (uint64_t n = 0; n < i && locked.size() < 3; ++n) {
        const ReadOutcome read = tier.store()->Get(KeyOfTier(n), {}, At(1));
        if (!read.on_disk) continue;
        tier.store().LockWordOf(KeyOfTier(n)) = 1;
        locked[n] = *read.on_disk;
      }
    }
    const uint64_t touched = locked.begin()->first;
    tier.store().Touch(KeyOfTier(touched), 1'000'000);
    // Others lead to the first segment, too.
    while (tier.stubs().count() < 20) tier.PutAndWork(i++, 8000);
    if (lists) {
      while (tier.writer().segments_taken() <= kSegments && !testing::Test::HasFailure()) {
        tier.PutAndWork(i++, 8000);
      }
    } else {
      tier.Forget({.begin = kTierBlockBytes,
                   .end = kTierBlockBytes + kSegmentBytes,
                   .lap = 1,
                   .list = std::nullopt});
    }
    EXPECT_EQ(tier.stubs().counts().brought_back, 3u);
    EXPECT_GT(tier.stubs().counts().forgotten, 0u);
    for (const auto& [n, place] : locked) {
      EXPECT_TRUE(tier.store().Get(KeyOfTier(n)) == std::string(8000, 'v')) << n;
      const ReadOutcome read = tier.store()->Get(KeyOfTier(n), {}, At(1));
      EXPECT_EQ(read.version != place.version, n == touched);
      EXPECT_EQ(read.attributes.expiry, ExpiresAt(n == touched ? 1'000'000 : 0));
    }
  }
}

// A quarter of the memory, and then the stubs go whose records are the oldest.
TEST(StoreTierTest, StubsTakeNoMoreThanTheirShare) {
  TestStore store(1 << 20, 0, /*index_grows=*/true, TestStore::OnFull::kEvict, nullptr,
                  kSomeTierOfStore);
  uint64_t highest = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    const std::string key = KeyOfTier(i);
    const WriteOutcome put = store.Put(key, std::string(4096, 'v'));
    ASSERT_EQ(put.status, ReplyStatus::kOk);
    const TierPlace place{.position = kTierBlockBytes + i * 64,
                          .lap = 1,
                          .value_bytes = 4096,
                          .version = put.version};
    store->stubs()->Make(store->HashOf(key), place);
    store->Tidy(At(1));
    highest = std::max(highest, store->stubs()->bytes());
  }
  EXPECT_LE(highest, store->heap().capacity_bytes() / 4);
  EXPECT_GT(highest, store->heap().capacity_bytes() / 5);
  EXPECT_GT(store->stubs()->counts().evicted, 1000u);
  uint64_t old = 0, young = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    old += store->Get(KeyOfTier(i), {}, At(1)).on_disk.has_value();
    young += store->Get(KeyOfTier(3000 + i), {}, At(1)).on_disk.has_value();
  }
  EXPECT_GT(young, 5 * old + 500);
}

// Workers, the thread that tidies and the one that writes, all at once.
TEST(StoreTierTest, Threads) {
  StoreWithTier tier;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> on_disk{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop) tier.Poll();
  });
  threads.emplace_back([&] {
    while (!stop) tier.store()->Tidy(At(1));
  });
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&tier, &on_disk, t] {
      std::mt19937_64 random(t);
      std::map<uint64_t, std::string> values;
      // At least some values are read from the disk, however the threads run.
      for (int i = 0; i < 3000 || (on_disk < 100 && i < 200'000); ++i) {
        const uint64_t n = t + 3 * (random() % 400);
        const std::string key = KeyOfTier(n);
        if (random() % 2 == 0) {
          const std::string value = std::string(4096 + random() % 9000, 'v') + std::to_string(i);
          if (tier.store().Put(key, value).status == ReplyStatus::kOk) values[n] = value;
          continue;
        }
        on_disk += tier.store()->Get(key, {}, At(1)).on_disk.has_value();
        const std::optional<std::string> value = tier.Get(key);
        EXPECT_TRUE(!value || *value == values[n]) << key;
      }
    });
  }
  for (size_t i = 2; i < threads.size(); ++i) threads[i].join();
  stop = true;
  for (size_t i = 0; i < 2; ++i) threads[i].join();
  EXPECT_GE(on_disk, 100u);
  std::cout << on_disk << " values from the disk, " << tier.stubs().counts().made << " stubs, "
            << tier.stubs().counts().forgotten << " forgotten, "
            << tier.store().Stats().items_evicted << " items evicted" << std::endl;
}

}  // namespace
}  // namespace gannet
