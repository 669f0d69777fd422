// The client's lookup against every state that the store's writing goes through. Each store of the
// production code is recorded. Then lookups run whose READs sample every word at its own moment, in
// any order. No thread takes part, so a seed replays a failure exactly.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/lookup/lookup.h"
#include "softverbs/tests/support/sanitizer.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/memory/store/store_trace.h"

namespace gannet {
namespace {

class StandingClock : public ClientClock {
 public:
  int64_t MonotonicNs() const override { return 1; }
};

// A change of one key, and the stores that made it.
struct Write {
  uint32_t begin, end;  // times
  uint64_t version;     // 0: deleted
  Slot slot;
};

// The lookups that answered with one state of a key.
struct Seen {
  uint32_t first_end = UINT32_MAX;
  uint32_t last_begin = 0;
};

struct Key {
  std::string name;
  KeyHash hash{0};
  std::vector<Write> writes;
  std::vector<Seen> seen;  // by number of writes before
};

constexpr uint64_t kNowMs = 1, kLaterMs = 2000;
constexpr uint64_t kSeeds = test_support::kSanitizer ? 1 : 3;
constexpr int kChangesLookedAt = test_support::Part(2000);
constexpr int kLookupsPerChange = 60;
constexpr int kLookupsOfMigration = 10;

class ReplayedRead {
 public:
  ReplayedRead(uint64_t seed, uint64_t index_slots, size_t keys, size_t changes,
               bool index_grows = false)
      : seed_(seed),
        random_(seed),
        index_grows_(index_grows),
        store_(512 << 10, index_slots, index_grows) {
    store_->Acknowledge(1);  // readers may know any index, at any time
    const Superblock superblock = store_->superblock();
    view_ = {superblock.incarnation,
             superblock.hash_seed,
             superblock.region_bytes,
             superblock.index,
             {}};
    PickKeys(keys);
    Record(changes);
  }

  void LookUp() {
    for (int i = 0; i < kChangesLookedAt && !testing::Test::HasFailure(); ++i) {
      Key& key = keys_[random_() % keys_.size()];
      if (!key.writes.empty()) LookUpAround(key);
    }
    if (index_grows_) LookUpWhileHomesMigrate();
    const StatsReply stats = store_.Stats();
    std::printf(
        "seed %lu: %u stores, %lu moves, %lu moves of items, %lu expired, %lu refused, %.1f %% "
        "full, "
        "%lu in the stash; %d hits, %d misses, %d asked\n",
        seed_, trace_->now(), stats.displacements, stats.items_moved, stats.items_expired, refused_,
        100.0 * stats.slots_used / stats.slots_total, stats.stash_used, hits_, misses_, asked_);
    EXPECT_GT(hits_, 0);
    EXPECT_GT(store_.updates_in_place(), 0u);
    EXPECT_GT(stats.items_moved, 0u);
    EXPECT_GT(stats.items_expired, 0u);
    EXPECT_GT(misses_, 0);
    // Readers that know an index only which their key's home left must ask.
    EXPECT_LT(asked_, (hits_ + misses_) / (indexes_.size() > 1 ? 2 : 10));
    EXPECT_EQ(stats.index_growths > 0, indexes_.size() > 1);
  }

 private:
  // Picks names so that many share their tag with another key of the same window. The 20 bits would
  // otherwise never collide among so few keys.
  void PickKeys(size_t n) {
    std::map<std::pair<uint32_t, uint64_t>, std::string> seen;
    for (uint64_t i = 0; keys_.size() < n / 2; ++i) {
      const std::string name = "key" + std::to_string(i);
      const KeyHash hash = KeyHash::Of(name, view_.hash_seed);
      auto [twin, is_new] = seen.try_emplace({hash.Tag(), hash.Home(view_.index.homes)}, name);
      if (is_new) continue;
      for (const std::string& twin_name : {twin->second, name}) {
        keys_.push_back({twin_name, KeyHash::Of(twin_name, view_.hash_seed)});
      }
    }
    for (uint64_t i = 0; keys_.size() < n; ++i) {
      const std::string name = "other" + std::to_string(i);
      keys_.push_back({name, KeyHash::Of(name, view_.hash_seed)});
    }
  }

  void Record(size_t changes) {
    trace_.emplace(store_.region());
    NoteIndexes();
    for (size_t i = 0; i < changes; ++i) {
      if (random_() % 16 == 0) {
        Tidy();
      } else {
        Change(keys_[random_() % keys_.size()]);
      }
    }
    trace_->Stop();
    ASSERT_TRUE(trace_->Complete());
  }

