// Store: replaces the index by a larger one while readers read and writers write. Done in small
// steps by Tidy; writers migrate the homes that they need themselves (server/index/index.h).
//
// The next index is one run of the heap. The former one is freed when no client READs it any more.

#include <glog/logging.h>

#include <algorithm>

#include "common/base/words.h"
#include "server/store/store.h"

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
// the stash (docs/memory-layout.md).
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

Superblock Store::superblock() const {
  Superblock superblock = superblock_;
  MutexLock lock(published_mutex_);
  superblock.index = published_index_;
  superblock.next_index = published_next_;
  superblock.checksum = SuperblockChecksum(superblock);
  return superblock;
}

void Store::PublishIndex(const IndexGeometry& index, const IndexGeometry& next) {
  {
    MutexLock lock(published_mutex_);
    published_index_ = index;
    published_next_ = next;
  }
  if (recovery_ != nullptr) recovery_->CopySuperblock(superblock());
  StoreSuperblock(region_.data(), superblock());
  index_generation_.store(index.generation, std::memory_order_release);
}

void Store::Acknowledge(uint64_t generation) {
  acknowledged_.store(generation, std::memory_order_relaxed);
}

bool Store::Grow() {
  MutexLock lock(grow_mutex_);
  FreeRetired();
  switch (grow_phase_.load(std::memory_order_relaxed)) {
    case GrowPhase::kRest:
      return index_grows_ && BeginGrowth();
    case GrowPhase::kPreparing:
      PrepareIndex(kBucketsPerStep);
      return true;
    case GrowPhase::kMigrating:
      MigrateHomes(kMigratedHomesPerStep);
      return true;
  }
  return false;
}

void Store::PrepareIndex(uint64_t buckets) {
  if (!index_.PrepareSome(buckets)) return;
  grow_at_.store(UINT64_MAX, std::memory_order_relaxed);
  PublishIndex(index_.geometry(), next_);
  index_.BeginMigration();
  grow_phase_.store(GrowPhase::kMigrating, std::memory_order_relaxed);
}

void Store::MigrateHomes(uint64_t homes) {
  if (!index_.MigrateSome(homes)) return;
  retired_.push_back(superblock().index);
  index_.EndMigration();
  PublishIndex(next_, IndexGeometry{});
  index_growths_.fetch_add(1, std::memory_order_relaxed);
  grow_phase_.store(GrowPhase::kRest, std::memory_order_relaxed);
  WatchFill();
}

// Does a little of it if nobody else does any of it now. The caller may hold a Lock of the index,
// so this must not wait.
void Store::HelpGrowing() {
  AskForGrowth();
  if (!grow_mutex_.native().try_lock()) return;
  const GrowPhase phase = grow_phase_.load(std::memory_order_relaxed);
  if (phase == GrowPhase::kRest) {
    BeginGrowth();
  } else if (phase == GrowPhase::kPreparing) {
    PrepareIndex(kBucketsPerWrite);
  }
  grow_mutex_.Unlock();
}

// For a write that must not be overtaken by those behind it, and so cannot be told to try again. It
// comes to this only if the thread that tidies was kept off its CPU while the index filled. If
// homes are left that find no room in the new index, they stay where they are.
void Store::MakeSlots() {
  MutexLock lock(grow_mutex_);
  if (grow_phase_.load(std::memory_order_relaxed) == GrowPhase::kMigrating) {
    MigrateHomes(superblock().index.homes);
  }
  if (grow_phase_.load(std::memory_order_relaxed) == GrowPhase::kRest) BeginGrowth();
  while (grow_phase_.load(std::memory_order_relaxed) == GrowPhase::kPreparing) {
    PrepareIndex(kBucketsPerStep);
  }
}

