// Locks by ranges of hashes, and the migration from one table to the next, home by home. A home's
// copies are published before its flag, and both under a Lock that covers its windows in both
// tables.

#include "server/memory/index/index.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

namespace gannet {
namespace {

// A Lock reaches this many buckets to both sides. That covers a chain of moves, and the window of a
// key that goes to the stash or comes back.
constexpr uint64_t kReachBuckets = kChainMovesMax + 3;
// At first, a range has at least this many homes. So a Lock needs one range, or two.
constexpr uint64_t kHomesPerRangeMin = 64;
constexpr uint64_t kRangesMin = 8;
constexpr uint64_t kRangesMax = 4096;

uint64_t Ranges(const IndexGeometry& geometry) {
  return std::clamp(std::bit_floor(geometry.homes / kHomesPerRangeMin | 1), kRangesMin, kRangesMax);
}

// Returns the first hash whose home is `home` or a later one.
uint64_t FirstHashOf(const IndexTable& table, uint64_t home) {
  const uint64_t homes = table.geometry().homes;
  __extension__ using uint128 = unsigned __int128;
  const uint128 first = ((static_cast<uint128>(home) << 64) + homes - 1) / homes;
  return static_cast<uint64_t>(std::min(first, static_cast<uint128>(UINT64_MAX)));
}

}  // namespace

Index::Index(Options options)
    : options_(std::move(options)),
      range_shift_(64 - std::countr_zero(Ranges(options_.geometry))),
      ranges_(Ranges(options_.geometry)) {
  std::shared_ptr<IndexTable> table = MakeTable(options_.geometry);
  if (options_.adopted.empty()) {
    table->Initialise(0, table->geometry().buckets());
  } else {
    table->Adopt(options_.adopted);
  }
  SetReach(*table);
  current_.store(table.get(), std::memory_order_release);
  guessed_.store(&all_guessed_.back(), std::memory_order_release);
  {
    MutexLock lock(tables_mutex_);
    current_table_ = std::move(table);
  }
  if (!options_.adopted_next.empty()) AdoptNext();
}

std::shared_ptr<IndexTable> Index::MakeTable(const IndexGeometry& geometry) {
  auto table = std::make_shared<IndexTable>(IndexTable::Options{.region = options_.region,
                                                                .geometry = geometry,
                                                                .incarnation = options_.incarnation,
                                                                .ranges = ranges_.size(),
                                                                .items = options_.items},
                                            counters_);
  all_guessed_.push_back({table->first_bucket(), geometry.homes,
                          options_.guesses ? geometry.main_buckets() * kBucketBytes : 0});
  return table;
}

void Index::SetReach(const IndexTable& table) {
  const uint64_t homes = table.geometry().homes;
  const uint64_t reach =
      homes <= kReachBuckets ? UINT64_MAX : (UINT64_MAX / homes + 1) * kReachBuckets;
  // Release: whoever sees a shorter reach also sees that the smaller table is gone.
  reach_.store(reach, std::memory_order_release);
}

std::shared_ptr<IndexTable> Index::Hold() const {
  MutexLock lock(tables_mutex_);
  return current_table_;
}

Index::Lock::Lock(Index& index, const IndexTable& table, uint64_t home) : index_(index) {
  Acquire(FirstHashOf(table, home));
}

void Index::Lock::AcquireOthers() {
  for (Range* range = first_ + 1; range <= last_; ++range) range->mutex.Lock();
}

void Index::Lock::ReleaseOthers() {
  for (Range* range = last_; range > first_; --range) range->mutex.Unlock();
}

// The steps by which a larger table replaces the present one. docs/consistency.md says in
// which order readers must see them.

void Index::Prepare(const IndexGeometry& next) {
  CHECK(next_table_ == nullptr && old_table_ == nullptr);
  CHECK_GE(next.homes, geometry().homes);
  next_table_ = MakeTable(next);
  prepared_ = 0;
}

// The former run had begun to migrate the homes to this table.
void Index::AdoptNext() {
  Prepare(options_.next);
  next_table_->Adopt(options_.adopted_next);
  prepared_ = options_.next.buckets();
  BeginMigration();
  for (uint64_t home = 0; home < old_table_->geometry().homes; ++home) {
    if (old_table_->migrated(home)) homes_left_.fetch_sub(1, std::memory_order_relaxed);
  }
}

bool Index::PrepareSome(uint64_t buckets) {
  const uint64_t end = std::min(prepared_ + buckets, next_table_->geometry().buckets());
  next_table_->Initialise(prepared_, end);
  prepared_ = end;
  return end == next_table_->geometry().buckets();
}

// A writer that holds its Lock meanwhile may have seen the old table as the only one, and go on
// there. Nobody migrates a home of its range before it releases the Lock.
void Index::BeginMigration() {
  CHECK(next_table_ != nullptr && old_table_ == nullptr);
  old_table_ = Hold();
  homes_left_.store(old_table_->geometry().homes, std::memory_order_relaxed);
  migrate_next_ = 0;
  old_.store(old_table_.get(), std::memory_order_relaxed);
  // Before current_: once a home may be migrated, no guess in the old table may be believed.
  guessed_.store(&all_guessed_.back(), std::memory_order_release);
  // Release: whoever sees it also sees the new table's buckets, old_ and guessed_.
  current_.store(next_table_.get(), std::memory_order_release);
  MutexLock lock(tables_mutex_);
  current_table_ = std::move(next_table_);
  next_table_ = nullptr;
}

bool Index::MigrateSome(uint64_t homes) {
  IndexTable& from = *old_table_;
  IndexTable& to = *current_.load(std::memory_order_relaxed);
  for (; homes > 0 && homes_left_.load(std::memory_order_relaxed) > 0; --homes) {
    const uint64_t home = migrate_next_;
    migrate_next_ = home + 1 == from.geometry().homes ? 0 : home + 1;
    const Lock lock(*this, from, home);
    MigrateHome(lock, from, to, home);
  }
  // Acquire: sees what those who migrated the last homes did.
  return homes_left_.load(std::memory_order_acquire) == 0;
}

void Index::EndMigration() {
  CHECK_EQ(homes_left_.load(std::memory_order_relaxed), 0u);
  old_.store(nullptr, std::memory_order_release);
  // A thread that still uses the old table saw it under a lock that it took before. So wait for all
  // locks once.
  for (Range& range : ranges_) {
    range.mutex.Lock();
    range.mutex.Unlock();
  }
  SetReach(*current_.load(std::memory_order_relaxed));
  old_table_ = nullptr;
}

void Index::MigrateHomeOf(const Lock& held, KeyHash hash) {
  IndexTable* const to = current_.load(std::memory_order_acquire);
  IndexTable* const from = old_.load(std::memory_order_relaxed);
  if (from != nullptr && from != to) MigrateHome(held, *from, *to, from->Home(hash));
}

// Publishes the copies before the flag. Nobody else changes the home's keys meanwhile, in either
// table: the caller's Lock covers their windows in both.
bool Index::MigrateHome(const Lock& /*held*/, IndexTable& from, IndexTable& to, uint64_t home) {
  if (from.migrated(home)) return true;
  std::vector<Slot> slots;
  slots.reserve(3 * kSlotsPerBucket);
  from.AppendSlots(home, &slots);
  for (const Slot slot : slots) {
    // Their hashes are computed next, from the items' keys.
    const std::byte* const item = options_.region.data() + slot.offset();
    __builtin_prefetch(item);
    __builtin_prefetch(item + 64);
  }
  const ServerTime floor = from.floors.Of(home);
  size_t copied = 0;
  while (copied < slots.size()) {
    const KeyHash hash = options_.items->KeyHashAt(slots[copied]);
    if (!to.Insert(hash, slots[copied])) break;
    if (floor != ExpiryFloors::kNever) to.floors.Lower(to.Home(hash), floor);
    ++copied;
  }
  const bool all = copied == slots.size();
  if (!all) {  // takes the copies back, because a key may be in one table only
    for (size_t i = 0; i < copied; ++i) {
      const Slot slot = slots[i];
      const auto found =
          to.Find(options_.items->KeyHashAt(slot), [slot](Slot it) { return it == slot; });
      to.Remove(found->place);
    }
    return false;
  }
  from.SetMigrated(home);
  counters_.slots_used.fetch_sub(copied, std::memory_order_relaxed);
  // Release: this is the home's last use of the old table.
  homes_left_.fetch_sub(1, std::memory_order_acq_rel);
  return true;
}

}  // namespace gannet