  // Moves items, or removes those that have an expiry.
  void Tidy() {
    const uint32_t begin = trace_->now();
    if (index_grows_ && (random_() % 2 == 0 || store_->growing())) {
      store_->Tidy(At(kNowMs));
      NoteIndexes();
    } else if (random_() % 2 == 0) {
      store_->Compact(1 + random_() % 8);
    } else {
      store_->Sweep(At(kLaterMs), random_() % 3);
    }
    Observe(begin);
  }
  // Readers may be told of the indexes from now on.
  void NoteIndexes() {
    const Superblock superblock = store_->superblock();
    if (!indexes_.empty() && indexes_.back().index == superblock.index &&
        indexes_.back().next == superblock.next_index) {
      return;
    }
    indexes_.push_back({trace_->now(), superblock.index, superblock.next_index});
  }
  // Records what became of keys that were not written themselves.
  void Observe(uint32_t begin, const Key* written = nullptr) {
    for (Key& key : keys_) {
      if (key.writes.empty() || &key == written) continue;
      const ReadOutcome now = store_->Get(key.name, {}, At(kNowMs));
      const bool there = now.status != ReplyStatus::kNotFound;
      const Write& last = key.writes.back();
      if (there ? now.slot == last.slot.word() : last.version == 0) continue;
      ASSERT_TRUE(!there || now.version == last.version) << "a move changes the place only";
      key.writes.push_back({begin, trace_->now(), there ? last.version : 0, Slot(now.slot)});
    }
  }

  void Change(Key& key) {
    const bool there = !key.writes.empty() && key.writes.back().version != 0;
    const bool expires = there && !store_->Get(key.name, {}, At(kNowMs)).attributes.expiry.never();
    const uint32_t begin = trace_->now();
    if (there && random_() % 8 == 0) {
      ASSERT_EQ(store_.Delete(key.name).status, ReplyStatus::kOk);
      key.writes.push_back({begin, trace_->now(), 0, Slot()});
      return;
    }
    // Lengths on both sides of a class's border, so in place and out of place, and equal lengths.
    const size_t lengths[] = {37, 30 + random_() % 20, random_() % 80};
    const std::string value(lengths[random_() % 3], 'v');
    // Readers' clocks stand still before any expiry. For some writes, items with an expiry have
    // expired, and the writes remove them if they need their slots.
    const uint64_t now_ms = random_() % 4 == 0 ? kLaterMs : kNowMs;
    const ItemAttributes attributes{.expiry = ExpiresAt(random_() % 4 == 0 ? kLaterMs : 0)};
    const WriteOutcome outcome = random_() % 2 == 0
                                     ? store_.Put(key.name, value, attributes, {}, At(now_ms))
                                     : store_.PutReserved(key.name, value, {}, now_ms);
    if (outcome.status == ReplyStatus::kIndexFull || outcome.status == ReplyStatus::kTryAgain) {
      ASSERT_TRUE(!there || now_ms == kLaterMs);
      ++refused_;
      return Observe(begin);
    }
    ASSERT_EQ(outcome.status, ReplyStatus::kOk);
    Observe(begin, &key);
    // It was removed first.
    if (there && expires && now_ms == kLaterMs) {
      key.writes.push_back({begin, trace_->now(), 0, Slot()});
    }
    key.writes.push_back({begin, trace_->now(), outcome.version, Slot(outcome.slot)});
  }

  // Runs lookups around one change: of its key, and of keys whose window it may have changed.
  void LookUpAround(Key& key) {
    const size_t n = random_() % key.writes.size();
    const Write& write = key.writes[n];
    for (int i = 0; i < kLookupsPerChange && !testing::Test::HasFailure(); ++i) {
      const uint32_t stores = write.end - write.begin + 6;
      const uint32_t begin = std::max(write.begin, 3u) - 3 + random_() % stores;
      if (i % 2 == 0) {
        // Nothing cached, or a place it had before or after.
        const size_t place = n + random_() % 3;
        const bool exists = place >= 1 && place <= key.writes.size();
        LookUpOnce(key, exists ? key.writes[place - 1].slot : Slot(), begin);
      } else {
        LookUpOnce(KeyNear(std::min(begin, trace_->now() - 1)), Slot(), begin);
      }
    }
  }

