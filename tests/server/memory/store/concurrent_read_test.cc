// Readers do the client's lookup on the region while writers insert, update, move and delete. Every
// answer must be one that the key had at some moment during the lookup.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/base/client_clock.h"
#include "common/base/words.h"
#include "common/lookup/lookup.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

// The history of one key with one writer: its state after write number n. The writer notes when it
// begins a write and when the write is acknowledged, so a reader knows which states its lookup may
// have met.
class KeyHistory {
 public:
  explicit KeyHistory(size_t writes) : present_(writes + 1) {}

  uint32_t Begin(bool present) {
    const uint32_t n = acknowledged_.load(std::memory_order_relaxed) + 1;
    present_[n].store(present, std::memory_order_relaxed);
    // Release: a reader that sees the write begun sees what it writes.
    begun_.store(n, std::memory_order_release);
    return n;
  }
  // Notes that the last write begun was an insert that had no effect.
  void Refuse(uint32_t n) { present_[n].store(false, std::memory_order_relaxed); }
  void Acknowledge(uint32_t n) { acknowledged_.store(n, std::memory_order_release); }
  bool Full() const { return acknowledged_.load(std::memory_order_relaxed) + 1 >= present_.size(); }
  bool PresentNow() const {
    return present_[acknowledged_.load(std::memory_order_relaxed)].load(std::memory_order_relaxed);
  }

  uint32_t acknowledged() const { return acknowledged_.load(std::memory_order_acquire); }
  uint32_t begun() const { return begun_.load(std::memory_order_acquire); }
  bool PresentAfter(uint32_t n) const { return present_[n].load(std::memory_order_relaxed); }

 private:
  std::vector<std::atomic<bool>> present_;  // [0]: before the first write
  std::atomic<uint32_t> begun_{0};
  std::atomic<uint32_t> acknowledged_{0};
};

std::string KeyName(size_t key) { return "key-" + std::to_string(key); }

std::string ValueOf(size_t key, uint32_t n) {
  static constexpr size_t kLengths[] = {16,  40,  40,  41,   41,   41,  60,
                                        100, 500, 900, 1500, 3000, 5000};
  std::string value(kLengths[Mix64(key * 1000 + n) % std::size(kLengths)], '\0');
  const uint64_t head = static_cast<uint64_t>(key) << 32 | n;
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(Mix64(head + i / 8) + i);
  std::memcpy(value.data(), &head, sizeof(head));
  return value;
}

struct Plan {
  uint64_t seed = 0;
  int writers = 2;
  int readers = 2;
  size_t keys = 0;
  size_t writes_per_key = 0;
  uint64_t index_slots = 0;
};

class ConcurrentRead {
 public:
  explicit ConcurrentRead(const Plan& plan)
      : plan_(plan), store_(plan.keys * 6000 + (1 << 20), plan.index_slots) {
    for (size_t key = 0; key < plan.keys; ++key) histories_.emplace_back(plan.writes_per_key);
    const Superblock& superblock = store_->superblock();
    view_ = {superblock.incarnation, superblock.hash_seed, superblock.region_bytes,
             superblock.index};
  }

  void Run() {
    std::vector<std::thread> readers, writers;
    for (int id = 0; id < plan_.writers; ++id) writers.emplace_back([this, id] { Write(id); });
    for (int id = 0; id < plan_.readers; ++id) readers.emplace_back([this, id] { Read(id); });
    for (auto& writer : writers) writer.join();
    stop_.store(true, std::memory_order_relaxed);
    for (auto& reader : readers) reader.join();
    const StatsReply stats = store_.Stats();
    std::printf(
        "hits %lu, misses %lu, asked %lu, refused %lu; moves %lu, in the stash %lu, %.1f %% full\n",
        hits_.load(), misses_.load(), asked_.load(), refused_.load(), stats.displacements,
        stats.stash_used, 100.0 * stats.slots_used / stats.slots_total);
    EXPECT_GT(hits_, 0u);
    EXPECT_GT(store_.updates_in_place(), 0u);
    EXPECT_GT(misses_, 0u);
    EXPECT_GT(stats.items_moved, 0u);
    EXPECT_GT(stats.items_expired, 0u);
    EXPECT_GT(stats.displacements + stats.stash_used, 0u);
  }

 private:
  // Moves items, and stores others that expire at once. Those go when a writer needs their slots,
  // or by a sweep.
  void Tidy(std::mt19937_64& random) {
    store_.GeneralPut("doomed-" + std::to_string(random() % 16), std::string(random() % 100, 'd'),
                      {.expiry = ExpiresAt(1)}, {}, At(0));
    store_->Compact(4);
    if (random() % 16 == 0) store_->Sweep(At(1), 4);
  }

  void Write(int id) {
    std::mt19937_64 random(plan_.seed + id);
    std::vector<size_t> mine;
    for (size_t key = id; key < plan_.keys; key += plan_.writers) mine.push_back(key);
    while (!mine.empty()) {
      std::swap(mine[random() % mine.size()], mine.back());
      const size_t key = mine.back();
      KeyHistory& history = histories_[key];
      if (history.Full()) {
        mine.pop_back();
        continue;
      }
      const bool remove = history.PresentNow() && random() % 100 < 15;
      const uint32_t n = history.Begin(!remove);
      const WriteOutcome outcome = remove ? store_.Delete(KeyName(key))
                                   : random() % 2
                                       ? store_.Put(KeyName(key), ValueOf(key, n))
                                       : store_.PutReserved(KeyName(key), ValueOf(key, n));
      if (outcome.status == ReplyStatus::kIndexFull) {
        ASSERT_FALSE(history.PresentAfter(n - 1));  // only a new key needs a slot
        history.Refuse(n);
        refused_.fetch_add(1, std::memory_order_relaxed);
      } else {
        ASSERT_EQ(outcome.status, ReplyStatus::kOk);
      }
      history.Acknowledge(n);
      if (random() % 8 == 0) Tidy(random);
    }
  }

