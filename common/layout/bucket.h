#ifndef GANNET_COMMON_LAYOUT_BUCKET_H_
#define GANNET_COMMON_LAYOUT_BUCKET_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/base/hash.h"
#include "common/layout/slot.h"

namespace gannet {

inline constexpr size_t kSlotsPerBucket = 14;
inline constexpr size_t kBucketBytes = 128;
inline constexpr size_t kWindowBytes = 2 * kBucketBytes;  // home bucket and the next: one READ

// The second word of a bucket:
//
//   63       62         56 55            40 39            24 23       0
//   [migrated][stash tags ][ moves prev : 16 ][ moves next : 16 ][ version ]
//
// version: every publication bumps it. moves next, moves prev: how many keys moved between this
// bucket and the one after it, or before it; every such move bumps the counters of both buckets.
// stash tags: the KeyHash::StashTag bits of this home's keys that are in the stash. migrated:
// this home's keys are in the next index, and their slots here are out of date (Superblock).
class BucketMeta {
 public:
  constexpr BucketMeta() = default;
  constexpr explicit BucketMeta(uint64_t word) : word_(word) {}

  constexpr uint64_t word() const { return word_; }
  constexpr uint32_t version() const { return static_cast<uint32_t>(word_) & 0xffffff; }
  constexpr uint16_t moves_next() const { return static_cast<uint16_t>(word_ >> 24); }
  constexpr uint16_t moves_prev() const { return static_cast<uint16_t>(word_ >> 40); }
  constexpr uint32_t stash_tags() const { return static_cast<uint32_t>(word_ >> 56) & 0x7f; }
  constexpr bool migrated() const { return word_ >> 63; }

  // The counters wrap.
  constexpr BucketMeta WithNextVersion() const {
    return BucketMeta((word_ & ~0xffffffull) | ((word_ + 1) & 0xffffffull));
  }
  constexpr BucketMeta WithMovesNextBumped() const { return WithField(24, moves_next() + 1); }
  constexpr BucketMeta WithMovesPrevBumped() const { return WithField(40, moves_prev() + 1); }
  constexpr BucketMeta WithStashTags(uint32_t tags) const {
    return BucketMeta((word_ & ~(0x7full << 56)) | (static_cast<uint64_t>(tags & 0x7f) << 56));
  }
  constexpr BucketMeta WithMigrated() const { return BucketMeta(word_ | 1ull << 63); }

  friend constexpr bool operator==(BucketMeta, BucketMeta) = default;

 private:
  constexpr BucketMeta WithField(uint32_t shift, uint32_t value) const {
    return BucketMeta((word_ & ~(0xffffull << shift)) |
                      (static_cast<uint64_t>(value & 0xffff) << shift));
  }
  uint64_t word_ = 0;
};

// 128 bytes: a 16-byte header and fourteen slots. A copy of a bucket can prove a miss only if its
// checksum is right. A hit does not need the checksum, because the item proves itself.
struct Bucket {
  uint64_t checksum;
  uint64_t meta;
  uint64_t slots[kSlotsPerBucket];
};
static_assert(sizeof(Bucket) == kBucketBytes && std::is_trivially_copyable_v<Bucket>);
static_assert(offsetof(Bucket, meta) == 8 && offsetof(Bucket, slots) == 16);

// Seeds a bucket's checksum with its number, its index and its server run. So a copy of another
// bucket, or of one of an earlier run, never passes for it. The numbers of stash buckets follow
// those of the N + 1 home buckets.
constexpr uint64_t BucketSeed(uint64_t incarnation, uint64_t generation, uint64_t bucket_number) {
  return Mix64(incarnation ^ Mix64(generation ^ Mix64(bucket_number + 1)));
}

// XXH3-64 of the meta word and the slots; never 0, so all-zero memory is not a valid bucket.
inline uint64_t BucketChecksum(const Bucket& bucket, uint64_t seed) {
  const uint64_t sum = Xxh3(&bucket.meta, kBucketBytes - sizeof(bucket.checksum), seed);
  return sum == 0 ? 1 : sum;
}

inline bool BucketValid(const Bucket& copy, uint64_t seed) {
  return copy.checksum == BucketChecksum(copy, seed);
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_BUCKET_H_