  // Runs lookups of the keys of a home, from a little before the store that sets its flag.
  void LookUpWhileHomesMigrate() {
    int migrations = 0;
    for (uint32_t store = 0; store < trace_->now(); ++store) {
      const uint64_t offset = trace_->OffsetOf(store);
      const auto is_flag = [&](const Indexes& it) {
        return offset >= it.index.offset &&
               offset < it.index.BucketOffset(it.index.main_buckets()) &&
               (offset - it.index.offset) % kBucketBytes == offsetof(Bucket, meta) &&
               BucketMeta(trace_->WordAt(offset, store + 1)).migrated() &&
               !BucketMeta(trace_->WordAt(offset, store)).migrated();
      };
      const auto known = std::ranges::find_if(indexes_, is_flag);
      if (known == indexes_.end()) continue;
      ++migrations;
      const uint64_t home = (offset - known->index.offset) / kBucketBytes;
      for (Key& key : keys_) {
        if (key.hash.Home(known->index.homes) != home || testing::Test::HasFailure()) continue;
        for (int i = 0; i < kLookupsOfMigration; ++i) {
          LookUpOnce(key, Slot(), std::max(store, 3u) - 3 + random_() % 6);
        }
      }
    }
    EXPECT_GT(migrations, 0);
  }

  void LookUpOnce(Key& key, Slot cached, uint32_t begin) {
    time_ = begin;
    // How many stores happen during a READ: none, a few, or those of some changes.
    const uint32_t stores_per_read = std::array{0, 2, 8, 30}[random_() % 4];
    LearnIndexes(begin, 0);
    Lookup lookup;
    auto step = lookup.Start(&view_, key.name, key.hash, cached);
    while (step == Lookup::Step::kRead) {
      Read(lookup.plan(), stores_per_read);
      if (random_() % 4 == 0) LearnIndexes(time_, known_);  // also while the lookup is under way
      step = lookup.OnRead({{windows_[0], windows_[1]}, item_.data()}, 1, clock_);
    }
    Check(key, lookup, step, begin, time_);
  }

  // What a reader may have been told of the indexes by then, but nothing older than `at_least`.
  void LearnIndexes(uint32_t time, size_t at_least) {
    size_t latest = at_least;
    while (latest + 1 < indexes_.size() && indexes_[latest + 1].since <= time) ++latest;
    const size_t late = std::min<size_t>(latest - at_least, 3);
    known_ = latest - (random_() % 3 == 0 ? random_() % (late + 1) : 0);
    view_.index = indexes_[known_].index;
    view_.next = indexes_[known_].next;
  }

  Key& KeyNear(uint32_t time) {
    const uint64_t offset = trace_->OffsetOf(time);
    const uint64_t end = view_.index.BucketOffset(view_.index.main_buckets());
    if (offset >= view_.index.offset && offset < end) {
      const uint64_t bucket = (offset - view_.index.offset) / kBucketBytes;
      for (int tries = 0; tries < 50; ++tries) {
        Key& key = keys_[random_() % keys_.size()];
        const uint64_t home = key.hash.Home(view_.index.homes);
        if (home == bucket || home + 1 == bucket) return key;
      }
    }
    return keys_[random_() % keys_.size()];
  }

  // Samples every word (or, as often, every 128 bytes) at a random moment of the READ.
  void Read(const Lookup::ReadPlan& plan, uint32_t stores_per_read) {
    std::byte* to = plan.target == Lookup::Target::kItem ? item_.data()
                                                         : windows_[static_cast<int>(plan.target)];
    ASSERT_LE(plan.bytes, plan.target == Lookup::Target::kItem ? item_.size() : kWindowBytes);
    const uint32_t wait = random_() % 8 == 0 ? random_() % 100 : random_() % 4;
    const uint32_t from = time_ + wait;
    const uint32_t grain = random_() % 2 == 0 ? 8 : kBucketBytes;
    uint32_t moment = from;
    for (uint32_t at = 0; at < plan.bytes; at += 8) {
      if (at % grain == 0) moment = from + random_() % (stores_per_read + 1);
      time_ = std::max(time_, moment);
      const uint64_t word = trace_->WordAt(plan.offset + at, moment);
      std::memcpy(to + at, &word, sizeof(word));
    }
  }

  void Check(Key& key, const Lookup& lookup, Lookup::Step step, uint32_t begin, uint32_t end) {
    if (step == Lookup::Step::kAskServer) {
      ++asked_;
      return;
    }
    const uint64_t version = step == Lookup::Step::kHit ? lookup.item().header.version : 0;
    ++(step == Lookup::Step::kHit ? hits_ : misses_);
    // State n is the state after the first n writes. Possible are the state that the last write
    // ended before `begin` left, and those of all writes begun by `end`.
    std::vector<size_t> answer;
    size_t first = 0;
    for (size_t n = 0; n <= key.writes.size(); ++n) {
      if (n > 0 && key.writes[n - 1].end <= begin) first = n;
      if (n > 0 && key.writes[n - 1].begin >= end) break;
      if ((n == 0 ? 0 : key.writes[n - 1].version) == version) answer.push_back(n);
    }
    std::erase_if(answer, [&](size_t n) { return n < first; });
    ASSERT_FALSE(answer.empty()) << "seed " << seed_ << ", " << key.name << " in stores " << begin
                                 << ".." << end << ": "
                                 << (version == 0 ? "a false miss" : "a wrong version");
    if (answer.size() == 1) CheckOrder(key, answer[0], begin, end);
  }

