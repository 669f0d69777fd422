// Store: makes room for writes. Removes expired items and moves the others together, in small
// steps. The steps are done by a thread that has time, and by writes that found no room.

#include <algorithm>

#include "server/store/item_writer.h"
#include "server/store/large_writer.h"
#include "server/store/store_find.h"

namespace gannet {
namespace {

// A step of Tidy takes some 2 ms.
constexpr size_t kSweepHomesPerStep = 1024;
constexpr size_t kCompactHomesPerStep = 1024;
constexpr size_t kMovesPerStep = 256;
// The most that is moved under one lock.
constexpr uint64_t kMovedBytesPerLock = 256 << 10;
// Longer items stay where they are: to move one would hold up its key's writers for too long.
constexpr uint64_t kMovedItemBytesMax = 2 << 20;
// The most work that a write without room does before it is refused.
constexpr int kSweepsPerWrite = 64;
constexpr size_t kSweepHomesPerSweep = 16;
// How far to both sides a key's lock covers homes and everything that removing one of their keys
// touches: the two buckets of its window, and their neighbours, where a key from the stash may come
// back to.
constexpr uint64_t kNearHomes = kChainMovesMax - 1;
// A new round of compaction is worthwhile if this share of the heap was freed since the last one.
constexpr uint64_t kFreedShare = 32;
// A heap that is half in use is compacted before it is full, if this share of it is free, but in
// slabs where only blocks of one class can use it.
constexpr uint64_t kSlackShare = 8;

}  // namespace

bool Store::Tidy(uint64_t now_ms) {
  if (Grow()) return true;
  const bool more = Sweep(now_ms, kSweepHomesPerStep).more;
  if (!InCompactionRound()) {
    if (!compaction_wanted_.load(std::memory_order_relaxed) && !FragmentedWhenIdle()) return more;
    compaction_wanted_.store(false, std::memory_order_relaxed);
    if (!BeginCompactionRound()) return more;
  }
  Compact(kCompactHomesPerStep);
  return more || InCompactionRound();
}

Store::Swept Store::Sweep(uint64_t now_ms, size_t homes) {
  Swept swept;
  size_t looked_at = 0;
  const std::shared_ptr<IndexTable> table = index_.Hold();
  ExpiryFloors& floors = table->floors;
  uint64_t home = sweep_home_.load(std::memory_order_relaxed) % floors.homes();
  for (uint64_t passed = 0; passed < floors.homes() && !swept.more;) {
    const uint64_t end = floors.RangeEnd(home);
    uint64_t due = floors.NextDue(home, end, now_ms);
    for (; due != end && looked_at < homes; due = floors.NextDue(due + 1, end, now_ms)) {
      const Index::Lock lock(index_, *table, due);
      if (!index_.IsCurrent(*table)) return swept;
      swept.removed += RemoveExpired(*table, due, now_ms);
      ++looked_at;
    }
    swept.more = due != end;
    if (!swept.more && floors.RangeDue(home, now_ms)) {
      const Index::Lock lock(index_, *table, home);
      floors.RaiseRange(home);
    }
    passed += due - home;
    home = due == floors.homes() ? 0 : due;
  }
  sweep_home_.store(home, std::memory_order_relaxed);
  return swept;
}

size_t Store::RemoveExpired(IndexTable& table, uint64_t home, uint64_t now_ms) {
  for (size_t removed = 0;; ++removed) {
    // A removal may move another key of this home out of the stash, so this makes the list again.
    FoundOfHome found;
    const size_t n = table.List(home, found);
    // If some were left out, the next call looks at them.
    uint64_t floor = n == found.size() ? now_ms : ExpiryFloors::kNever;
    const auto expired = std::find_if(found.begin(), found.begin() + n, [&](const auto& item) {
      const uint64_t expiry_ms = ExpiryMs(Block(item.slot.offset()));
      if (expiry_ms != 0) floor = std::min(floor, expiry_ms);
      return expiry_ms != 0 && expiry_ms <= now_ms;
    });
    if (expired == found.begin() + n) {
      table.floors.Set(home, floor);
      return removed;
    }
    RemoveItem(expired->place, expired->slot);
    items_expired_.fetch_add(1, std::memory_order_relaxed);
  }
}

size_t Store::RemoveExpiredNear(KeyHash hash, uint64_t now_ms) {
  IndexTable& table = index_.TableOf(hash);
  const uint64_t home = table.Home(hash);
  const uint64_t first = home < kNearHomes ? 0 : home - kNearHomes;
  const uint64_t last = std::min(home + kNearHomes, table.floors.homes() - 1);
  size_t removed = 0;
  for (uint64_t near = first; near <= last; ++near) {
    if (table.floors.Due(near, now_ms)) removed += RemoveExpired(table, near, now_ms);
  }
  return removed;
}

std::byte* Store::AllocateOrMakeRoom(uint32_t size_class, uint64_t now_ms) {
  std::byte* block = heap_->Allocate(size_class);
  for (int i = 0; block == nullptr && i < kSweepsPerWrite; ++i) {
    const Swept swept = Sweep(now_ms, kSweepHomesPerSweep);
    if (swept.removed == 0 && !swept.more) break;
    block = heap_->Allocate(size_class);
  }
  if (block != nullptr) return block;
  compaction_wanted_.store(true, std::memory_order_relaxed);
  if (!InCompactionRound() && !BeginCompactionRound()) return nullptr;
  return Compact(kCompactHomesPerStep) > 0 ? heap_->Allocate(size_class) : nullptr;
}

uint64_t Store::FreedSinceRound() const {
  return heap_->freed_bytes() + oversized_bytes_.load(std::memory_order_relaxed) -
         freed_at_round_.load(std::memory_order_relaxed);
}

bool Store::FragmentedWhenIdle() const {
  const uint64_t capacity = heap_->capacity_bytes();
  if (FreedSinceRound() < capacity / kFreedShare) return false;
  const uint64_t active = heap_->ActiveBytes();
  return active > capacity / 2 &&
         active > heap_->allocated_bytes() + heap_->table_bytes() + capacity / kSlackShare;
}

bool Store::InCompactionRound() const {
  return compact_position_.load(std::memory_order_relaxed) <
         compact_until_.load(std::memory_order_relaxed);
}

// Returns false if too little was freed since the last round for another one to find more.
bool Store::BeginCompactionRound() {
  if (FreedSinceRound() < heap_->capacity_bytes() / kFreedShare) return false;
  compact_until_.store(compact_position_.load(std::memory_order_relaxed) + index_.geometry().homes,
                       std::memory_order_relaxed);
  return true;
}

size_t Store::Compact(size_t homes) {
  const bool in_round = InCompactionRound();
  const std::shared_ptr<IndexTable> table = index_.Hold();
  Holes holes{};
  size_t moved = 0;
  for (size_t i = 0; i < homes && moved < kMovesPerStep; ++i) {
    const uint64_t position = compact_position_.fetch_add(1, std::memory_order_relaxed);
    for (bool again = true; again;) {
      moved += CompactHome(*table, position % table->geometry().homes, &holes, &again);
    }
  }
  items_moved_.fetch_add(moved, std::memory_order_relaxed);
  if (in_round && !InCompactionRound()) {
    freed_at_round_.fetch_add(FreedSinceRound(), std::memory_order_relaxed);
  }
  return moved;
}

size_t Store::CompactHome(IndexTable& table, uint64_t home, Holes* holes, bool* again) {
  *again = false;
  const Index::Lock lock(index_, table, home);
  if (!index_.IsCurrent(table)) return 0;
  FoundOfHome found;
  const size_t n = table.List(home, found);
  size_t moved = 0;
  uint64_t bytes = 0;
  size_t i = 0;
  for (; i < n && bytes < kMovedBytesPerLock; ++i) {
    const uint64_t bytes_of_one = MoveDown(found[i], holes);
    moved += bytes_of_one > 0;
    bytes += bytes_of_one;
  }
  *again = i < n;
  return moved;
}

uint64_t Store::MoveDown(const Index::Found& found, Holes* holes) {
  const uint32_t old_class = found.slot.size_class();
  if (SizeClassBytes(old_class) > kMovedItemBytesMax) return 0;
  if (oversized_bytes_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    const ItemHeader header = LoadHeader(found.slot);
    const uint32_t size_class = SizeClassFor(ItemBytes(header.key_bytes(), header.value_bytes));
    if (size_class != old_class &&
        MoveBelow(found, region_.data() + region_.size(), size_class, holes)) {
      return SizeClassBytes(size_class);
    }
  }
  const bool moved = MoveBelow(found, Block(found.slot.offset()), old_class, holes);
  return moved ? SizeClassBytes(old_class) : 0;
}

// jemalloc hands out the lowest free block of a class. So each move fills a lower hole, and the
// moves end if nobody changes the heap.
bool Store::MoveBelow(const Index::Found& found, const std::byte* end, uint32_t size_class,
                      Holes* holes) {
  const std::byte*& hole = (*holes)[size_class];
  if (end <= hole) return false;
  std::byte* block = heap_->Allocate(size_class);
  hole = block == nullptr ? region_.data() + region_.size() : block;
  if (block == nullptr) return false;
  if (block > end) {
    heap_->Free(block, size_class);
    return false;
  }
  Move(found, block, size_class);
  return true;
}

// Works as a replacement out of place (docs/consistency.md), with the present content and version.
void Store::Move(const Index::Found& found, std::byte* to, uint32_t size_class) {
  const uint64_t old_offset = found.slot.offset();
  const uint64_t new_offset = to - region_.data();
  const uint64_t live_commit = CopyItem(found.slot, to);
  StoreDead(Block(old_offset));
  StoreLive(to, live_commit);
  index_.Replace(found.place, Slot::Of(found.slot.tag(), size_class, new_offset));
  FreeBlock(old_offset, found.slot.size_class());
}

// The commit word covers content and place. Of a sealed item only the place changes. A large item
// gets a new placing too: it may come back to a block that held other content meanwhile, and must
// not have the same commit word there again.
uint64_t Store::CopyItem(Slot slot, std::byte* to) {
  const std::byte* from = Block(slot.offset());
  const uint64_t new_offset = to - region_.data();
  const ItemHeader header = LoadHeader(slot);
  constexpr size_t kCommitBytes = sizeof(header.commit);
  StoreDeadFirst(to);
  StoreWords(to + kCommitBytes, from + kCommitBytes,
             ItemBytes(header.key_bytes(), header.value_bytes) - kCommitBytes);
  if (!IsLargeClass(slot.size_class())) {
    return Resealed(header.commit, slot.offset(), new_offset);
  }
  const LargeItemHeader large{header, NextVersion()};
  StoreWord(to + offsetof(LargeItemHeader, placing), large.placing);
  return LiveCommitWordOf(large, ItemSeal(KeyHashAt(slot), PlaceAt(new_offset)));
}

}  // namespace gannet
