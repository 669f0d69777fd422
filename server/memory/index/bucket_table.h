#ifndef GANNET_SERVER_MEMORY_INDEX_BUCKET_TABLE_H_
#define GANNET_SERVER_MEMORY_INDEX_BUCKET_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/words.h"
#include "common/layout/index_geometry.h"

namespace gannet {

// The buckets in the region, as clients READ them. Only BucketChange changes them.
//
// Ownership: the region outlives the table. Thread safety: only one server thread at a time reads
// or changes a bucket (Index holds the locks). Clients' READs need no lock.
class BucketTable {
 public:
  // Initialise must follow for all buckets. REQUIRES: geometry.ValidWithin(region.size()).
  BucketTable(std::span<std::byte> region, const IndexGeometry& geometry, uint64_t incarnation);

  // Writes buckets [first, end) as empty ones with the right checksum, whatever the memory holds.
  void Initialise(uint64_t first, uint64_t end);

  // Writes a bucket of a former run as one of this run. Only the slots in `used` (a bit each) stay,
  // and the stash tags are `tags`. REQUIRES: nobody READs the table yet.
  void Adopt(uint64_t bucket, uint16_t used, uint32_t tags);

  const IndexGeometry& geometry() const { return geometry_; }
  Slot LoadSlot(uint64_t bucket, uint32_t slot) const {
    return Slot(LoadWord(Address(bucket) + offsetof(Bucket, slots) + slot * sizeof(Slot)));
  }
  BucketMeta LoadMeta(uint64_t bucket) const {
    return BucketMeta(LoadWord(Address(bucket) + offsetof(Bucket, meta)));
  }
  const std::byte* Address(uint64_t bucket) const { return first_ + bucket * kBucketBytes; }

 private:
  friend class BucketChange;
  std::byte* Address(uint64_t bucket) { return first_ + bucket * kBucketBytes; }
  uint64_t Seed(uint64_t bucket) const {
    return BucketSeed(incarnation_, geometry_.generation, bucket);
  }

  std::byte* const first_;
  const IndexGeometry geometry_;
  const uint64_t incarnation_;
};

// One publication of one bucket (rule W1 of docs/consistency.md): slots, move counters, stash tags,
// the migrated flag and version change together, under one checksum.
//
//   BucketChange(table, b).SetSlot(3, slot).BumpMovesNext().Publish();
//
// REQUIRES: the bucket's lock, from the construction to the end of Publish.
class BucketChange {
 public:
  BucketChange(BucketTable& table, uint64_t bucket);

  BucketChange& SetSlot(uint32_t slot, Slot value);
  BucketChange& BumpMovesNext();
  BucketChange& BumpMovesPrev();
  BucketChange& SetStashTags(uint32_t tags);
  BucketChange& SetMigrated();

  // Stores the whole publication. Nobody sees this thread's later release stores before it.
  void Publish();

 private:
  std::byte* const address_;
  const uint64_t seed_;
  Bucket copy_;
  uint32_t changed_slots_ = 0;  // bit per slot
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_INDEX_BUCKET_TABLE_H_