  // Of two successive lookups, the later one must not see the earlier state.
  void CheckOrder(Key& key, size_t state, uint32_t begin, uint32_t end) {
    key.seen.resize(key.writes.size() + 1);
    for (size_t n = 0; n < key.seen.size(); ++n) {
      const bool went_back =
          n > state ? key.seen[n].first_end <= begin : n < state && key.seen[n].last_begin >= end;
      ASSERT_FALSE(went_back) << "seed " << seed_ << ", " << key.name << " in stores " << begin
                              << ".." << end << ": state " << state << " seen, but " << n
                              << " by another lookup";
    }
    key.seen[state].first_end = std::min(key.seen[state].first_end, end);
    key.seen[state].last_begin = std::max(key.seen[state].last_begin, begin);
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
  const bool index_grows_;
  TestStore store_;
  IndexView view_;
  std::vector<Key> keys_;
  std::optional<StoreTrace> trace_;
  uint64_t refused_ = 0;
  struct Indexes {
    uint32_t since;
    IndexGeometry index, next;
  };
  std::vector<Indexes> indexes_;
  size_t known_ = 0;  // of them, by the lookup under way

  StandingClock clock_;
  uint32_t time_ = 0;  // of the lookup
  alignas(8) std::byte windows_[2][kWindowBytes];
  std::vector<std::byte> item_ = std::vector<std::byte>(4096);
  int hits_ = 0, misses_ = 0, asked_ = 0;
};

class ReplayedReadTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!StoreTrace::Supported()) GTEST_SKIP() << "stores are single-stepped on x86-64 only";
  }
};

TEST_F(ReplayedReadTest, EveryAnswerIsAStateThatTheKeyHadMeanwhile) {
  for (uint64_t seed = 1; seed < 1 + kSeeds; ++seed) {
    ReplayedRead(seed, /*index_slots=*/280, /*keys=*/330, /*changes=*/2000).LookUp();
  }
}

TEST_F(ReplayedReadTest, AlsoWithTheStashInUseAllTheTime) {
  for (uint64_t seed = 11; seed < 11 + kSeeds; ++seed) {
    ReplayedRead(seed, /*index_slots=*/70, /*keys=*/90, /*changes=*/2000).LookUp();
  }
}

// Keys are looked up in two indexes, by readers who know one of them or both.
TEST_F(ReplayedReadTest, AlsoWhileTheIndexGrows) {
  for (uint64_t seed = 21; seed < 21 + kSeeds; ++seed) {
    ReplayedRead(seed, /*index_slots=*/70, /*keys=*/330, /*changes=*/2000, /*index_grows=*/true)
        .LookUp();
  }
}

// What docs/consistency.md promises readers of a large item whose block its successor takes.
TEST_F(ReplayedReadTest, ALargeItemIsDeadFromTheFirstWordThatIsWrittenOverItToTheLast) {
  for (const size_t bytes : {size_t{6'000}, size_t{5'000}, size_t{3'000}}) {
    SCOPED_TRACE(bytes);
    TestStore store(256 << 10, 280);
    int items = 0;
    while (store.Put("key" + std::to_string(items), std::string(6'000, 'a')).status ==
           ReplyStatus::kOk) {
      ++items;
    }
    ASSERT_GT(items, 10);
    const Slot slot(store->Get("key0", {}, At(kNowMs)).slot);
    StoreTrace trace(store.region());
    const ReplyStatus status = store.Put("key0", std::string(bytes, 'b')).status;
    trace.Stop();
    ASSERT_EQ(status, ReplyStatus::kOk);
    ASSERT_TRUE(trace.Complete());
    ASSERT_EQ(Slot(store->Get("key0", {}, At(kNowMs)).slot).offset(), slot.offset()) << "elsewhere";
    const auto in_block = [&](uint32_t i) {
      return trace.OffsetOf(i) > slot.offset() && trace.OffsetOf(i) < slot.offset() + 6'100;
    };
    uint32_t contents = 0;
    bool live = false;
    for (uint32_t i = 0; i < trace.now(); ++i) {
      live = (trace.WordAt(slot.offset(), i) & kCommitLive) != 0;
      contents += in_block(i);
      EXPECT_FALSE(in_block(i) && live) << "store " << i;
    }
    EXPECT_GE(contents, bytes / 8);
    EXPECT_NE(trace.WordAt(slot.offset(), trace.now()) & kCommitLive, 0u);
  }
}

}  // namespace
}  // namespace gannet
