// Walks through the memory of a real store, with writes between any two READs.

#include "common/lookup/index_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/memory/store/stubs.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

constexpr uint64_t kSlots = 2000;

class IndexWalkTest : public testing::Test {
 protected:
  using Between = std::function<void()>;

  static std::string Key(uint64_t i) { return "key" + std::to_string(i); }
  static std::string Stub(uint64_t i) { return "stub" + std::to_string(i); }
  static std::string Other(uint64_t i) { return "other" + std::to_string(i); }
  // A value that names its key.
  static std::string ValueOf(const std::string& key, uint64_t i = 0) {
    return key + "=" + std::string(i % 100, 'v');
  }

  void PutKeys(uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) {
      ASSERT_EQ(store_->Put(Key(i), ValueOf(Key(i), i)).status, ReplyStatus::kOk);
    }
    keys_ = n;
  }
  // A store that evicts: it may evict a key for which another one finds no slot.
  void UseStoreWithTier() {
    store_ = std::make_unique<TestStore>(
        16 << 20, kSlots, /*index_grows=*/false, TestStore::OnFull::kEvict, nullptr,
        TierOfStore{.number = 1, .segment_bytes = 64 << 20, .segments = 16});
  }
  // Puts values that are then said to be on a disk. REQUIRES: UseStoreWithTier.
  void PutStubs(uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) {
      const std::string value(5000 + i, 'v');
      const uint64_t version = store_->Put(Stub(i), value).version;
      const TierPlace place{.position = 4096 * (i + 1),
                            .lap = 1,
                            .value_bytes = static_cast<uint32_t>(value.size()),
                            .version = version};
      ASSERT_TRUE((*store_)->stubs()->Make((*store_)->HashOf(Stub(i)), place));
    }
  }
  // What a client learns of the index.
  void Learn() {
    const Superblock& superblock = (*store_)->superblock();
    view_.incarnation = superblock.incarnation;
    view_.hash_seed = superblock.hash_seed;
    view_.region_bytes = superblock.region_bytes;
    view_.index = superblock.index;
    view_.next = superblock.next_index;
  }
  std::vector<std::byte> Read(uint64_t offset, uint64_t bytes) const {
    const auto memory = store_->region().subspan(offset, bytes);
    return {memory.begin(), memory.end()};
  }
  // Reads buckets. Half of the times every other one is sampled after between() was called, as by a
  // device that samples words in any order.
  std::vector<std::byte> ReadBuckets(IndexWalk::Read read, const Between& between) {
    std::vector<std::byte> copy = Read(read.offset, read.bytes);
    if (!tears_reads_ || random_() % 2 == 0) return copy;
    for (int i = 0; i < 8; ++i) between();
    const std::vector<std::byte> later = Read(read.offset, read.bytes);
    for (uint64_t at = random_() % 2 * kBucketBytes; at < copy.size(); at += 2 * kBucketBytes) {
      std::copy_n(later.begin() + static_cast<std::ptrdiff_t>(at), kBucketBytes,
                  copy.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return copy;
  }
  void Take(const IndexWalk::Item& item) {
    const std::string key(item.key);
    ++shown_[key];
    if (key.starts_with("stub")) {
      EXPECT_EQ(item.header.value_bytes, 5000 + std::stoul(key.substr(4)));
      EXPECT_TRUE(item.value.empty());
    }
    EXPECT_TRUE(item.value.empty() || item.value.starts_with(key + "=")) << key;
  }
  // Walks, and calls between() before each READ. Fills in shown_.
  void Walk(
      const Between& between = [] {}, const WantedItems* wanted = nullptr) {
    Learn();
    IndexWalk walk(&view_, wanted);
    Finish(walk, between);
    retries_ = walk.retries();
    EXPECT_EQ(walk.done(), 1.0);
  }
  // The same in as many parts as there may be, each of which begins a little before the end of the
  // one before it.
  void WalkInParts(const Between& between) {
    uint64_t position = 0;
    do {
      Learn();
      IndexWalk walk(&view_, nullptr, position);
      uint64_t next = 0;
      Finish(walk, between, [&] {
        if (next == 0 && walk.step() == IndexWalk::Step::kReadBuckets) next = walk.CutOff(256);
      });
      if (HasFatalFailure()) return;
      position = next & ~uint64_t{255};
      ++parts_;
    } while (position != 0);
  }
  void Finish(
      IndexWalk& walk, const Between& between, const Between& before_step = [] {}) {
    for (uint64_t steps = 0; walk.step() != IndexWalk::Step::kDone; ++steps) {
      ASSERT_LT(steps, 1'000'000u) << "the walk does not end";
      ASSERT_NE(walk.step(), IndexWalk::Step::kChangesTooFast);
      between();
      before_step();
      if (walk.step() == IndexWalk::Step::kDone) return;
      if (walk.step() == IndexWalk::Step::kWantIndex) {
        Learn();
        walk.Resume();
      } else if (walk.step() == IndexWalk::Step::kReadBuckets) {
        walk.OnBuckets(ReadBuckets(walk.buckets(), between), 0, 0);
      } else {
        for (size_t i = 0; i < walk.items().size(); ++i) {
          if (i % 8 == 0) between();
          const Slot slot = walk.items()[i];
          ++items_read_;
          const auto copy = Read(slot.offset(), walk.ReadBytesOf(slot));
          if (const auto item = walk.OnItem(i, copy)) Take(*item);
        }
        walk.OnItemsDone();
      }
    }
  }
  void ExpectAllKeysShown() {
    for (uint64_t i = 0; i < keys_; ++i) EXPECT_TRUE(shown_.contains(Key(i))) << Key(i);
  }

  std::mt19937_64 random_{test_support::TestSeed()};
  bool tears_reads_ = true;
  std::unique_ptr<TestStore> store_ = std::make_unique<TestStore>(16 << 20, kSlots);
  IndexView view_;
  uint64_t keys_ = 0;
  std::map<std::string, int> shown_;
  uint64_t retries_ = 0;
  uint64_t items_read_ = 0;
  uint64_t parts_ = 0;
};

TEST_F(IndexWalkTest, AnEmptyStoreHasNothingToShow) {
  Walk();
  EXPECT_TRUE(shown_.empty());
}

TEST_F(IndexWalkTest, ShowsEveryKeyOfAFullIndexOnce) {
  PutKeys(kSlots * 94 / 100);
  ASSERT_GT(store_->Stats().stash_used, 0u);
  Walk();
  ExpectAllKeysShown();
  EXPECT_EQ(shown_.size(), keys_);
  for (const auto& [key, times] : shown_) EXPECT_EQ(times, 1) << key;
  EXPECT_EQ(retries_, 0u);
}

TEST_F(IndexWalkTest, ItsPartsTogetherShowEveryKeyWhileTheIndexGrows) {
  store_ = std::make_unique<TestStore>(16 << 20, kSlots, /*index_grows=*/true);
  PutKeys(kSlots * 8 / 10);
  uint64_t others = 0;
  WalkInParts([&] {
    for (int i = 0; i < 4; ++i) {
      const std::string other = Other(others++ % 10'000);
      ASSERT_EQ(store_->Put(other, ValueOf(other)).status, ReplyStatus::kOk);
    }
    (*store_)->Tidy(At(1));
  });
  EXPECT_GT(parts_, 10u);
  EXPECT_GE(store_->Stats().index_growths, 1u);
  ExpectAllKeysShown();
}

TEST_F(IndexWalkTest, LooksOnlyAtItemsThatAreWanted) {
  PutKeys(1000);
  struct : WantedItems {
    bool IsWanted(uint64_t offset) const override {
      if (offset % 5 == 0) offsets.insert(offset);
      return offset % 5 == 0;
    }
    mutable std::set<uint64_t> offsets;
  } wanted;
  Walk([] {}, &wanted);
  EXPECT_FALSE(wanted.offsets.empty());
  EXPECT_EQ(shown_.size(), wanted.offsets.size());
  EXPECT_LT(items_read_, 600u);  // some are READ twice, at the edges of runs
}

TEST_F(IndexWalkTest, ALargeItemIsShownWithoutItsValue) {
  ASSERT_EQ(store_->Put("large", std::string(100'000, 'v')).status, ReplyStatus::kOk);
  Walk();
  EXPECT_EQ(shown_, (std::map<std::string, int>{{"large", 1}}));
}

// The index is nearly full, so keys move within their windows and into the stash and back.
TEST_F(IndexWalkTest, ShowsEveryKeyThatStaysWhileOthersComeAndGo) {
  PutKeys(kSlots * 70 / 100);
  for (int round = 0; round < 20; ++round) {
    shown_.clear();
    Walk([this] {
      for (int i = 0; i < 8; ++i) {
        const std::string other = Other(random_() % (kSlots * 2 / 5));
        if (random_() % 5 < 2) {
          store_->Delete(other);
        } else {
          store_->Put(other, ValueOf(other, random_()));  // may find no slot
        }
      }
      const std::string key = Key(random_() % keys_);
      ASSERT_EQ(store_->Put(key, ValueOf(key, random_())).status, ReplyStatus::kOk);
    });
    ExpectAllKeysShown();
  }
  EXPECT_GT(store_->Stats().displacements, 0u);
}

// Deletes make room, and keys come back from the stash, just before the walk READs it.
TEST_F(IndexWalkTest, FindsKeysThatLeaveTheStashBeforeItIsRead) {
  PutKeys(kSlots * 94 / 100);
  const uint64_t stashed = store_->Stats().stash_used;
  Learn();
  IndexWalk walk(&view_);
  const uint64_t stash = view_.index.BucketOffset(view_.index.StashBucket(0));
  bool deleted = false;
  while (walk.step() != IndexWalk::Step::kDone) {
    if (walk.step() == IndexWalk::Step::kReadBuckets) {
      const IndexWalk::Read read = walk.buckets();
      if (read.offset >= stash && !deleted) {
        for (uint64_t i = 1; i < keys_; i += 2) store_->Delete(Key(i));
        deleted = true;
      }
      walk.OnBuckets(Read(read.offset, read.bytes), 0, 0);
    } else {
      for (size_t i = 0; i < walk.items().size(); ++i) {
        const Slot slot = walk.items()[i];
        const auto copy = Read(slot.offset(), walk.ReadBytesOf(slot));
        if (const auto item = walk.OnItem(i, copy)) Take(*item);
      }
      walk.OnItemsDone();
    }
  }
  EXPECT_LT(store_->Stats().stash_used, stashed);
  for (uint64_t i = 0; i < keys_; i += 2) EXPECT_TRUE(shown_.contains(Key(i))) << Key(i);
}

TEST_F(IndexWalkTest, GoesOnWhileTheIndexGrows) {
  for (int round = 0; round < 10; ++round) {
    store_ = std::make_unique<TestStore>(16 << 20, kSlots, /*index_grows=*/true);
    PutKeys(kSlots * 8 / 10);
    shown_.clear();
    uint64_t others = 0;
    Walk([&] {
      for (int i = 0; i < 4; ++i) {
        const std::string other = Other(others++);
        ASSERT_EQ(store_->Put(other, ValueOf(other)).status, ReplyStatus::kOk);
      }
      const std::string key = Key(random_() % keys_);
      ASSERT_EQ(store_->Put(key, ValueOf(key, random_())).status, ReplyStatus::kOk);
      (*store_)->Tidy(At(1));
      if (random_() % 64 == 0) Learn();
    });
    EXPECT_GE(store_->Stats().index_growths, 1u);
    ExpectAllKeysShown();
  }
}

// A key that other keys of the same tag and home push from its block, as the store moves it.
class MovedKeyTest : public IndexWalkTest {
 protected:
  // A torn READ may show the key at its new place too, so that a walk would never miss it.
  MovedKeyTest() { tears_reads_ = false; }

  static constexpr uint64_t kHomesMax = 16;

  // Fills in two keys of equal length whose slots look the same but for their blocks.
  void FindTwins() {
    store_ = std::make_unique<TestStore>(1 << 20, 100);
    Learn();
    ASSERT_LE(view_.index.homes, kHomesMax);
    std::map<std::pair<uint32_t, uint64_t>, uint64_t> seen;
    for (uint64_t i = 10'000'000; i < 20'000'000; ++i) {
      const KeyHash hash = KeyHash::Of(Key(i), view_.hash_seed);
      const auto [first, isNew] = seen.insert({{hash.Tag(), hash.Home(view_.index.homes)}, i});
      if (isNew) continue;
      key_ = Key(first->second);
      twin_ = Key(i);
      return;
    }
    FAIL() << "no two keys of a tag and a home";
  }
  // Returns whether the walk shows the key, if it moves after `reads` READs and its twin gets its
  // block.
  bool ShowsKey(IndexWalk::Windows windows, int reads) {
    store_ = std::make_unique<TestStore>(1 << 20, 100);
    store_->Put(key_, ValueOf(key_));
    shown_.clear();
    Learn();
    IndexWalk walk(&view_, nullptr, 0, windows);
    Finish(walk, [&, n = 0]() mutable {
      if (n++ == reads) Move();
    });
    EXPECT_TRUE(shown_.contains(key_) || windows == IndexWalk::Windows::kReadOnce);
    return shown_.contains(key_);
  }
  void Move() {
    const uint64_t from = SlotOf(key_).offset();
    // A block of another size, so that the old one is free.
    ASSERT_EQ(store_->Put(key_, ValueOf(key_, 99)).status, ReplyStatus::kOk);
    ASSERT_EQ(store_->Put(twin_, ValueOf(twin_)).status, ReplyStatus::kOk);
    ASSERT_EQ(SlotOf(twin_).offset(), from);
  }
  Slot SlotOf(const std::string& key) { return Slot((*store_)->Get(key, {}, At(1)).slot); }

  std::string key_;
  std::string twin_;
};

TEST_F(MovedKeyTest, IsFoundIfWindowsAreReadAgain) {
  FindTwins();
  if (HasFatalFailure()) return;
  bool missed = false;
  for (int reads = 0; reads < 10; ++reads) {
    EXPECT_TRUE(ShowsKey(IndexWalk::Windows::kReadAgain, reads)) << "after " << reads;
    missed |= !ShowsKey(IndexWalk::Windows::kReadOnce, reads);
  }
  EXPECT_TRUE(missed) << "the second READ is of no use";
}

// The same churn as above.
TEST_F(IndexWalkTest, ShowsEveryKeyThatStaysIfWindowsAreReadAgain) {
  PutKeys(kSlots * 70 / 100);
  uint64_t stash_used = 0;  // at most, after a walk
  for (int round = 0; round < 20; ++round) {
    shown_.clear();
    Learn();
    IndexWalk walk(&view_, nullptr, 0, IndexWalk::Windows::kReadAgain);
    Finish(walk, [this, n = 0]() mutable {
      if (++n % 4 != 0) return;
      const std::string other = Other(random_() % (kSlots * 2 / 5));
      if (random_() % 5 < 2) {
        store_->Delete(other);
      } else {
        store_->Put(other, ValueOf(other, random_()));  // may find no slot
      }
      const std::string key = Key(random_() % keys_);
      store_->Put(key, ValueOf(key, random_()));
      (*store_)->Compact(4);
    });
    ExpectAllKeysShown();
    stash_used = std::max(stash_used, store_->Stats().stash_used);
  }
  EXPECT_GT(stash_used, 0u);
}

TEST_F(IndexWalkTest, ReadAgainASlowReadIsBelieved) {
  PutKeys(1);
  Learn();
  IndexWalk walk(&view_, nullptr, 0, IndexWalk::Windows::kReadAgain);
  walk.OnBuckets(Read(walk.buckets().offset, walk.buckets().bytes), 0, 10 * kNsPerMs);
  EXPECT_EQ(walk.retries(), 0u);
  while (walk.step() == IndexWalk::Step::kReadItems) {
    for (size_t i = 0; i < walk.items().size(); ++i) {
      walk.OnItem(i, Read(walk.items()[i].offset(), walk.ReadBytesOf(walk.items()[i])));
    }
    walk.OnItemsDone();
  }
  EXPECT_FALSE(walk.begins_run());
  const IndexWalk::Read again = walk.buckets();
  walk.OnBuckets(Read(again.offset, again.bytes), 0, IndexWalk::kRunNsMax);
  EXPECT_EQ(walk.retries(), 1u) << "the versions of buckets may have wrapped around";
  EXPECT_TRUE(walk.begins_run());
}

// Of sixteen homes one has changed: those before it are done, and it is READ alone.
TEST_F(IndexWalkTest, ReadAgainHomesBeforeAChangedOneAreDone) {
  PutKeys(kSlots / 2);
  Learn();
  IndexWalk walk(&view_, nullptr, 0, IndexWalk::Windows::kReadAgain);
  const IndexWalk::Read first = walk.buckets();
  walk.OnBuckets(Read(first.offset, first.bytes), 0, 0);
  for (size_t i = 0; i < walk.items().size(); ++i) {
    walk.OnItem(i, Read(walk.items()[i].offset(), walk.ReadBytesOf(walk.items()[i])));
  }
  walk.OnItemsDone();
  ASSERT_EQ(walk.buckets().bytes, first.bytes);
  std::vector<std::byte> copy = Read(first.offset, first.bytes);
  copy[5 * kBucketBytes + 8] ^= std::byte{1};
  walk.OnBuckets(copy, 0, 0);
  EXPECT_EQ(walk.retries(), 0u);
  EXPECT_EQ(walk.buckets().offset, first.offset + 4 * kBucketBytes);
  EXPECT_EQ(walk.buckets().bytes, 2 * kBucketBytes);
}

TEST_F(IndexWalkTest, ReadsATornItemAgain) {
  PutKeys(1);
  Learn();
  IndexWalk walk(&view_);
  bool torn = false;
  while (walk.step() != IndexWalk::Step::kDone) {
    if (walk.step() == IndexWalk::Step::kReadBuckets) {
      walk.OnBuckets(Read(walk.buckets().offset, walk.buckets().bytes), 0, 0);
      continue;
    }
    ASSERT_EQ(walk.items().size(), 1u);
    auto copy = Read(walk.items()[0].offset(), walk.ReadBytesOf(walk.items()[0]));
    if (!torn) copy[sizeof(ItemHeader)] ^= std::byte{1};
    const auto item = walk.OnItem(0, copy);
    EXPECT_EQ(item.has_value(), torn);
    torn = true;
    walk.OnItemsDone();
  }
  EXPECT_EQ(walk.retries(), 1u);
}

TEST_F(IndexWalkTest, BelievesNoBucketsThatTookLongToRead) {
  PutKeys(1);
  Learn();
  IndexWalk walk(&view_);
  const uint64_t offset = walk.buckets().offset;
  walk.OnBuckets(Read(offset, walk.buckets().bytes), 0, Lookup::kMissReadNsMax);
  EXPECT_EQ(walk.retries(), 1u);
  EXPECT_EQ(walk.step(), IndexWalk::Step::kReadBuckets);
  EXPECT_EQ(walk.buckets().offset, offset);
}

// As if a newer server had written it. It is the same in each READ.
TEST_F(IndexWalkTest, EndsAtASlotOfAKindThatItDoesNotKnow) {
  PutKeys(1);
  Learn();
  IndexWalk walk(&view_);
  while (walk.step() == IndexWalk::Step::kReadBuckets) {
    const IndexWalk::Read read = walk.buckets();
    std::vector<std::byte> copy = Read(read.offset, read.bytes);
    for (uint64_t at = 0; at < copy.size(); at += kBucketBytes) {
      Bucket bucket;
      std::memcpy(&bucket, copy.data() + at, kBucketBytes);
      for (uint64_t& word : bucket.slots) {
        if (word != 0) word = Slot::Of(Slot(word).tag(), kSizeClassMarker - 1, 4096).word();
      }
      const uint64_t number = (read.offset + at - view_.index.BucketOffset(0)) / kBucketBytes;
      bucket.checksum =
          BucketChecksum(bucket, BucketSeed(view_.incarnation, view_.index.generation, number));
      std::memcpy(copy.data() + at, &bucket, kBucketBytes);
    }
    walk.OnBuckets(copy, 0, 0);
  }
  EXPECT_EQ(walk.step(), IndexWalk::Step::kUnknownSlot);
  EXPECT_EQ(walk.retries(), 0u);
}

// The same of a stub, which proves itself.
TEST_F(IndexWalkTest, EndsAtAStubOfAKindThatItDoesNotKnow) {
  UseStoreWithTier();
  PutKeys(1);
  PutStubs(1);
  Learn();
  IndexWalk walk(&view_);
  while (walk.step() == IndexWalk::Step::kReadBuckets) {
    walk.OnBuckets(Read(walk.buckets().offset, walk.buckets().bytes), 0, 0);
    for (size_t i = 0; i < walk.items().size(); ++i) {
      const Slot slot = walk.items()[i];
      std::vector<std::byte> copy = Read(slot.offset(), walk.ReadBytesOf(slot));
      if (IsStub(slot)) {
        copy[sizeof(ItemHeader)] = std::byte{2};
        const ItemPlace place = {view_.incarnation, view_.hash_seed, slot.offset()};
        const ItemSeal seal((*store_)->HashOf(Stub(0)), StubPlace(place));
        const uint64_t commit = LiveCommitWord(copy.data(), sizeof(StubValue), seal);
        std::memcpy(copy.data(), &commit, sizeof(commit));
      }
      walk.OnItem(i, copy);
    }
    if (walk.step() == IndexWalk::Step::kReadItems) walk.OnItemsDone();
  }
  EXPECT_EQ(walk.step(), IndexWalk::Step::kUnknownSlot);
}

TEST_F(IndexWalkTest, ShowsStubsAsItemsWithoutValue) {
  UseStoreWithTier();
  PutKeys(50);
  PutStubs(50);
  Walk();
  EXPECT_EQ(shown_.size(), 100u);
  for (uint64_t i = 0; i < 50; ++i) EXPECT_EQ(shown_[Stub(i)], 1) << i;
}

// The longest stub is shorter than what would be READ.
TEST_F(IndexWalkTest, ReadsAStubAtTheEndOfTheRegion) {
  Learn();
  const IndexWalk walk(&view_);
  const auto bytes_of = [&](uint64_t from_end) {
    return walk.ReadBytesOf(Slot::Of(1, kSizeClassMarker, view_.region_bytes - from_end));
  };
  EXPECT_EQ(bytes_of(80), 80u);
  EXPECT_EQ(bytes_of(4096), 320u);
}

TEST_F(IndexWalkTest, BelievesNoBucketWithAWrongChecksum) {
  PutKeys(1);
  Learn();
  IndexWalk walk(&view_);
  auto copy = Read(walk.buckets().offset, walk.buckets().bytes);
  copy[0] ^= std::byte{1};
  walk.OnBuckets(copy, 0, 0);
  EXPECT_EQ(walk.retries(), 1u);
  EXPECT_EQ(walk.step(), IndexWalk::Step::kReadBuckets);
}

}  // namespace
}  // namespace gannet
