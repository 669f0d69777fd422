#include "server/index/index.h"

#include <algorithm>
#include <bit>
#include <utility>

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
                                                                .hash_of = options_.hash_of},
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

}  // namespace gannet