  void Read(int id) {
    std::mt19937_64 random(plan_.seed + 1000 + id);
    std::vector<Slot> cached(plan_.keys);
    while (!stop_.load(std::memory_order_relaxed) && !testing::Test::HasFailure()) {
      const size_t key = random() % plan_.keys;
      if (random() % 2 == 0) cached[key] = Slot();
      LookUp(key, &cached[key], random);
    }
  }

  void LookUp(size_t key, Slot* cached, std::mt19937_64& random) {
    const KeyHistory& history = histories_[key];
    const std::string name = KeyName(key);
    const KeyHash hash = KeyHash::Of(name, view_.hash_seed);
    const uint32_t first = history.acknowledged();

    alignas(8) std::byte windows[2][kWindowBytes];
    std::vector<std::byte> item(4096 + sizeof(ItemHeader));
    Lookup lookup;
    auto step = lookup.Start(&view_, name, hash, *cached);
    std::string large;
    while (step == Lookup::Step::kRead || step == Lookup::Step::kReadValue) {
      if (step == Lookup::Step::kReadValue) {
        large.resize(lookup.large().item.value_bytes);
        ReadWordsInAnyOrder(lookup.value_offset(), large.size(),
                            reinterpret_cast<std::byte*>(large.data()), random);
        step = lookup.OnValue();
        continue;
      }
      const Lookup::ReadPlan& plan = lookup.plan();
      std::byte* to = plan.target == Lookup::Target::kItem ? item.data()
                                                           : windows[static_cast<int>(plan.target)];
      if (plan.bytes > item.size()) item.resize(plan.bytes), to = item.data();
      const int64_t posted_ns = MonotonicNs();
      ReadWordsInAnyOrder(plan.offset, plan.bytes, to, random);
      step = lookup.OnRead({{windows[0], windows[1]}, item.data()}, posted_ns, ClientClock::Real());
    }
    // The lookup ended before this, so it met one of the states first .. last.
    const uint32_t last = history.begun();
    if (step == Lookup::Step::kHit) {
      *cached = lookup.slot();
      uint64_t head = 0;
      const bool is_large = IsLargeClass(lookup.slot().size_class());
      const std::string_view value = is_large ? large : lookup.item().value;
      ASSERT_GE(value.size(), sizeof(head));
      std::memcpy(&head, value.data(), sizeof(head));
      const uint32_t n = static_cast<uint32_t>(head);
      ASSERT_EQ(value, ValueOf(key, n)) << name;
      ASSERT_TRUE(first <= n && n <= last && history.PresentAfter(n))
          << name << ": write " << n << " seen, " << first << " acknowledged before, " << last
          << " begun after";
      hits_.fetch_add(1, std::memory_order_relaxed);
    } else if (step == Lookup::Step::kMiss) {
      bool absent = false;
      for (uint32_t n = first; n <= last; ++n) absent |= !history.PresentAfter(n);
      ASSERT_TRUE(absent) << name << ": false miss between writes " << first << " and " << last;
      misses_.fetch_add(1, std::memory_order_relaxed);
    } else {
      asked_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // A READ: samples every aligned word once, in any order. The next READ samples later.
  void ReadWordsInAnyOrder(uint64_t offset, uint32_t bytes, std::byte* to,
                           std::mt19937_64& random) {
    const uint32_t words = bytes / 8;
    const uint32_t start = random() % words;
    const uint32_t step = random() % 2 == 0 ? 1 : words - 1;
    uint32_t at = start;
    for (uint32_t i = 0; i < words; ++i, at = (at + step) % words) {
      const uint64_t word = LoadWord(store_.region().data() + offset + at * 8);
      std::memcpy(to + at * 8, &word, sizeof(word));
    }
    std::atomic_thread_fence(std::memory_order_acquire);
  }

  const Plan plan_;
  TestStore store_;
  IndexView view_;
  std::deque<KeyHistory> histories_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> hits_{0}, misses_{0}, asked_{0}, refused_{0};
};

// Few buckets, nearly full, so there is displacement, stash and reuse of blocks all the time.
TEST(ConcurrentReadTest, NeverAFalseMissNorAWrongValueInACrowdedIndex) {
  for (uint64_t seed : {1, 2}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ConcurrentRead({.seed = seed, .keys = 560, .writes_per_key = 400, .index_slots = 500}).Run();
  }
}

TEST(ConcurrentReadTest, NeverAFalseMissNorAWrongValueOnFewHotKeys) {
  ConcurrentRead({.seed = 3, .keys = 56, .writes_per_key = 3000, .index_slots = 50}).Run();
}

TEST(ConcurrentReadTest, ManyWritersOverManyRanges) {
  ConcurrentRead({.seed = 4,
                  .writers = 3,
                  .readers = 1,
                  .keys = 30'000,
                  .writes_per_key = 4,
                  .index_slots = 27'500})
      .Run();
}

}  // namespace
}  // namespace gannet
