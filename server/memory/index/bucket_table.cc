#include "server/memory/index/bucket_table.h"

#include <bit>

#include "common/base/check.h"

namespace gannet {

BucketTable::BucketTable(std::span<std::byte> region, const IndexGeometry& geometry,
                         uint64_t incarnation)
    : first_(region.data() + geometry.offset), geometry_(geometry), incarnation_(incarnation) {
  GANNET_CHECK(geometry.ValidWithin(region.size()), "the index does not fit the region");
}

// Relaxed: clients learn of the table by a message, or by a superblock or a migrated flag that is
// stored with release. A client may READ here by an old location of an item. Then it finds bytes
// that fail its checksum.
void BucketTable::Initialise(uint64_t first, uint64_t end) {
  for (uint64_t bucket = first; bucket < end; ++bucket) {
    Bucket empty{};
    empty.checksum = BucketChecksum(empty, Seed(bucket));
    StoreWords(Address(bucket), &empty, sizeof(empty));
  }
}

void BucketTable::Adopt(uint64_t number, uint16_t used, uint32_t tags) {
  Bucket bucket;
  LoadWords(&bucket, Address(number), sizeof(bucket));
  for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    if ((used >> i & 1) == 0) bucket.slots[i] = 0;
  }
  bucket.meta = BucketMeta(bucket.meta).WithStashTags(tags).WithNextVersion().word();
  bucket.checksum = BucketChecksum(bucket, Seed(number));
  StoreWords(Address(number), &bucket, sizeof(bucket));
}

BucketChange::BucketChange(BucketTable& table, uint64_t bucket)
    : address_(table.Address(bucket)), seed_(table.Seed(bucket)) {
  LoadWords(&copy_, address_, sizeof(copy_));
}

BucketChange& BucketChange::SetSlot(uint32_t slot, Slot value) {
  copy_.slots[slot] = value.word();
  changed_slots_ |= 1u << slot;
  return *this;
}

BucketChange& BucketChange::BumpMovesNext() {
  copy_.meta = BucketMeta(copy_.meta).WithMovesNextBumped().word();
  return *this;
}

BucketChange& BucketChange::BumpMovesPrev() {
  copy_.meta = BucketMeta(copy_.meta).WithMovesPrevBumped().word();
  return *this;
}

BucketChange& BucketChange::SetStashTags(uint32_t tags) {
  copy_.meta = BucketMeta(copy_.meta).WithStashTags(tags).word();
  return *this;
}

BucketChange& BucketChange::SetMigrated() {
  copy_.meta = BucketMeta(copy_.meta).WithMigrated().word();
  return *this;
}

// A READ may sample each of the words at any time and in any order, so no order of these stores
// could make a half-seen publication right. The checksum does that: every mixture of two states
// fails it, because the version makes all states differ. A reader that finds no slot in such a
// mixture looks again. A reader that finds a slot in it believes only the item.
//
// The order below matters for the steps before and after a publication, not within it:
//   - Each store is a release, so nothing of this publication is seen before this thread's earlier
//     stores: the item's content, or the destination of the move whose source this clears.
//   - The checksum comes last. So whoever sees this thread's later release stores finds the
//     publication complete. Such stores clear the source of a move, write an item's commit word, or
//     write new bytes to a freed block.
// On x86-64 a release store is a plain store.
void BucketChange::Publish() {
  copy_.meta = BucketMeta(copy_.meta).WithNextVersion().word();
  copy_.checksum = BucketChecksum(copy_, seed_);
  for (uint32_t rest = changed_slots_; rest != 0; rest &= rest - 1) {
    const int slot = std::countr_zero(rest);
    StoreWordRelease(address_ + offsetof(Bucket, slots) + slot * sizeof(Slot), copy_.slots[slot]);
  }
  StoreWordRelease(address_ + offsetof(Bucket, meta), copy_.meta);
  StoreWordRelease(address_ + offsetof(Bucket, checksum), copy_.checksum);
}

}  // namespace gannet
