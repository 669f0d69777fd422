// One table of the index. A key goes into its home bucket, the next one, or the stash; displacement
// moves others along the line of buckets to make room. Each move publishes its destination before
// its source, and bumps the pair's counter in both, so that a reader who sees neither copy sees two
// counters (docs/consistency.md, W1). Which slots belong to the bucket before is kept beside the
// region, so no item is read here.

#include "server/memory/index/index_table.h"

#include <bit>

namespace gannet {

IndexTable::IndexTable(const Options& options, IndexCounters& counters)
    : floors(options.geometry.homes, options.ranges),
      table_(options.region, options.geometry, options.incarnation),
      items_(*options.items),
      counters_(counters),
      occupancy_(options.geometry.main_buckets()),
      stash_(options.geometry.main_buckets(), options.geometry.stash_homes) {}

void IndexTable::Adopt(std::span<const BucketSlots> slots) {
  const uint64_t main_buckets = geometry().main_buckets();
  uint64_t in_stash = 0;
  uint64_t used = 0;
  for (uint64_t bucket = 0; bucket < slots.size(); ++bucket) {
    used += std::popcount(slots[bucket].used);
    if (bucket < main_buckets) occupancy_.Set(bucket, slots[bucket]);
  }
  MutexLock lock(stash_mutex_);
  for (uint64_t bucket = main_buckets; bucket < slots.size(); ++bucket) {
    for (uint32_t rest = slots[bucket].used; rest != 0; rest &= rest - 1, ++in_stash) {
      const uint32_t slot = std::countr_zero(rest);
      const KeyHash hash = items_.KeyHashAt(table_.LoadSlot(bucket, slot));
      stash_.Add(Home(hash), {hash, bucket, slot});
    }
    table_.Adopt(bucket, slots[bucket].used, 0);
  }
  for (uint64_t bucket = 0; bucket < main_buckets; ++bucket) {
    table_.Adopt(bucket, slots[bucket].used, stash_.TagsForHome(bucket));
  }
  stash_used_.fetch_add(in_stash, std::memory_order_relaxed);
  counters_.slots_used.fetch_add(used, std::memory_order_relaxed);
}

bool IndexTable::Insert(KeyHash hash, Slot slot) {
  const uint64_t home = hash.Home(geometry().homes);
  std::optional<uint64_t> bucket = WindowBucketWithRoom(home);
  if (!bucket) bucket = Displace(home);
  if (!bucket && InsertInStash(hash, home, slot)) return true;
  if (!bucket) bucket = MoveToStash(home);
  if (!bucket) return false;
  InsertInWindow(home, *bucket, slot);
  return true;
}

void IndexTable::Replace(const Place& place, Slot slot) {
  if (InStash(place.bucket)) {
    MutexLock lock(stash_mutex_);
    BucketChange(table_, place.bucket).SetSlot(place.slot, slot).Publish();
    return;
  }
  BucketChange(table_, place.bucket).SetSlot(place.slot, slot).Publish();
}

void IndexTable::Remove(const Place& place) {
  counters_.slots_used.fetch_sub(1, std::memory_order_relaxed);
  if (InStash(place.bucket)) {
    RemoveFromStash(place);
    return;
  }
  BucketChange(table_, place.bucket).SetSlot(place.slot, Slot()).Publish();
  occupancy_.Release(place.bucket, place.slot);
  PullBack(place.bucket);
}

size_t IndexTable::List(uint64_t home, std::span<Found> out) {
  if (migrated(home)) return 0;
  size_t n = 0;
  for (uint64_t bucket = home; bucket <= home + 1; ++bucket) {
    for (uint32_t i = 0; i < kSlotsPerBucket && n < out.size(); ++i) {
      const Slot slot = table_.LoadSlot(bucket, i);
      if (slot.empty() || occupancy_.FromPrevious(bucket, i) != (bucket != home)) continue;
      out[n++] = {{this, home, bucket, i}, slot};
    }
  }
  if (table_.LoadMeta(home).stash_tags() == 0) return n;
  MutexLock lock(stash_mutex_);
  for (const Stash::Entry& entry : stash_.EntriesOfHome(home)) {
    if (n == out.size()) break;
    out[n++] = {{this, home, entry.bucket, entry.slot}, table_.LoadSlot(entry.bucket, entry.slot)};
  }
  return n;
}

void IndexTable::AppendSlots(uint64_t home, std::vector<Slot>* slots) {
  for (uint64_t bucket = home; bucket <= home + 1; ++bucket) {
    for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
      const Slot slot = table_.LoadSlot(bucket, i);
      if (slot.empty() || occupancy_.FromPrevious(bucket, i) != (bucket != home)) continue;
      slots->push_back(slot);
    }
  }
  if (table_.LoadMeta(home).stash_tags() == 0) return;
  MutexLock lock(stash_mutex_);
  for (const Stash::Entry& entry : stash_.EntriesOfHome(home)) {
    slots->push_back(table_.LoadSlot(entry.bucket, entry.slot));
  }
}

