#ifndef GANNET_TESTS_SERVER_MEMORY_INDEX_INDEX_FIXTURE_H_
#define GANNET_TESTS_SERVER_MEMORY_INDEX_INDEX_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "server/memory/index/index.h"

namespace gannet {

// An index in its own memory, with made-up keys. Key number i has a random hash, and its slot has i
// in place of an item's offset.
class TestIndex : public IndexedItems {
 public:
  static constexpr uint64_t kIncarnation = 99;

  // There is memory for a second table of `next_slots` behind the first.
  TestIndex(uint64_t slots, uint64_t seed, uint64_t next_slots = 0) : random_(seed) {
    const IndexGeometry geometry = GeometryForSlots(slots, 0, 1);
    next_ = GeometryForSlots(next_slots, geometry.bytes(), 2);
    memory_.resize((next_.offset + next_.bytes()) / sizeof(uint64_t));
    index_.emplace(Index::Options{.region = std::as_writable_bytes(std::span(memory_)),
                                  .geometry = geometry,
                                  .incarnation = kIncarnation,
                                  .items = this});
  }

  Index& operator*() { return *index_; }
  Index* operator->() { return &*index_; }

  // Returns a key that was never used before.
  uint64_t NewKey() {
    hashes_.push_back(random_());
    return hashes_.size() - 1;
  }
  KeyHash Hash(uint64_t key) const { return KeyHash(hashes_[key]); }
  Slot SlotOf(uint64_t key) const {
    return Slot::Of(Hash(key).Tag(), 1, (key + 1) * kItemAlignment);
  }
  KeyHash KeyHashAt(Slot slot) const final { return Hash(slot.offset() / kItemAlignment - 1); }

  std::optional<Index::Found> Find(const Index::Lock& held, uint64_t key) {
    return index_->Find(held, Hash(key), [&](Slot slot) { return slot == SlotOf(key); });
  }
  // Migrates nothing, as a lock of the key would.
  std::optional<Index::Found> Find(uint64_t key) {
    const std::shared_ptr<IndexTable> table = index_->Hold();
    const Index::Lock lock(*index_, *table, table->Home(Hash(key)));
    return Find(lock, key);
  }
  bool Insert(uint64_t key) {
    const Index::Lock lock(*index_, Hash(key));
    return index_->Insert(lock, Hash(key), SlotOf(key));
  }
  bool Remove(uint64_t key) {
    const Index::Lock lock(*index_, Hash(key));
    const auto found = Find(lock, key);
    if (found) index_->Remove(lock, found->place);
    return found.has_value();
  }

  // A copy of a bucket of the newest table.
  Bucket BucketAt(uint64_t number) const { return BucketAt(index_->geometry(), number); }
  Bucket BucketAt(const IndexGeometry& geometry, uint64_t number) const {
    Bucket bucket;
    std::memcpy(&bucket, memory_.data() + geometry.BucketOffset(number) / sizeof(uint64_t),
                sizeof(bucket));
    return bucket;
  }
  // Grows up to the moment when there are two tables.
  void BeginGrowth() {
    index_->Prepare(next_);
    while (!index_->PrepareSome(10)) {
    }
    index_->BeginMigration();
  }

  // Returns whether a client that does not find this key in its window looks into the stash.
  bool SendsToStash(KeyHash hash) const {
    const Bucket home = BucketAt(hash.Home(index_->geometry().homes));
    return (BucketMeta(home.meta).stash_tags() & hash.StashTag()) != 0;
  }

  // Checks every bucket as a client would see it, and that the index has exactly `keys` keys, each
  // where a client looks for it.
  void CheckAll(uint64_t keys) {
    const IndexGeometry& geometry = index_->geometry();
    uint64_t found = 0;
    std::vector<uint32_t> tags(geometry.homes + 1);
    for (uint64_t b = geometry.buckets(); b-- > 0;) {
      const Bucket bucket = BucketAt(b);
      ASSERT_TRUE(BucketValid(bucket, BucketSeed(kIncarnation, geometry.generation, b))) << b;
      for (uint64_t word : bucket.slots) {
        if (word == 0) continue;
        ++found;
        const KeyHash hash = KeyHashAt(Slot(word));
        const uint64_t home = hash.Home(geometry.homes);
        if (b < geometry.main_buckets()) {
          ASSERT_TRUE(home == b || home + 1 == b) << "bucket " << b << ", home " << home;
        } else {
          const uint64_t stash = geometry.StashBucket(hash.StashHome(geometry.stash_homes));
          ASSERT_TRUE(stash == b || stash + 1 == b);
          tags[home] |= hash.StashTag();
        }
      }
      if (b < geometry.main_buckets()) {
        ASSERT_EQ(BucketMeta(bucket.meta).stash_tags(), tags[b]) << b;
      }
      if (b < geometry.homes) {
        ASSERT_EQ(BucketMeta(bucket.meta).moves_next(),
                  BucketMeta(BucketAt(b + 1).meta).moves_prev());
      }
    }
    EXPECT_EQ(found, keys);
    EXPECT_EQ(index_->slots_used(), keys);
  }

 private:
  std::mt19937_64 random_;
  std::vector<uint64_t> hashes_;
  std::vector<uint64_t> memory_;
  IndexGeometry next_{};
  std::optional<Index> index_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_MEMORY_INDEX_INDEX_FIXTURE_H_
