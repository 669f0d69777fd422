// The steps by which a larger index replaces a full one: it gets a block, its buckets are written
// (kPreparing), homes are copied one by one (kMigrating), and the old one is retired until all
// clients have acknowledged the new one. The superblock is published whenever a reader must know of
// a change. The thread that tidies makes the steps; writes help if they would otherwise find the
// index full, and must not wait for mutex_ while they hold a lock of the index.

#include "server/memory/store/index_grower.h"

#include <algorithm>
#include <iterator>

#include "common/base/words.h"

namespace gannet {
namespace {

// A step takes less than 1 ms.
constexpr uint64_t kBucketsPerStep = 8192;
constexpr uint64_t kMigratedHomesPerStep = 512;
// So many buckets a write prepares that inserts a key while the next index is needed. The index
// that doubles has a bucket for seven slots of the present one, so these writes alone are done with
// it before 90 % of the slots are in use.
constexpr uint64_t kBucketsPerWrite = 4;
// The index is replaced when this share of its slots is in use. Above it more and more keys go into
// the stash (docs/memory.md).
constexpr double kFillToGrow = 0.85;
// The last index, the one that the memory is full with, may be fuller.
constexpr double kFillAtTheEnd = 0.94;
// No index is replaced for less than this factor, unless writes were refused.
constexpr double kGrowthMin = 1.06;

// Two publications of the superblock may mix in one READ, and its checksum tells.
void StoreSuperblock(std::byte* at, Superblock superblock) {
  superblock.checksum = SuperblockChecksum(superblock);
  uint64_t words[sizeof(superblock) / sizeof(uint64_t)];
  static_assert(sizeof(words) == sizeof(superblock));
  std::copy_n(reinterpret_cast<const std::byte*>(&superblock), sizeof(words),
              reinterpret_cast<std::byte*>(words));
  // Release: nobody sees where an index is before its buckets are written.
  for (size_t i = 0; i < std::size(words); ++i) {
    StoreWordRelease(at + i * sizeof(uint64_t), words[i]);
  }
}

}  // namespace

Superblock IndexGrower::superblock() const {
  Superblock superblock = items_.first_superblock();
  MutexLock lock(published_mutex_);
  superblock.index = published_index_;
  superblock.next_index = published_next_;
  superblock.checksum = SuperblockChecksum(superblock);
  return superblock;
}

void IndexGrower::Publish(const IndexGeometry& index, const IndexGeometry& next) {
  {
    MutexLock lock(published_mutex_);
    published_index_ = index;
    published_next_ = next;
  }
  if (items_.recovery() != nullptr) items_.recovery()->CopySuperblock(superblock());
  StoreSuperblock(items_.region().data(), superblock());
  generation_.store(index.generation, std::memory_order_release);
}

void IndexGrower::Begin(const IndexGeometry& index, const IndexGeometry& next) {
  if (next.homes != 0) {
    MutexLock lock(mutex_);
    next_ = next;
    phase_.store(Phase::kMigrating, std::memory_order_relaxed);
  }
  Publish(index, next);
  if (next.homes == 0) WatchFill();
}

bool IndexGrower::Step() {
  MutexLock lock(mutex_);
  FreeRetired();
  switch (phase_.load(std::memory_order_relaxed)) {
    case Phase::kRest:
      return grows_ && BeginGrowth();
    case Phase::kPreparing:
      Prepare(kBucketsPerStep);
      return true;
    case Phase::kMigrating:
      Migrate(kMigratedHomesPerStep);
      return true;
  }
  return false;
}

void IndexGrower::Prepare(uint64_t buckets) {
  if (!items_.index().PrepareSome(buckets)) return;
  grow_at_.store(UINT64_MAX, std::memory_order_relaxed);
  Publish(items_.index().geometry(), next_);
  items_.index().BeginMigration();
  phase_.store(Phase::kMigrating, std::memory_order_relaxed);
}

void IndexGrower::Migrate(uint64_t homes) {
  if (!items_.index().MigrateSome(homes)) return;
  retired_.push_back(superblock().index);
  items_.index().EndMigration();
  Publish(next_, IndexGeometry{});
  growths_.fetch_add(1, std::memory_order_relaxed);
  phase_.store(Phase::kRest, std::memory_order_relaxed);
  WatchFill();
}

// Does a little of it if nobody else does any of it now. The caller may hold a Lock of the index,
// so this must not wait.
void IndexGrower::Help() {
  Ask();
  if (!mutex_.native().try_lock()) return;
  const Phase phase = phase_.load(std::memory_order_relaxed);
  if (phase == Phase::kRest) {
    BeginGrowth();
  } else if (phase == Phase::kPreparing) {
    Prepare(kBucketsPerWrite);
  }
  mutex_.Unlock();
}

// For a write that must not be overtaken by those behind it, and so cannot be told to try again. It
// comes to this only if the thread that tidies was kept off its CPU while the index filled. If
// homes are left that find no room in the new index, they stay where they are.
void IndexGrower::MakeSlots() {
  MutexLock lock(mutex_);
  if (phase_.load(std::memory_order_relaxed) == Phase::kMigrating) {
    Migrate(superblock().index.homes);
  }
  if (phase_.load(std::memory_order_relaxed) == Phase::kRest) BeginGrowth();
  while (phase_.load(std::memory_order_relaxed) == Phase::kPreparing) {
    Prepare(kBucketsPerStep);
  }
}

bool IndexGrower::BeginGrowth() {
  const bool wanted = wanted_.exchange(false, std::memory_order_relaxed);
  const uint64_t slots = items_.index().geometry().slots();
  if (!wanted && items_.index().slots_used() < static_cast<double>(slots) * kFillToGrow) {
    wanted_bytes_.store(0, std::memory_order_relaxed);
    WatchFill();
    return false;
  }
  // Until it is clear that the index will be replaced, writes need not help.
  grow_at_.store(UINT64_MAX, std::memory_order_relaxed);
  const uint64_t bytes = NextBytes();
  if (bytes == 0) {
    wanted_bytes_.store(0, std::memory_order_relaxed);
    return false;
  }
  const uint64_t least = items_.heap().TableBytes(
      static_cast<uint64_t>(kGrowthMin * static_cast<double>(items_.index().geometry().bytes())));
  const bool begun = AllocateNext(bytes) || (least < bytes && AllocateNext(least));
  no_room_.store(!begun, std::memory_order_relaxed);
  wanted_bytes_.store(begun ? 0 : bytes, std::memory_order_relaxed);
  if (!begun) {
    compactor_.Want();
    return false;
  }
  grow_at_.store(0, std::memory_order_relaxed);  // each insert helps
  phase_.store(Phase::kPreparing, std::memory_order_relaxed);
  return true;
}

// Doubles the index as long as the memory has room for so many more items of the present mean size.
// Then makes it just large enough for as many items as fill the memory.
uint64_t IndexGrower::NextBytes() {
  const IndexGeometry& now = items_.index().geometry();
  const double used = static_cast<double>(std::max<uint64_t>(items_.index().slots_used(), 1));
  const double item_bytes = static_cast<double>(items_.heap().use().allocated_bytes()) / used;
  const double slot_bytes = static_cast<double>(kBucketBytes) / kSlotsPerBucket / kFillAtTheEnd;
  const double items =
      static_cast<double>(items_.heap().capacity_bytes()) / (item_bytes + slot_bytes);
  const double wanted = items / kFillAtTheEnd / static_cast<double>(now.slots());
  const bool refused = no_slot_.exchange(false, std::memory_order_relaxed);
  if (wanted < kGrowthMin && !refused) return 0;
  const double factor = std::clamp(wanted, kGrowthMin, 2.0);
  return items_.heap().TableBytes(static_cast<uint64_t>(factor * static_cast<double>(now.bytes())));
}

bool IndexGrower::AllocateNext(uint64_t bytes) {
  std::byte* const block = items_.heap().AllocateTable(bytes);
  if (block == nullptr) return false;
  next_ = GeometryForSlots(bytes / kBucketBytes * kSlotsPerBucket,
                           static_cast<uint64_t>(block - items_.region().data()),
                           items_.index().geometry().generation + 1);
  items_.index().Prepare(next_);
  return true;
}

// An index is freed as a block of the size that it was allocated with.
void IndexGrower::FreeRetired() {
  const uint64_t acknowledged = acknowledged_.load(std::memory_order_relaxed);
  std::erase_if(retired_, [&](const IndexGeometry& index) {
    if (index.generation >= acknowledged) return false;
    items_.heap().FreeTable(items_.Block(index.offset), index.bytes());
    return true;
  });
}

void IndexGrower::WatchFill() {
  const double slots = static_cast<double>(items_.index().geometry().slots());
  const uint64_t limit = static_cast<uint64_t>(slots * kFillToGrow);
  grow_at_.store(grows_ ? limit : UINT64_MAX, std::memory_order_relaxed);
}

void IndexGrower::Ask() {
  if (growing() || wanted_.load(std::memory_order_relaxed)) return;
  wanted_.store(true, std::memory_order_relaxed);
  if (step_wanted_ != nullptr) step_wanted_->Ask();
}

bool IndexGrower::AskForSlot() {
  if (!grows_) return false;
  no_slot_.store(true, std::memory_order_relaxed);
  if (no_room_.load(std::memory_order_relaxed)) return false;
  Ask();
  return true;
}

}  // namespace gannet
