// IndexTable: moves into and out of the stash. A move between window and stash bumps the pair's
// counter in both buckets of the window, each in the publication that changes its slot or its tags
// (W2). The order into the stash is stash, home, next; out of it next, home, stash.

#include "server/index/index_table.h"

namespace gannet {

// A new key does not count as a move: its item is not live yet, so no reader has seen it. The tag
// is published after the slot, so that a reader rarely looks into the stash in vain.
bool IndexTable::InsertInStash(KeyHash hash, uint64_t home, Slot slot) {
  MutexLock lock(stash_mutex_);
  const std::optional<Stash::Entry> room = stash_.FindRoom(hash);
  if (!room) return false;
  BucketChange(table_, room->bucket).SetSlot(room->slot, slot).Publish();
  stash_.Add(home, *room);
  SetStashTags(home, stash_.TagsForHome(home));
  stash_used_.fetch_add(1, std::memory_order_relaxed);
  counters_.slots_used.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// The key's item is dead, so readers need neither the slot nor the tag any more.
void IndexTable::RemoveFromStash(const Place& place) {
  MutexLock lock(stash_mutex_);
  BucketChange(table_, place.bucket).SetSlot(place.slot, Slot()).Publish();
  stash_.Remove(place.home, place.bucket, place.slot);
  SetStashTags(place.home, stash_.TagsForHome(place.home));
  stash_used_.fetch_sub(1, std::memory_order_relaxed);
}

void IndexTable::SetStashTags(uint64_t home, uint32_t tags) {
  if (table_.LoadMeta(home).stash_tags() == tags) return;
  BucketChange(table_, home).SetStashTags(tags).Publish();
}

void IndexTable::PullBack(uint64_t bucket) {
  // Keys of this home and of the one before may live in `bucket`. The range's lock guards the tags,
  // so an empty stash costs no lock.
  const uint64_t first = bucket == 0 ? 0 : bucket - 1;
  for (uint64_t home = bucket + 1; home-- > first;) {
    if (table_.LoadMeta(home).stash_tags() == 0) continue;
    MutexLock lock(stash_mutex_);
    const Stash::Entry entry = stash_.EntriesOfHome(home).front();
    MoveFromStash(home, entry, bucket);
    return;
  }
}

void IndexTable::MoveFromStash(uint64_t home, const Stash::Entry& entry, uint64_t to) {
  const Slot moved = table_.LoadSlot(entry.bucket, entry.slot);
  const uint32_t free = occupancy_.FreeSlot(to);
  stash_.Remove(home, entry.bucket, entry.slot);
  const uint32_t tags = stash_.TagsForHome(home);
  BucketChange next(table_, home + 1);
  BucketChange at_home(table_, home);
  (to == home ? at_home : next).SetSlot(free, moved);
  next.BumpMovesPrev().Publish();
  at_home.SetStashTags(tags).BumpMovesNext().Publish();
  BucketChange(table_, entry.bucket).SetSlot(entry.slot, Slot()).Publish();
  occupancy_.Take(to, free, to != home);
  stash_used_.fetch_sub(1, std::memory_order_relaxed);
}

// Called when the window, the chains and the key's own two stash buckets are full. Unless nearly
// the whole stash is full, one of the 28 keys in the window has room in its stash buckets.
std::optional<uint64_t> IndexTable::MoveToStash(uint64_t home) {
  MutexLock lock(stash_mutex_);
  for (uint64_t bucket = home; bucket <= home + 1; ++bucket) {
    for (uint32_t slot = 0; slot < kSlotsPerBucket; ++slot) {
      const auto room = stash_.FindRoom(hash_of_(table_.LoadSlot(bucket, slot)));
      if (!room) continue;
      MoveSlotToStash(bucket, slot, *room);
      return bucket;
    }
  }
  return std::nullopt;
}

void IndexTable::MoveSlotToStash(uint64_t from, uint32_t slot, const Stash::Entry& to) {
  const uint64_t home = occupancy_.FromPrevious(from, slot) ? from - 1 : from;
  BucketChange(table_, to.bucket).SetSlot(to.slot, table_.LoadSlot(from, slot)).Publish();
  stash_.Add(home, to);
  BucketChange at_home(table_, home);
  BucketChange next(table_, home + 1);
  (from == home ? at_home : next).SetSlot(slot, Slot());
  at_home.SetStashTags(stash_.TagsForHome(home)).BumpMovesNext().Publish();
  next.BumpMovesPrev().Publish();
  occupancy_.Release(from, slot);
  stash_used_.fetch_add(1, std::memory_order_relaxed);
  counters_.displacements.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace gannet
