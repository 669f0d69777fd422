// Random operations on the store and on a map that does the same in a simple way.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

struct Expected {
  std::string value;
  uint64_t version;
  ItemAttributes attributes;
};

class Oracle {
 public:
  // `alone` means that there are no other keys, so that no other clock decides what has expired.
  Oracle(TestStore& store, std::string prefix, uint64_t seed, bool alone = true)
      : store_(store), prefix_(std::move(prefix)), alone_(alone), random_(seed) {}

  void Step() {
    now_ms_ += random_() % 3;
    const std::string key = prefix_ + std::to_string(random_() % 400);
    switch (random_() % 10) {
      case 0:
      case 1:
      case 2:
      case 3:
        return Put(key);
      case 4:
      case 5:
        return Delete(key);
      case 6:
        return Abandon(key);
      case 7:
        return Tidy();
      default:
        return Get(key);
    }
  }

  void Tidy() {
    switch (random_() % 50) {
      case 0:
        if (alone_) store_->Sweep(At(now_ms_), 20);
        return;
      case 1:
        if (alone_) store_->Tidy(At(now_ms_));
        return;
      case 2:
        store_->Compact(20);
        return;
    }
  }

  void CheckAll() {
    for (int i = 0; i < 400; ++i) Get(prefix_ + std::to_string(i));
  }
  uint64_t items_at_most() const { return items_.size(); }
  uint64_t expiring_at_most() const {
    return static_cast<uint64_t>(std::ranges::count_if(
        items_, [](const auto& item) { return !item.second.attributes.expiry.never(); }));
  }
  int refused() const { return refused_; }
  uint64_t now_ms() const { return now_ms_; }

 private:
  const Expected* Find(const std::string& key) {
    const auto item = items_.find(key);
    if (item == items_.end()) return nullptr;
    const uint64_t expiry_ms = item->second.attributes.expiry.ms();
    if (expiry_ms != 0 && expiry_ms <= now_ms_) {
      items_.erase(item);
      return nullptr;
    }
    return &item->second;
  }

  void Get(const std::string& key) {
    const Expected* expected = Find(key);
    std::string value(8000, '\0');
    const auto read = store_->Get(key, std::as_writable_bytes(std::span(value)), At(now_ms_));
    if (expected == nullptr) {
      ASSERT_EQ(read.status, ReplyStatus::kNotFound) << key;
      return;
    }
    ASSERT_EQ(read.status, ReplyStatus::kOk) << key;
    ASSERT_EQ(value.substr(0, read.value_bytes), expected->value);
    ASSERT_EQ(read.version, expected->version);
    ASSERT_EQ(read.attributes.flags, expected->attributes.flags);
    ASSERT_EQ(read.attributes.expiry.ms(), expected->attributes.expiry.ms());
  }

  // Picks conditions that hold or not. Returns what the store must answer.
  ReplyStatus PickConditions(const std::string& key, const Expected* expected,
                             WriteConditions* conditions) {
    const uint64_t version = expected == nullptr ? 0 : expected->version;
    switch (random_() % 9) {
      case 0:
        conditions->only_if_absent = true;
        return expected == nullptr ? ReplyStatus::kOk : ReplyStatus::kExists;
      case 1:
        conditions->only_if_version = version;
        return ReplyStatus::kOk;
      case 2:
        conditions->only_if_version = version + 1;
        return ReplyStatus::kVersionMismatch;
      case 3:
        conditions->only_if_version = version;
        conditions->under_lock = store_.LockWordOf(key);
        return ReplyStatus::kOk;
      case 4:
        conditions->under_lock = store_.LockWordOf(key) + 1;
        return ReplyStatus::kLockLost;
      default:
        return ReplyStatus::kOk;
    }
  }

  void Put(const std::string& key) {
    const Expected* expected = Find(key);
    const uint64_t version_before = expected == nullptr ? 0 : expected->version;
    WriteConditions conditions;
    const ReplyStatus want = PickConditions(key, expected, &conditions);
    const ItemAttributes attributes{
        static_cast<uint32_t>(random_()),
        ExpiresAt(alone_ && random_() % 3 == 0 ? now_ms_ + 1 + random_() % 3000 : 0)};
    static constexpr size_t kLengths[] = {0, 20, 60, 64, 200, 900, 1100, 7000};
    const bool same_length = expected != nullptr && random_() % 4 == 0;
    const size_t other_length = kLengths[random_() % std::size(kLengths)] + random_() % 30;
    std::string value(same_length ? expected->value.size() : other_length, '\0');
    for (char& c : value) c = static_cast<char>(random_());

    const WriteOutcome outcome = random_() % 2 == 0
                                     ? store_.Put(key, value, attributes, conditions, At(now_ms_))
                                     : PutReserved(key, value, attributes, conditions);
    if (outcome.status == ReplyStatus::kHeapFull || outcome.status == ReplyStatus::kIndexFull) {
      // The conditions of a reserved put were not checked.
      ++refused_;
    } else if (want != ReplyStatus::kOk) {
      ASSERT_EQ(outcome.status, want);
      const bool lost = want == ReplyStatus::kLockLost;
      ASSERT_EQ(outcome.version, lost ? 0 : version_before);
      ASSERT_EQ(outcome.lock_word, lost ? store_.LockWordOf(key) : 0);
    } else {
      ASSERT_EQ(outcome.status, ReplyStatus::kOk);
      ASSERT_GT(outcome.version, version_before);
      items_[key] = {value, outcome.version, attributes};
    }
    Get(key);
  }

