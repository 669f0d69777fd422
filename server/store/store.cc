// A store's layout, its beginning and end, GETs by request, figures, and eviction of one item.
// store_write.cc has writes, store_tidy.cc what happens in the background and for want of room,
// store_take_over.cc what a former process left, store_apply.cc changes of a disk or a stream.
// Whoever looks at an item holds the lock of its key.

#include "server/store/store.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/data_path_checks.h"
#include "common/base/status_macros.h"
#include "common/base/words.h"
#include "server/recovery/survey.h"
#include "server/store/store_find.h"

namespace gannet {
namespace {

// The default of --index_slots=0: one slot for so many bytes of the region. An index that grows
// takes 0.2 % of the memory at first.
constexpr uint64_t kRegionBytesPerSlotAtFirst = 4096;
constexpr uint64_t kSlotsAtFirstMin = 64;
// One that does not grow is enough for items of 96 bytes (a 16-byte key and a 48-byte
// value) when the heap is full and the index at 90 % of its slots: per slot, 96 * 0.9 bytes of heap
// and 9.1 bytes of index. docs/memory.md says what that means for smaller and larger items.
constexpr uint64_t kRegionBytesPerSlot = 96;

absl::Status TooSmall(uint64_t region_bytes, const Superblock& superblock) {
  return absl::InvalidArgumentError(absl::StrCat(
      region_bytes, " bytes of memory are too few for an index of ", superblock.index.slots(),
      " slots: it takes ", superblock.heap_offset + superblock.index.bytes(),
      " bytes, and the items come on top; give more memory or ask for fewer slots"));
}

uint64_t FirstSlots(const Store::Options& options, uint64_t region_bytes) {
  const uint64_t least = options.index_slots_min;
  if (options.index_slots != 0) return std::max(options.index_slots, least);
  if (!options.index_grows) return std::max(region_bytes / kRegionBytesPerSlot, least);
  return std::max({region_bytes / kRegionBytesPerSlotAtFirst, kSlotsAtFirstMin, least});
}

// All but where the index lies.
absl::StatusOr<Superblock> LayOut(const Store::Options& options) {
  const uint64_t region_bytes = options.region.size() / options.page_bytes * options.page_bytes;
  const uint64_t slots = FirstSlots(options, region_bytes);
  if (region_bytes > kRegionBytesMax || slots > kRegionBytesMax / sizeof(Slot)) {
    return absl::InvalidArgumentError("a region has at most 2 TiB");
  }
  Superblock superblock{};
  superblock.magic = kSuperblockMagic;
  superblock.layout_version = kLayoutVersion;
  superblock.struct_bytes = sizeof(Superblock);
  superblock.incarnation = options.incarnation;
  superblock.region_bytes = region_bytes;
  superblock.hash_seed = options.hash_seed;
  superblock.index = GeometryForSlots(slots, /*offset=*/0, /*generation=*/1);
  superblock.heap_offset =
      AlignUp(options.memory_file ? kRecoveryEnd : kSuperblockBytes, options.page_bytes);
  const uint64_t index_end = superblock.heap_offset + superblock.index.bytes();
  if (index_end + options.page_bytes > region_bytes) return TooSmall(region_bytes, superblock);
  return superblock;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Create(const Options& options) {
  CHECK_EQ(reinterpret_cast<uintptr_t>(options.region.data()) % options.page_bytes, 0u);
  CHECK(!options.lock_words.empty());
  CHECK_NE(options.first_version, 0u);
  GANNET_ASSIGN_OR_RETURN(Superblock superblock, LayOut(options));
  if (options.memory_file) {
    GANNET_ASSIGN_OR_RETURN(const bool items, RecoveryArea::HasItems(options.region));
    if (items) return TakeOver(options);
  }
  const auto heap_memory =
      options.region.first(superblock.region_bytes).subspan(superblock.heap_offset);
  GANNET_ASSIGN_OR_RETURN(auto heap, options.memory_file
                                         ? Heap::Create(heap_memory, HeapMap(heap_memory.size()))
                                         : Heap::Create(heap_memory));
  const std::byte* const index = heap->AllocateTable(superblock.index.bytes());
  if (index == nullptr) return TooSmall(superblock.region_bytes, superblock);
  superblock.index.offset = static_cast<uint64_t>(index - options.region.data());
  return std::unique_ptr<Store>(new Store(options, superblock, std::move(heap)));
}

Store::Store(const Options& options, const Superblock& superblock, std::unique_ptr<Heap> heap,
             const Survey* survey)
    : Items(options, superblock, std::move(heap), survey),
      lock_words_(options.lock_words),
      grower_(*this, compactor_, options.index_grows, options.tidy_wanted),
      evictor_(options.evict ? std::make_unique<Evictor>(*this, static_cast<Items&>(*this),
                                                         compactor_, options.tidy_wanted)
                             : nullptr) {
  if (survey != nullptr) return;
  if (recovery_ != nullptr) recovery_->Format(superblock.region_bytes);
  grower_.Begin(superblock.index, IndexGeometry{});
  if (recovery_ == nullptr) return;
  recovery_->SetNextVersion(options.first_version);
  recovery_->SetState(RegionState::kServing);
}

Store::~Store() {
  if (recovery_ == nullptr) return;
  recovery_->SetVersionsEnd(next_version_.load(std::memory_order_relaxed));
  recovery_->SetState(RegionState::kStopped);
}

ReadOutcome Store::Get(std::string_view key, std::span<std::byte> value_out, ServerTime now) {
  const KeyHash hash = KeyHash::Of(key, superblock_.hash_seed);
  const Index::Lock lock(index_, hash);
  const Current current = FindCurrent(lock, hash, key, now);
  if (!current.there()) return {.status = ReplyStatus::kNotFound};
  if (evicts()) eviction_->Used(current.slot.offset(), 1);
  const std::byte* block = Block(current.slot.offset());
  const ItemHeader header = LoadHeader(current.slot);
  ReadOutcome outcome{.version = header.version,
                      .slot = current.slot.word(),
                      .value_bytes = header.value_bytes,
                      .attributes = {header.flags, header.expiry_ms()}};
  if (header.value_bytes > value_out.size()) {
    outcome.status = ReplyStatus::kBufferTooSmall;
  } else {
    std::copy_n(block + ValueOffset(header.key_bytes(), header.value_bytes), header.value_bytes,
                value_out.data());
  }
  return outcome;
}

void Store::FillStats(StatsReply* stats) const {
  stats->slots_used = index_.slots_used();
  stats->slots_total = index_.geometry().slots();
  stats->heap_bytes = heap_->allocated_bytes();
  stats->heap_total = heap_->capacity_bytes() - heap_->table_bytes();
  stats->items = index_.slots_used();
  stats->displacements = index_.displacements();
  stats->stash_used = index_.stash_used();
  stats->items_expiring = expiring();
  stats->items_expired = items_expired_.load(std::memory_order_relaxed);
  stats->items_moved = compactor_.items_moved();
  stats->refused_heap_full = refused_heap_full_.load(std::memory_order_relaxed);
  stats->index_growths = grower_.growths();
  stats->refused_index_full = refused_index_full_.load(std::memory_order_relaxed);
  stats->items_deleted = items_deleted_.load(std::memory_order_relaxed);
  if (!evicts()) return;
  const Eviction& eviction = *eviction_;
  stats->items_evicted = eviction.items_evicted.load(std::memory_order_relaxed);
  stats->evicted_by_writes = eviction.evicted_by_writes.load(std::memory_order_relaxed);
  stats->eviction_watermark = heap_->capacity_bytes() - evictor_->FullBytes();
  stats->evicted_age_ms = eviction.evicted_age_ms.load(std::memory_order_relaxed);
}

void Store::NoteUpdate(const Guess& guess, std::string_view key) {
  GANNET_CHECK_DATA_PATH(evicts(), "the store does not evict");
  const Index::KeyLock lock(index_, KeyHash(guess.hash));
  const Slot slot = index_.LoadGuessed(lock, guess.place);
  if (!slot.empty() && IsKey(Block(slot.offset()), key)) eviction_->Used(slot.offset(), 1);
}

void Store::EvictLater(LaterEvictions* later) {
  later_ = later;
  if (evicts()) evictor_->EvictLater(later);
}

// To evict an item is to delete it: the same steps, under the same lock.
bool Store::Evict(const Index::Lock& held, const Index::Found& found) {
  const KeyHash hash = KeyHashAt(found.slot);
  if (later_ != nullptr && later_->MayWait(hash)) return false;
  // A lock that is taken after this load finds no item.
  if (LockWord(hash) != 0) return false;
  const uint64_t version = LoadWord(Block(found.slot.offset()) + offsetof(ItemHeader, version));
  if (later_ != nullptr) {
    const uint32_t size_class = found.slot.size_class();
    const std::byte* const block = Block(found.slot.offset());
    const uint64_t bytes =
        IsLargeClass(size_class) ? heap_->RoomAt(block) : heap_->SealedRoomAt(block, size_class);
    if (!later_->Evict(hash, DeletionOf(found.slot), bytes)) return false;
  } else if (records() && !Record(DeletionOf(found.slot))) {
    return false;
  }
  eviction_->Evicted(hash, eviction_->heat.Get(found.slot.offset()), version);
  if (later_ == nullptr) RemoveItem(held, found.place, found.slot);
  return true;
}

ReplyStatus Store::NoSlot() {
  return grower_.AskForSlot() || evicts() ? ReplyStatus::kTryAgain : RefuseForSlot();
}

ReplyStatus Store::RefuseForSlot() {
  refused_index_full_.fetch_add(1, std::memory_order_relaxed);
  return ReplyStatus::kIndexFull;
}

// What is in its way goes: values that are being brought are complete or given up, locks are
// unlocked or broken, evictions become safe.
ReplyStatus Store::NoRoom(std::string_view key, size_t value_bytes) {
  if (evicts() && heap_->PlaceAlone(ItemBytes(key.size(), value_bytes))) {
    return ReplyStatus::kTryAgain;
  }
  refused_heap_full_.fetch_add(1, std::memory_order_relaxed);
  return ReplyStatus::kHeapFull;
}

bool Store::NearlyFull() const {
  return evicts() && heap_->occupied_bytes() > evictor_->FullBytes() - heap_->capacity_bytes() / 16;
}

}  // namespace gannet
