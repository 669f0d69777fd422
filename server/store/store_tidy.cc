// Store: makes room for writes. Removes expired items, and has others evicted and moved together,
// in small steps. The steps are done by a thread that has time, and by writes that found no room.

#include <algorithm>

#include "server/store/store_find.h"

namespace gannet {
namespace {

// A step of Tidy takes some 2 ms.
constexpr size_t kSweepHomesPerStep = 1024;
// The most work that a write without room does before it is refused.
constexpr int kSweepsPerWrite = 64;
constexpr size_t kSweepHomesPerSweep = 16;
constexpr int kGrowStepsPerWrite = 64;  // of less than 1 ms each
// So many items in a key's window are evicted at most. Each of them may let a key come back from
// the stash.
constexpr uint32_t kEvictionsForSlotMax = 8;

}  // namespace

void Store::NoteTouches(std::string_view touches) {
  if (evicts()) eviction_->TouchAll(touches, region_.size());
}

void Store::PauseEvictions(bool paused) {
  if (evicts()) evictor_->Pause(paused);
}

bool Store::Tidy(ServerTime now) {
  if (recovery_ != nullptr) {
    recovery_->SetNextVersion(next_version_.load(std::memory_order_relaxed));
    recovery_->SetClock(now.ms());
  }
  if (grower_.Step()) return true;
  bool more = Sweep(now, kSweepHomesPerStep).more;
  if (evicts()) {
    more |= evictor_->EvictToWatermark(now);
    more |= evictor_->ClearForTable(grower_.wanted_bytes());
  }
  return compactor_.Step() || more;
}

Swept Store::Sweep(ServerTime now, size_t homes) {
  Swept swept;
  size_t looked_at = 0;
  const std::shared_ptr<IndexTable> table = index_.Hold();
  ExpiryFloors& floors = table->floors;
  uint64_t home = sweep_home_.load(std::memory_order_relaxed) % floors.homes();
  for (uint64_t passed = 0; passed < floors.homes() && !swept.more;) {
    const uint64_t end = floors.RangeEnd(home);
    uint64_t due = floors.NextDue(home, end, now);
    for (; due != end && looked_at < homes; due = floors.NextDue(due + 1, end, now)) {
      const Index::Lock lock(index_, *table, due);
      if (!index_.IsCurrent(*table)) return swept;
      swept.removed += RemoveExpired(lock, *table, due, now);
      ++looked_at;
    }
    swept.more = due != end;
    if (!swept.more && floors.RangeDue(home, now)) {
      const Index::Lock lock(index_, *table, home);
      floors.RaiseRange(home);
    }
    passed += due - home;
    home = due == floors.homes() ? 0 : due;
  }
  sweep_home_.store(home, std::memory_order_relaxed);
  return swept;
}

size_t Store::RemoveExpired(const Index::Lock& held, IndexTable& table, uint64_t home,
                            ServerTime now) {
  for (size_t removed = 0;; ++removed) {
    // A removal may move another key of this home out of the stash, so this makes the list again.
    FoundOfHome found;
    const size_t n = table.List(home, found);
    // If some were left out, the next call looks at them.
    uint64_t floor = n == found.size() ? now.ms() : ExpiryFloors::kNever;
    const auto expired = std::find_if(found.begin(), found.begin() + n, [&](const auto& item) {
      const uint64_t expiry_ms = ExpiryMs(Block(item.slot.offset()));
      if (expiry_ms != 0) floor = std::min(floor, expiry_ms);
      return now.IsPast(expiry_ms);
    });
    if (expired == found.begin() + n) {
      table.floors.Set(home, floor);
      return removed;
    }
    RemoveItem(held, expired->place, expired->slot);
    items_expired_.fetch_add(1, std::memory_order_relaxed);
  }
}

size_t Store::RemoveExpiredNear(const Index::Lock& held, KeyHash hash, ServerTime now) {
  IndexTable& table = index_.TableOf(hash);
  const uint64_t home = table.Home(hash);
  const uint64_t first = home < kNearHomes ? 0 : home - kNearHomes;
  const uint64_t last = std::min(home + kNearHomes, table.floors.homes() - 1);
  size_t removed = 0;
  for (uint64_t near = first; near <= last; ++near) {
    if (table.floors.Due(near, now)) removed += RemoveExpired(held, table, near, now);
  }
  return removed;
}

ReplyStatus Store::InsertAfterRemoval(const Index::Lock& held, KeyHash hash, Slot slot,
                                      ServerTime now) {
  if (RemoveExpiredNear(held, hash, now) != 0 && index_.Insert(held, hash, slot)) {
    return ReplyStatus::kOk;
  }
  if (!evicts()) return ReplyStatus::kIndexFull;
  for (uint32_t i = 0; i < kEvictionsForSlotMax; ++i) {
    if (!evictor_->EvictInWindow(held, hash, slot.size_class())) break;
    eviction_->evicted_by_writes.fetch_add(1, std::memory_order_relaxed);
    if (later_ != nullptr) return ReplyStatus::kTryAgain;
    if (index_.Insert(held, hash, slot)) return ReplyStatus::kOk;
  }
  return ReplyStatus::kIndexFull;
}

std::byte* Store::AllocateOrMakeRoom(uint64_t item_bytes, ServerTime now) {
  std::byte* block = heap_->Allocate(item_bytes);
  for (int i = 0; block == nullptr && i < kSweepsPerWrite; ++i) {
    const Swept swept = Sweep(now, kSweepHomesPerSweep);
    if (swept.removed == 0 && !swept.more) break;
    block = heap_->Allocate(item_bytes);
  }
  // The step behind the last one frees the memory of the former index.
  bool grows = growing() && !evicts();
  for (int i = 0; block == nullptr && grows && i < kGrowStepsPerWrite; ++i) {
    grows = growing();
    grower_.Step();
    block = heap_->Allocate(item_bytes);
  }
  if (block == nullptr && evicts()) block = evictor_->EvictFor(item_bytes);
  if (block != nullptr) return block;
  return compactor_.MakeRoom() ? heap_->Allocate(item_bytes) : nullptr;
}

}  // namespace gannet