  WriteOutcome PutReserved(const std::string& key, const std::string& value,
                           ItemAttributes attributes, const WriteConditions& conditions) {
    const auto reservation = store_->Reserve(key, value.size(), At(now_ms_));
    if (!reservation) return {.status = ReplyStatus::kHeapFull};
    StoreValueAt(reservation->value.data(), value);
    return store_.CommitPut(*reservation, key, attributes, conditions, At(now_ms_));
  }

  void Delete(const std::string& key) {
    const Expected* expected = Find(key);
    WriteConditions conditions;
    if (random_() % 4 == 0) conditions.only_if_version = 7;  // too old to be any version
    const WriteOutcome outcome = store_.Delete(key, conditions, At(now_ms_));
    if (conditions.only_if_version && (expected == nullptr || expected->version != 7)) {
      ASSERT_EQ(outcome.status, ReplyStatus::kVersionMismatch);
    } else if (expected == nullptr) {
      ASSERT_EQ(outcome.status, ReplyStatus::kNotFound);
    } else {
      ASSERT_EQ(outcome.status, ReplyStatus::kOk);
      items_.erase(key);
    }
    Get(key);
  }

  void Abandon(const std::string& key) {
    if (const auto reservation = store_->Reserve(key, 500, At(now_ms_)))
      store_->Abandon(*reservation);
    Get(key);
  }

  TestStore& store_;
  const std::string prefix_;
  const bool alone_;
  std::mt19937_64 random_;
  std::map<std::string, Expected> items_;
  uint64_t now_ms_ = 1000;
  int refused_ = 0;
};

TEST(OracleTest, RandomOperationsAgree) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestStore store(4 << 20, 1000);
    Oracle oracle(store, "key", seed);
    for (int i = 0; i < 40'000 && !testing::Test::HasFailure(); ++i) oracle.Step();
    oracle.CheckAll();
    EXPECT_EQ(store.Stats().items, oracle.items_at_most());
    EXPECT_EQ(store.Stats().items_expiring, oracle.expiring_at_most());
    EXPECT_EQ(oracle.refused(), 0);
    EXPECT_GT(store.updates_in_place(), 100u);
    EXPECT_GT(store.Stats().items_moved, 100u);
    EXPECT_GT(store.Stats().items_expired, 100u);
  }
}

TEST(OracleTest, RandomOperationsAgreeWithTheIndexFull) {
  for (uint64_t seed = 11; seed <= 15; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestStore store(4 << 20, 120);
    Oracle oracle(store, "key", seed);
    for (int i = 0; i < 40'000 && !testing::Test::HasFailure(); ++i) oracle.Step();
    oracle.CheckAll();
    EXPECT_GT(oracle.refused(), 100);
  }
}

TEST(OracleTest, RandomOperationsAgreeWithTheHeapFull) {
  for (uint64_t seed = 21; seed <= 25; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestStore store(300 << 10, 600);
    Oracle oracle(store, "key", seed);
    for (int i = 0; i < 40'000 && !testing::Test::HasFailure(); ++i) oracle.Step();
    oracle.CheckAll();
    EXPECT_GT(oracle.refused(), 100);
  }
}

TEST(OracleTest, ThreadsWithTheirOwnKeysDoNotDisturbEachOther) {
  TestStore store(8 << 20, 1400);
  std::vector<std::thread> threads;
  for (uint64_t id = 0; id < 4; ++id) {
    threads.emplace_back([&store, id] {
      Oracle oracle(store, "thread" + std::to_string(id) + "-", 31 + id, /*alone=*/false);
      for (int i = 0; i < 20'000 && !testing::Test::HasFailure(); ++i) oracle.Step();
      oracle.CheckAll();
    });
  }
  for (auto& thread : threads) thread.join();
}

// Writers of one key: of all that replace the same version, one succeeds.
TEST(OracleTest, CompareAndSetLosesNoUpdate) {
  TestStore store(1 << 20, 100);
  store.Put("key", "0");
  constexpr int kThreads = 4, kIncrements = 2000;
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&store] {
      for (int done = 0; done < kIncrements;) {
        std::string value(100, '\0');
        const auto read = store->Get("key", std::as_writable_bytes(std::span(value)), At(1));
        const int count = std::stoi(value.substr(0, read.value_bytes));
        // Sizes of two classes, so that it happens in place and out of place.
        std::string next = std::to_string(count + 1);
        if (count % 3 == 0) next.resize(50, ' ');
        const WriteConditions conditions{.only_if_version = read.version};
        const auto put = store.GeneralPut("key", next, {}, conditions, At(1));
        if (put.status == ReplyStatus::kOk) ++done;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(std::stoi(*store.Get("key")), kThreads * kIncrements);
}

}  // namespace
}  // namespace gannet
