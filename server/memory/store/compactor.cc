// Moves items together. The store's invariants hold for readers as with a replacement out of place
// (docs/consistency.md).

#include "server/memory/store/compactor.h"

#include <algorithm>

#include "server/memory/store/item_writer.h"
#include "server/memory/store/large_writer.h"
#include "server/memory/store/store_find.h"

namespace gannet {
namespace {

constexpr size_t kCompactedHomesPerStep = 1024;
constexpr size_t kMovesPerStep = 256;
// The most that is moved under one lock.
constexpr uint64_t kMovedBytesPerLock = 256 << 10;
// Longer items stay where they are: to move one would hold up its key's writers for too long.
constexpr uint64_t kMovedItemBytesMax = 2 << 20;
// A new round of compaction is worthwhile if this share of the heap was freed since the last one.
constexpr uint64_t kFreedShare = 32;
// A heap that is half in use is compacted before it is full, if this share of it is free, but in
// slabs where only blocks of one class can use it.
constexpr uint64_t kSlackShare = 8;

}  // namespace

bool Compactor::Step() {
  if (!InRound()) {
    if (!wanted_.load(std::memory_order_relaxed) && !FragmentedWhenIdle()) return false;
    wanted_.store(false, std::memory_order_relaxed);
    if (!BeginRound()) return false;
  }
  Compact(kCompactedHomesPerStep);
  return InRound();
}

bool Compactor::MakeRoom() {
  Want();
  if (!InRound() && !BeginRound()) return false;
  return Compact(kCompactedHomesPerStep) > 0;
}

uint64_t Compactor::FreedSinceRound() const {
  return items_.heap().use().freed_bytes() + oversized_bytes_.load(std::memory_order_relaxed) -
         freed_at_round_.load(std::memory_order_relaxed);
}

bool Compactor::FragmentedWhenIdle() const {
  const uint64_t capacity = items_.heap().capacity_bytes();
  if (FreedSinceRound() < capacity / kFreedShare) return false;
  const uint64_t active = items_.heap().ActiveBytes();
  return active > capacity / 2 &&
         active > items_.heap().use().occupied_bytes() + capacity / kSlackShare;
}

bool Compactor::InRound() const {
  return position_.load(std::memory_order_relaxed) < until_.load(std::memory_order_relaxed);
}

// Returns false if too little was freed since the last round for another one to find more.
bool Compactor::BeginRound() {
  if (FreedSinceRound() < items_.heap().capacity_bytes() / kFreedShare) return false;
  until_.store(position_.load(std::memory_order_relaxed) + items_.index().geometry().homes,
               std::memory_order_relaxed);
  return true;
}

size_t Compactor::Compact(size_t homes) {
  const bool in_round = InRound();
  const std::shared_ptr<IndexTable> table = items_.index().Hold();
  Holes holes{};
  size_t moved = 0;
  for (size_t i = 0; i < homes && moved < kMovesPerStep; ++i) {
    const uint64_t position = position_.fetch_add(1, std::memory_order_relaxed);
    for (bool again = true; again;) {
      moved += CompactHome(*table, position % table->geometry().homes, &holes, &again);
    }
  }
  if (in_round && !InRound()) {
    freed_at_round_.fetch_add(FreedSinceRound(), std::memory_order_relaxed);
  }
  return moved;
}

size_t Compactor::CompactHome(IndexTable& table, uint64_t home, Holes* holes, bool* again) {
  *again = false;
  const Index::Lock lock(items_.index(), table, home);
  if (!items_.index().IsCurrent(table)) return 0;
  Items::FoundOfHome found;
  const size_t n = table.List(home, found);
  size_t moved = 0;
  uint64_t bytes = 0;
  size_t i = 0;
  for (; i < n && bytes < kMovedBytesPerLock; ++i) {
    const uint64_t bytes_of_one = MoveDown(lock, found[i], holes);
    moved += bytes_of_one > 0;
    bytes += bytes_of_one;
  }
  *again = i < n;
  return moved;
}

uint64_t Compactor::MoveDown(const Index::Lock& held, const Index::Found& found, Holes* holes) {
  const uint32_t old_class = items_.BlockClassOf(found.slot);
  if (IsLargeClass(old_class)) return MoveLargeDown(held, found);
  if (items_.heap().IsSingle(items_.Block(found.slot.offset())))
    return MoveSingle(held, found, holes);
  const std::byte* const block = items_.Block(found.slot.offset());
  const uint64_t bytes = items_.heap().SealedRoomAt(block, old_class);
  if (oversized_bytes_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    const Target fit = BestFit(found);
    if (fit.block_bytes < bytes && MoveBelow(held, found, fit, holes)) return fit.block_bytes;
  }
  return MoveBelow(held, found, {bytes, old_class, block}, holes) ? bytes : 0;
}

Compactor::Target Compactor::BestFit(const Index::Found& found) const {
  const ItemHeader header = items_.LoadHeader(found.slot);
  const uint64_t bytes = ItemBytes(header.key_bytes(), header.value_bytes);
  return {items_.heap().SealedBlockBytes(bytes), SizeClassFor(bytes),
          items_.region().data() + items_.region().size()};
}

// Into a slab, wherever that is. While there is no room for one, such blocks go down, so that room
// comes together.
uint64_t Compactor::MoveSingle(const Index::Lock& held, const Index::Found& found, Holes* holes) {
  const uint32_t size_class = items_.BlockClassOf(found.slot);
  const uint64_t bytes = SizeClassBytes(size_class);
  const Target fit = BestFit(found);
  if (MoveBelow(held, found, fit, holes)) return fit.block_bytes;
  std::byte* block =
      items_.heap().AllocateSingleBelow(size_class, items_.Block(found.slot.offset()));
  if (block == nullptr) return 0;
  Move(held, found, block, size_class);
  return bytes;
}

uint64_t Compactor::MoveLargeDown(const Index::Lock& held, const Index::Found& found) {
  const ItemHeader header = items_.LoadHeader(found.slot);
  const uint64_t bytes = ItemBytes(header.key_bytes(), header.value_bytes);
  if (bytes > kMovedItemBytesMax) return 0;
  std::byte* block = items_.heap().AllocateBelow(bytes, items_.Block(found.slot.offset()));
  if (block == nullptr) return 0;
  Move(held, found, block, found.slot.size_class());
  return bytes;
}

// The heap hands out the lowest free block of a length. So each move fills a lower hole, and the
// moves end if nobody changes the heap.
bool Compactor::MoveBelow(const Index::Lock& held, const Index::Found& found, const Target& to,
                          Holes* holes) {
  const std::byte*& hole = (*holes)[to.block_bytes / kItemAlignment];
  if (to.end <= hole) return false;
  std::byte* block = items_.heap().AllocateTight(to.block_bytes);
  hole = block == nullptr ? items_.region().data() + items_.region().size() : block;
  if (block == nullptr) return false;
  if (block > to.end) {
    items_.heap().Free(block, to.size_class);
    return false;
  }
  Move(held, found, block, to.size_class);
  return true;
}

// Works as a replacement out of place (docs/consistency.md), with the present content and version.
void Compactor::Move(const Index::Lock& held, const Index::Found& found, std::byte* to,
                     uint32_t block_class) {
  const uint64_t old_offset = found.slot.offset();
  const uint64_t new_offset = to - items_.region().data();
  const uint64_t live_commit = CopyItem(found.slot, to);
  const uint32_t slot_class = IsStub(found.slot) ? kSizeClassMarker : block_class;
  const Slot moved = Slot::Of(found.slot.tag(), slot_class, new_offset);
  if (ItemLeases* const leases = items_.leases()) {
    leases->Moved(items_.LoadHeader(found.slot).commit, live_commit);
  }
  // Only the record of what is under way needs it.
  const KeyHash hash = items_.recovery() != nullptr ? items_.KeyHashAt(found.slot) : KeyHash(0);
  items_.ReplaceItem(held, hash, found.place, found.slot, moved, live_commit);
  if (Eviction* const eviction = items_.eviction()) {
    eviction->heat.Set(new_offset, eviction->heat.Get(old_offset));
  }
  items_.FreeBlock(old_offset, items_.BlockClassOf(found.slot));
  items_moved_.fetch_add(1, std::memory_order_relaxed);
}

// The commit word covers content and place. Of a sealed item only the place changes. A large item
// gets a new placing too: it may come back to a block that held other content meanwhile, and must
// not have the same commit word there again.
uint64_t Compactor::CopyItem(Slot slot, std::byte* to) {
  const std::byte* from = items_.Block(slot.offset());
  const uint64_t new_offset = to - items_.region().data();
  const ItemHeader header = items_.LoadHeader(slot);
  constexpr size_t kCommitBytes = sizeof(header.commit);
  StoreDeadFirst(to);
  StoreWords(to + kCommitBytes, from + kCommitBytes,
             ItemBytes(header.key_bytes(), header.value_bytes) - kCommitBytes);
  if (!IsLargeClass(slot.size_class())) {
    return Resealed(header.commit, slot.offset(), new_offset);
  }
  const LargeItemHeader large{header, items_.NextVersion()};
  StoreWord(to + offsetof(LargeItemHeader, placing), large.placing);
  return LiveCommitWordOf(large, ItemSeal(items_.KeyHashAt(slot), items_.PlaceAt(new_offset)));
}

}  // namespace gannet
