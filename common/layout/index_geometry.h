#ifndef GANNET_COMMON_LAYOUT_INDEX_GEOMETRY_H_
#define GANNET_COMMON_LAYOUT_INDEX_GEOMETRY_H_

#include <cstdint>

#include "common/layout/bucket.h"

namespace gannet {

// Where an index lies in the region, and how many buckets it has. Plain data, part of the
// superblock and of the grant.
//
//   offset                                   StashOffset()
//   | home 0 | home 1 | ... | home N-1 | +1  | stash 0 | ... | stash S-1 | +1 |
//
// N homes have N + 1 buckets, and S stash homes have S + 1, so that a window (two neighbours) never
// wraps. The stash is about 2 % of the buckets. Bucket numbers (BucketSeed) run through both parts.
struct IndexGeometry {
  uint64_t generation;   // of the index; 1 for the first
  uint64_t offset;       // of bucket 0 from the region's base, bytes; a multiple of 128
  uint64_t homes;        // N >= 1
  uint64_t stash_homes;  // S >= 1

  constexpr uint64_t main_buckets() const { return homes + 1; }
  constexpr uint64_t buckets() const { return homes + 1 + stash_homes + 1; }
  constexpr uint64_t slots() const { return buckets() * kSlotsPerBucket; }
  constexpr uint64_t bytes() const { return buckets() * kBucketBytes; }
  // Returns the offset of bucket `number` from the region's base. REQUIRES: number < buckets().
  constexpr uint64_t BucketOffset(uint64_t number) const { return offset + number * kBucketBytes; }
  // Returns the number of the first bucket of stash home `s`.
  constexpr uint64_t StashBucket(uint64_t s) const { return main_buckets() + s; }

  // Returns whether a geometry from a peer is within bounds. Check it before using any of the
  // above.
  constexpr bool ValidWithin(uint64_t region_bytes) const {
    constexpr uint64_t kBucketsMax = kRegionBytesMax / kBucketBytes;
    return homes >= 1 && stash_homes >= 1 && homes < kBucketsMax && stash_homes < kBucketsMax &&
           offset % kBucketBytes == 0 && offset <= region_bytes && bytes() <= region_bytes - offset;
  }

  friend constexpr bool operator==(const IndexGeometry&, const IndexGeometry&) = default;
};
static_assert(sizeof(IndexGeometry) == 32);

// Returns the smallest geometry at `offset` with at least `slots` slots, a fiftieth of them in the
// stash.
constexpr IndexGeometry GeometryForSlots(uint64_t slots, uint64_t offset, uint64_t generation) {
  uint64_t buckets = (slots + kSlotsPerBucket - 1) / kSlotsPerBucket;
  if (buckets < 4) buckets = 4;
  uint64_t stash_buckets = buckets / 50;
  if (stash_buckets < 2) stash_buckets = 2;
  return {generation, offset, buckets - stash_buckets - 1, stash_buckets - 1};
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_INDEX_GEOMETRY_H_