bool Store::BeginGrowth() {
  const bool wanted = growth_wanted_.exchange(false, std::memory_order_relaxed);
  const uint64_t slots = index_.geometry().slots();
  if (!wanted && index_.slots_used() < static_cast<double>(slots) * kFillToGrow) {
    table_wanted_bytes_.store(0, std::memory_order_relaxed);
    WatchFill();
    return false;
  }
  // Until it is clear that the index will be replaced, writes need not help.
  grow_at_.store(UINT64_MAX, std::memory_order_relaxed);
  const uint64_t bytes = NextIndexBytes();
  if (bytes == 0) {
    table_wanted_bytes_.store(0, std::memory_order_relaxed);
    return false;
  }
  const uint64_t least = heap_->TableBytes(
      static_cast<uint64_t>(kGrowthMin * static_cast<double>(index_.geometry().bytes())));
  const bool begun = AllocateNextIndex(bytes) || (least < bytes && AllocateNextIndex(least));
  no_room_to_grow_.store(!begun, std::memory_order_relaxed);
  table_wanted_bytes_.store(begun ? 0 : bytes, std::memory_order_relaxed);
  if (!begun) {
    compactor_.Want();
    return false;
  }
  grow_at_.store(0, std::memory_order_relaxed);  // each insert helps
  grow_phase_.store(GrowPhase::kPreparing, std::memory_order_relaxed);
  return true;
}

// Doubles the index as long as the memory has room for so many more items of the present mean size.
// Then makes it just large enough for as many items as fill the memory.
uint64_t Store::NextIndexBytes() {
  const IndexGeometry& now = index_.geometry();
  const double used = static_cast<double>(std::max<uint64_t>(index_.slots_used(), 1));
  const double item_bytes = static_cast<double>(heap_->allocated_bytes()) / used;
  const double slot_bytes = static_cast<double>(kBucketBytes) / kSlotsPerBucket / kFillAtTheEnd;
  const double items = static_cast<double>(heap_->capacity_bytes()) / (item_bytes + slot_bytes);
  const double wanted = items / kFillAtTheEnd / static_cast<double>(now.slots());
  const bool refused = no_slot_.exchange(false, std::memory_order_relaxed);
  if (wanted < kGrowthMin && !refused) return 0;
  const double factor = std::clamp(wanted, kGrowthMin, 2.0);
  return heap_->TableBytes(static_cast<uint64_t>(factor * static_cast<double>(now.bytes())));
}

bool Store::AllocateNextIndex(uint64_t bytes) {
  std::byte* const block = heap_->AllocateTable(bytes);
  if (block == nullptr) return false;
  next_ = GeometryForSlots(bytes / kBucketBytes * kSlotsPerBucket,
                           static_cast<uint64_t>(block - region_.data()),
                           index_.geometry().generation + 1);
  index_.Prepare(next_);
  return true;
}

// An index is freed as a block of the size that it was allocated with.
void Store::FreeRetired() {
  const uint64_t acknowledged = acknowledged_.load(std::memory_order_relaxed);
  std::erase_if(retired_, [&](const IndexGeometry& index) {
    if (index.generation >= acknowledged) return false;
    heap_->FreeTable(Block(index.offset), index.bytes());
    return true;
  });
}

void Store::WatchFill() {
  const double slots = static_cast<double>(index_.geometry().slots());
  const uint64_t limit = static_cast<uint64_t>(slots * kFillToGrow);
  grow_at_.store(index_grows_ ? limit : UINT64_MAX, std::memory_order_relaxed);
}

void Store::AskForGrowth() {
  if (growing() || growth_wanted_.load(std::memory_order_relaxed)) return;
  growth_wanted_.store(true, std::memory_order_relaxed);
  if (wants_tidy_) wants_tidy_();
}

ReplyStatus Store::NoSlot() {
  if (index_grows_) {
    no_slot_.store(true, std::memory_order_relaxed);
    if (!no_room_to_grow_.load(std::memory_order_relaxed)) {
      AskForGrowth();
      return ReplyStatus::kTryAgain;
    }
  }
  return RefuseForSlot();
}

ReplyStatus Store::RefuseForSlot() {
  refused_index_full_.fetch_add(1, std::memory_order_relaxed);
  return ReplyStatus::kIndexFull;
}

ReplyStatus Store::RefuseForRoom() {
  refused_heap_full_.fetch_add(1, std::memory_order_relaxed);
  return ReplyStatus::kHeapFull;
}

}  // namespace gannet