void IndexTable::SetMigrated(uint64_t home) { BucketChange(table_, home).SetMigrated().Publish(); }

// Tries the home bucket first, so that the server finds most keys in the first bucket it looks at.
std::optional<uint64_t> IndexTable::WindowBucketWithRoom(uint64_t home) {
  if (occupancy_.HasRoom(home)) return home;
  if (occupancy_.HasRoom(home + 1)) return home + 1;
  return std::nullopt;
}

void IndexTable::InsertInWindow(uint64_t home, uint64_t bucket, Slot slot) {
  const uint32_t free = occupancy_.FreeSlot(bucket);
  BucketChange(table_, bucket).SetSlot(free, slot).Publish();
  occupancy_.Take(bucket, free, bucket != home);
  counters_.slots_used.fetch_add(1, std::memory_order_relaxed);
}

// Moves the far end of the chain first, so that every move has a free slot to go to.
std::optional<uint64_t> IndexTable::Displace(uint64_t home) {
  const std::optional<Chain> chain = FindChain(occupancy_, home);
  if (!chain) return std::nullopt;
  for (uint32_t i = chain->moves; i-- > 0;) {
    if (chain->to_next) {
      MoveToNext(chain->start + i);
    } else {
      MoveToPrevious(chain->start - i);
    }
  }
  counters_.displacements.fetch_add(chain->moves, std::memory_order_relaxed);
  return chain->start;
}

// Publishes the destination before it clears the source, and bumps the pair's counter in both
// publications. A reader may see the source without the key, and the destination before the key
// came. Then it sees two different counters (W1).
void IndexTable::MoveToNext(uint64_t from) {
  const uint64_t to = from + 1;
  const uint32_t slot = *occupancy_.MovableToNext(from);
  const uint32_t free = occupancy_.FreeSlot(to);
  const Slot moved = table_.LoadSlot(from, slot);
  BucketChange(table_, to).SetSlot(free, moved).BumpMovesPrev().Publish();
  BucketChange(table_, from).SetSlot(slot, Slot()).BumpMovesNext().Publish();
  occupancy_.Take(to, free, true);
  occupancy_.Release(from, slot);
}

void IndexTable::MoveToPrevious(uint64_t from) {
  const uint64_t to = from - 1;
  const uint32_t slot = *occupancy_.MovableToPrevious(from);
  const uint32_t free = occupancy_.FreeSlot(to);
  const Slot moved = table_.LoadSlot(from, slot);
  BucketChange(table_, to).SetSlot(free, moved).BumpMovesNext().Publish();
  BucketChange(table_, from).SetSlot(slot, Slot()).BumpMovesPrev().Publish();
  occupancy_.Take(to, free, false);
  occupancy_.Release(from, slot);
}

// Moves into and out of the stash. A move between window and stash bumps the pair's
// counter in both buckets of the window, each in the publication that changes its slot or its tags
// (W2). The order into the stash is stash, home, next; out of it next, home, stash.

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
      const auto room = stash_.FindRoom(items_.KeyHashAt(table_.LoadSlot(bucket, slot)));
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
