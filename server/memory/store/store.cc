// A store, part by part: its layout, its beginning and end, GETs by request, figures, and the
// eviction of one item; what a former process left; writes; changes of a disk or a stream; what
// happens in the background and for want of room; walks. Whoever looks at an item holds the lock
// of its key.

#include "server/memory/store/store.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/data_path_checks.h"
#include "common/base/status_macros.h"
#include "common/base/words.h"
#include "common/layout/key_hash_inline.h"
#include "common/protocol/touch.h"
#include "server/memory/recovery/survey.h"
#include "server/memory/store/adopter.h"
#include "server/memory/store/hash_of_home.h"
#include "server/memory/store/item_writer.h"
#include "server/memory/store/large_writer.h"
#include "server/memory/store/store_find.h"
#include "server/memory/store/store_update.h"
#include "server/memory/store/stubs.h"
#include "server/memory/store/write_limits.h"

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
  std::optional<HeapMap> empty;
  if (options.memory_file) empty.emplace(heap_memory.size());
  GANNET_ASSIGN_OR_RETURN(auto heap, Heap::Create(heap_memory, empty ? &*empty : nullptr));
  const std::byte* const index = heap->AllocateTable(superblock.index.bytes());
  if (index == nullptr) return TooSmall(superblock.region_bytes, superblock);
  superblock.index.offset = static_cast<uint64_t>(index - options.region.data());
  return std::unique_ptr<Store>(new Store(options, superblock, std::move(heap)));
}

Store::Store(const Options& options, const Superblock& superblock, std::unique_ptr<Heap> heap,
             const Survey* survey)
    : Items(options, superblock, std::move(heap), survey),
      grower_(*this, compactor_, options.index_grows, options.tidy_wanted),
      evictor_(options.evict ? std::make_unique<Evictor>(*this, static_cast<Items&>(*this),
                                                         compactor_, options.tidy_wanted)
                             : nullptr) {
  if (stubs_ != nullptr) stubs_->UseEvictor(evictor_.get());
  if (survey != nullptr) return;
  if (recovery_ != nullptr) {
    recovery_->Format(superblock.region_bytes,
                      options.tier ? kRecoveryFormatWithStubs : kRecoveryFormat);
  }
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
  if (IsStub(current.slot)) [[unlikely]]
    return Stubs::Read(*this, lock, {current.place, current.slot});
  if (evicts()) eviction_->Used(current.slot.offset(), 1);
  const std::byte* block = Block(current.slot.offset());
  const ItemHeader header = LoadHeader(current.slot);
  ReadOutcome outcome{.version = header.version,
                      .slot = current.slot.word(),
                      .value_bytes = header.value_bytes,
                      .attributes = {header.flags, header.expiry()}};
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
  const uint64_t reserved = stubs_ == nullptr ? 0 : stubs_->reserve().bytes();
  stats->heap_bytes = heap_->use().allocated_bytes() - reserved;
  stats->heap_total = heap_->capacity_bytes() - heap_->use().table_bytes();
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
  if (leases_ != nullptr) {
    const ItemLeases::Counts leases = leases_->counts();
    stats->items_leased = leases.leased;
    stats->lease_waits = leases.changes;
    stats->lease_waited_ms = leases.waited_ms;
  }
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
  GANNET_CHECK(later == nullptr || stubs_ == nullptr, "no tier gets what is evicted later");
  later_ = later;
  if (evicts()) evictor_->EvictLater(later);
}

// To evict an item is to delete it, or to replace it by a stub: the same steps, under the same
// lock.
bool Store::Evict(const Index::Lock& held, const Index::Found& found) {
  const KeyHash hash = KeyHashAt(found.slot);
  if (later_ != nullptr && later_->MayWait(hash)) return false;
  if (leases_ != nullptr && EndLease(held, hash, Now({})) != 0) return false;
  // A lock that is taken after this load finds no item.
  if (lock_words().WordOf(hash) != 0) return false;
  if (stubs_ != nullptr && stubs_->Replace(held, hash, found)) return true;
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
  if (IsStub(found.slot)) {
    stubs_->NoteEvicted();
  } else {
    eviction_->Evicted(hash, eviction_->heat.Get(found.slot.offset()), version);
  }
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
  return evicts() &&
         heap_->use().occupied_bytes() > evictor_->FullBytes() - heap_->capacity_bytes() / 16;
}

// Is made of what a former process left in a memory file.

namespace {

double SecondsSince(int64_t start_ns) {
  return static_cast<double>(MonotonicNs() - start_ns) / kNsPerSecond;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::TakeOver(const Options& options) {
  const int64_t start_ns = MonotonicNs();
  const uint64_t heap_offset = AlignUp(kRecoveryEnd, options.page_bytes);
  GANNET_ASSIGN_OR_RETURN(const Survey survey,
                          Survey::Of(options.region, heap_offset, options.take_over_threads));
  GANNET_ASSIGN_OR_RETURN(auto heap,
                          Heap::Create(options.region.subspan(heap_offset), &survey.heap()));
  // Nothing was changed up to here.
  Options adopted = options;
  adopted.first_version = std::max(options.first_version, survey.versions_end());
  Superblock superblock = survey.superblock();
  const uint64_t begun = survey.place().taking_over;
  superblock.incarnation = begun != 0 ? begun : options.incarnation;
  RecoveryArea(options.region).SetTakingOver(superblock.incarnation);
  for (const Survey::Redirected& slot : survey.redirected()) {
    StoreWordRelease(options.region.data() + slot.offset, slot.to.word());
  }
  std::unique_ptr<Store> store(new Store(adopted, superblock, std::move(heap), &survey));
  Adopter(*store).Adopt(survey, options.take_over_threads);
  store->grower_.Begin(survey.superblock().index, survey.superblock().next_index);
  if (survey.counts().stubs != 0) DropLostStubs(*store, options.tier);
  store->recovery_->SetFormat(options.tier ? kRecoveryFormatWithStubs : kRecoveryFormat);
  store->recovery_->SetTakingOver(0);
  store->recovery_->SetNextVersion(store->next_version());
  store->recovery_->SetState(RegionState::kServing);
  store->taken_over_ = {survey.stopped_in_order(), survey.counts(), SecondsSince(start_ns),
                        NotedClock(LoadRecoveryHeader(options.region))};
  return store;
}

// The changes of a key. The order of the stores is that of docs/consistency.md. Each step
// says what must not be seen before it.

namespace {

// Returns whether a sealed item of `item_bytes` would get a block as long as this one, which holds
// an item of the same class.
bool FitsBlock(const Heap& heap, const std::byte* block, uint64_t item_bytes) {
  if (item_bytes < Slabs::kBytesMin) return true;
  return heap.SealedRoomAt(block, SizeClassFor(item_bytes)) == heap.SealedBlockBytes(item_bytes);
}

}  // namespace

// The old commit word of a sealed item stays until the new one is stored; with any of the new
// content it fails the check. The block may be larger than the new item needs.
//
// A large item's commit word does not cover its value. So the old item is dead before a byte of it
// changes, and the new one is live when it is complete, as if the block had been free in between.
// Readers find a dead item and look again, or ask the server, which waits for the lock.
[[gnu::always_inline]] inline WriteOutcome Store::PutInPlace(const Locked& key, const Change& put,
                                                             Slot slot) {
  if (!Record(put)) [[unlikely]]
    return {.status = ReplyStatus::kDiskRefuses};
  const Slot old = key.item.slot;
  std::byte* const block = Block(old.offset());
  const ItemHeader header = HeaderOf(put);
  const ItemSeal seal(key.hash, PlaceAt(old.offset()));
  CountExpiring(ExpiryOf(block), put.expiry);
  if (IsLargeClass(old.size_class())) StoreDeadFirst(block);
  StoreLive(block, StoreContent(block, slot.size_class(), header, put.key, put.value, seal));
  if (slot != old) index_.Replace(key.lock, key.item.place, slot);
  if (evicts()) eviction_->Used(slot.offset(), 1);
  NoteExpiry(key, header);
  return {.version = header.version, .slot = slot.word()};
}

void Store::NoteExpiry(const Locked& key, const ItemHeader& header) {
  const Expiry expiry = header.expiry();
  if (expiry.never()) return;
  key.item.place.table->floors.Lower(key.item.place.home, expiry.time());
}

void Store::MakeUpdate(const Locked& key, const ItemUpdate& update) {
  GANNET_CHECK(key.item.there() && ValueBytes(Block(key.item.slot.offset())) == update.value.size(),
               "an item changed while an update of it waited");
  WriteUpdate(key.hash, key.item.slot, update);
}

std::optional<Pending> Store::Make(KeyHash hash, const Change& put) {
  const uint64_t item_bytes = ItemBytes(put.key.size(), put.value.size());
  std::byte* block = heap_->Allocate(item_bytes);
  if (block == nullptr) return std::nullopt;
  StoreDead(block);
  const uint64_t offset = block - region_.data();
  const uint32_t size_class = SizeClassFor(item_bytes);
  const uint64_t live = StoreContent(block, size_class, HeaderOf(put), put.key, put.value,
                                     ItemSeal(hash, PlaceAt(offset)));
  return Pending{offset, size_class, put.version, live, put.expiry};
}

WriteOutcome Store::PutShort(const Locked& key, const Change& put) {
  const uint64_t item_bytes = ItemBytes(put.key.size(), put.value.size());
  GANNET_CHECK_DATA_PATH(item_bytes <= kInPlaceBytesMax, "the item is long");
  if (key.item.slot.size_class() == SizeClassFor(item_bytes) && recovery_ == nullptr &&
      FitsBlock(*heap_, Block(key.item.slot.offset()), item_bytes)) {
    return PutInPlace(key, put, key.item.slot);
  }
  const std::optional<Pending> pending = Make(key.hash, put);
  if (!pending) return {.status = ReplyStatus::kHeapFull};
  return Install(key, *pending, &put);
}

// Readers see the item half-written more often than one in a new block, and look again.
WriteOutcome Store::Overwrite(const Locked& key, const Change& put) {
  const uint64_t item_bytes = ItemBytes(put.key.size(), put.value.size());
  if (!MayOverwrite(key.item, item_bytes)) return {.status = ReplyStatus::kHeapFull};
  const Slot old = key.item.slot;
  std::byte* const block = Block(old.offset());
  const bool was_large = IsLargeClass(old.size_class());
  const Slot slot =
      was_large ? Slot::Of(key.hash.Tag(), SizeClassFor(item_bytes), old.offset()) : old;
  const WriteOutcome outcome = PutInPlace(key, put, slot);
  if (outcome.status != ReplyStatus::kOk) return outcome;
  if (was_large) {
    heap_->Shrink(block, old.size_class(), item_bytes);
    return outcome;
  }
  const uint64_t room = heap_->SealedRoomAt(block, old.size_class());
  const uint64_t needed = heap_->SealedBlockBytes(item_bytes);
  if (room > needed) compactor_.NoteOversized(room - needed);
  return outcome;
}

// What outlives the process is never overwritten: a process that is killed meanwhile would leave
// neither item.
// A stub's block is as short as its slot may not say.
bool Store::MayOverwrite(const Current& current, uint64_t item_bytes) const {
  if (recovery_ != nullptr || !current.there() || IsStub(current.slot)) return false;
  const uint32_t old_class = current.slot.size_class();
  const std::byte* const block = Block(current.slot.offset());
  if (!IsLargeClass(old_class)) return item_bytes <= heap_->SealedRoomAt(block, old_class);
  return Heap::BlockBytes(item_bytes) <= heap_->RoomAt(block);
}

bool Store::FitsOld(std::string_view key, uint32_t value_bytes, ServerTime now) {
  const Locked locked(*this, HashOf(key), key, now);
  return MayOverwrite(locked.item, ItemBytes(key.size(), value_bytes));
}

// Changes the header where it lies. The old commit word stays until the new one is stored; with any
// of the new header it fails the check. A large item gets a new placing too, so that a reader who
// READ the value under the old header looks again. The value itself does not change.
WriteOutcome Store::Touch(const Locked& key, const Change& put) {
  GANNET_CHECK_DATA_PATH(key.item.there(), "there is no item");
  const uint64_t offset = key.item.slot.offset();
  std::byte* const block = Block(offset);
  if (!Record(put)) return {.status = ReplyStatus::kDiskRefuses};
  const ItemHeader header = HeaderOf(put);
  const bool stub = IsStub(key.item.slot);
  const ItemSeal seal(key.hash, stub ? StubPlace(PlaceAt(offset)) : PlaceAt(offset));
  CountExpiring(ExpiryOf(block), put.expiry);
  if (recovery_ != nullptr) recovery_->BeginTouch(key.hash, key.item.slot);
  const uint32_t block_class = BlockClass(key.item.slot, key.key.size());
  StoreLive(block, StoreAroundValue(block, block_class, header, key.key, seal));
  if (recovery_ != nullptr) recovery_->End(key.hash);
  NoteExpiry(key, header);
  return {.version = header.version, .slot = stub ? 0 : key.item.slot.word()};
}

WriteOutcome Store::Remove(const Locked& key, const Change& deletion) {
  GANNET_CHECK_DATA_PATH(key.item.there(), "there is no item");
  if (!Record(deletion)) return {.status = ReplyStatus::kDiskRefuses};
  RemoveRecorded(key, deletion.version);
  return {};
}

void Store::RemoveRecorded(const Locked& key, uint64_t version) {
  if (key.item.there()) RemoveItem(key.lock, key.item.place, key.item.slot);
  NoteRemoved(version);
}

std::optional<Store::Reservation> Store::Reserve(std::string_view key, uint32_t value_bytes,
                                                 ServerTime now) {
  if (!WithinLimits(key, value_bytes)) return std::nullopt;
  const uint64_t item_bytes = ItemBytes(key.size(), value_bytes);
  std::byte* block = AllocateOrMakeRoom(item_bytes, now);
  if (block == nullptr) return std::nullopt;
  StoreDeadFirst(block);
  return Reservation{static_cast<uint64_t>(block - region_.data()),
                     {block + ValueOffset(key.size(), value_bytes), value_bytes},
                     SizeClassFor(item_bytes)};
}

std::optional<Store::Reservation> Store::Reserve(std::string_view key, std::string_view value,
                                                 ServerTime now) {
  auto reservation = Reserve(key, static_cast<uint32_t>(value.size()), now);
  if (reservation) StoreValueAt(reservation->value.data(), value);
  return reservation;
}

std::optional<Pending> Store::MakeLong(KeyHash hash, const Change& put, ServerTime now) {
  const auto reservation = Reserve(put.key, put.value, now);
  if (!reservation) return std::nullopt;
  return Prepare(*reservation, hash, put);
}

void Store::Abandon(const Reservation& reservation) {
  FreeBlock(reservation.offset, reservation.size_class);
}

// The checksum of a long value takes long, so it is computed without the lock. That is safe: nobody
// else uses the block yet.
Pending Store::Prepare(const Reservation& reservation, KeyHash hash, const Change& put) {
  const ItemHeader header = HeaderOf(put);
  const ItemSeal seal(hash, PlaceAt(reservation.offset));
  const uint64_t live =
      StoreAroundValue(Block(reservation.offset), reservation.size_class, header, put.key, seal);
  return {reservation.offset, reservation.size_class, header.version, live, header.expiry()};
}

WriteOutcome Store::Install(const Locked& key, const Pending& pending, const Change* put) {
  const Slot old = key.item.slot;
  const Slot slot = Slot::Of(key.hash.Tag(), pending.size_class, pending.offset);
  if (!old.empty()) {
    if (put != nullptr && !Record(*put)) {
      Drop(pending);
      return {.status = ReplyStatus::kDiskRefuses};
    }
    CountExpiring(ExpiryOf(Block(old.offset())), pending.expiry);
    ReplaceItem(key.lock, key.hash, key.item.place, old, slot, pending.live_commit);
    if (evicts()) evictor_->Installed(key.hash, old, slot);
    FreeItem(old);
  } else {
    // The slot leads to a dead item until the commit word is stored. So the key appears at the same
    // moment to those who look it up and to those who remember where it was.
    if (!index_.Insert(key.lock, key.hash, slot)) {
      const ReplyStatus status = InsertAfterRemoval(key.lock, key.hash, slot, key.now);
      if (status != ReplyStatus::kOk) {
        if (put != nullptr) Drop(pending);
        return {.status = status == ReplyStatus::kTryAgain ? status : NoSlot()};
      }
    }
    CountExpiring(Expiry(), pending.expiry);
    // Only now is it certain that there is room. Nobody takes the item for live yet.
    if (put != nullptr && !Record(*put)) {
      TakeBack(key.lock, key.hash, slot);
      return {.status = ReplyStatus::kDiskRefuses};
    }
    StoreLive(Block(pending.offset), pending.live_commit);
    if (evicts()) evictor_->Installed(key.hash, old, slot);
    if (grower_.WantsHelp()) [[unlikely]]
      grower_.Help();
  }
  if (!pending.expiry.never()) {
    IndexTable& table = index_.TableOf(key.hash);
    table.floors.Lower(table.Home(key.hash), pending.expiry.time());
  }
  return {.version = pending.version, .slot = slot.word()};
}

// The slot was inserted a moment ago, and its item never became live.
void Store::TakeBack(const Index::Lock& held, KeyHash hash, Slot slot) {
  const auto found = index_.Find(held, hash, [slot](Slot it) { return it == slot; });
  RemoveItem(held, found->place, slot);
}

// Makes changes again that were recorded elsewhere.

ReplyStatus Store::Apply(const Change& change, ServerTime now) {
  const bool expired = now.IsPast(change.expiry);
  if (change.kind == Change::Kind::kPut && !expired) {
    return ApplyPut(change, now, /*over_item=*/true);
  }
  const Locked key(*this, HashOf(change.key), change.key, now);
  if (!key.item.there()) return ReplyStatus::kOk;
  Change deletion = change;
  deletion.kind = Change::Kind::kDelete;
  deletion.value = {};
  return Remove(key, deletion).status;
}

ReplyStatus Store::ApplyIfAbsent(const Change& put, ServerTime now) {
  if (now.IsPast(put.expiry)) return ReplyStatus::kOk;
  return ApplyPut(put, now, /*over_item=*/false);
}

ReplyStatus Store::ApplyPut(const Change& put, ServerTime now, bool over_item) {
  if (!WithinLimits(put.key, put.value.size())) return ReplyStatus::kInvalidArgument;
  const KeyHash hash = HashOf(put.key);
  if (SealedItemBytes(put.key.size(), put.value.size()) <= kInPlaceBytesMax) {
    const Locked key(*this, hash, put.key, now);
    if (!over_item && key.item.there()) return ReplyStatus::kExists;
    const WriteOutcome outcome = PutShort(key, put);
    if (outcome.status != ReplyStatus::kHeapFull) return outcome.status;
  }
  // The value is long, or there is no room. Room can only be made without a lock.
  if (const std::optional<Pending> pending = MakeLong(hash, put, now)) {
    const Locked key(*this, hash, put.key, now);
    if (over_item || !key.item.there()) return Install(key, *pending, &put).status;
    Drop(*pending);
    return ReplyStatus::kExists;
  }
  const Locked key(*this, hash, put.key, now);
  if (!over_item && key.item.there()) return ReplyStatus::kExists;
  return Overwrite(key, put).status;
}

// Makes room for writes. Removes expired items, and has others evicted and moved together,
// in small steps. The steps are done by a thread that has time, and by writes that found no room.

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

void Store::NoteTouches(std::string_view touches, uint32_t each) {
  if (evicts()) eviction_->TouchAll(touches, region_.size());
  if (leases_ == nullptr) return;
  ForEachTouch(touches, [this, each](gannet::Touch touch) {
    if (touch.offset() + sizeof(ItemHeader) > region_.size()) return;
    // Most items are told of once in a long time. The header of such an item is not looked at.
    if (!leases_->popular().WasTold(touch.offset()) && touch.uses() == 1) return;
    const std::byte* const block = Block(touch.offset());
    if (ValueBytes(block) > kLeasedValueBytesMax) return;  // or it took the place of others
    const uint64_t version = LoadWord(block + offsetof(ItemHeader, version));
    leases_->popular().Note(touch.offset(), version, uint64_t{touch.uses()} * each);
  });
}

void Store::PauseEvictions(bool paused) {
  if (evicts()) evictor_->Pause(paused);
}

bool Store::Tidy(ServerTime now) {
  if (recovery_ != nullptr) {
    recovery_->SetNextVersion(next_version_.load(std::memory_order_relaxed));
    recovery_->SetClock(now);
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
    ServerTime floor = n == found.size() ? now : ExpiryFloors::kNever;
    const auto expired = std::find_if(found.begin(), found.begin() + n, [&](const auto& item) {
      const Expiry expiry = ExpiryOf(Block(item.slot.offset()));
      if (!expiry.never()) floor = std::min(floor, expiry.time());
      return now.IsPast(expiry);
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
  if (block == nullptr && evicts()) block = evictor_->EvictFor(item_bytes, Unwritten::kStays);
  if (block != nullptr) return block;
  return compactor_.MakeRoom() ? heap_->Allocate(item_bytes) : nullptr;
}

// Walks over its items, home by home. Positions are hashes, so they stay right if the number
// of homes changes between two steps.

Change Store::ItemAt(Slot slot) const {
  const std::byte* const block = Block(slot.offset());
  const ItemHeader header = LoadHeader(slot);
  const size_t key_bytes = header.key_bytes();
  return {
      .kind = Change::Kind::kPut,
      .version = header.version,
      .expiry = header.expiry(),
      .flags = header.flags,
      .key = {KeyOfItem(block, key_bytes, header.value_bytes), key_bytes},
      .value = {reinterpret_cast<const char*>(block) + ValueOffset(key_bytes, header.value_bytes),
                header.value_bytes}};
}

Change Store::DeletionOf(Slot slot) {
  return {.kind = Change::Kind::kDelete, .version = NextVersion(), .key = ItemAt(slot).key};
}

std::optional<uint64_t> Store::VisitHome(uint64_t position,
                                         absl::FunctionRef<void(const Change&)> visit) {
  const std::shared_ptr<IndexTable> table = index_.Hold();
  const uint64_t homes = table->geometry().homes;
  const uint64_t home = MapToRange(position, homes);
  const Index::Lock lock(index_, *table, home);
  // While there are two tables, the home's keys may be in either.
  if (index_.growing() || !index_.IsCurrent(*table)) return std::nullopt;
  std::vector<Slot> slots;
  table->AppendSlots(home, &slots);
  for (const Slot slot : slots) visit(ItemAt(slot));
  return FirstHashOf(home + 1, homes);
}

// While the index grows, keys of this home may still be in the old table. To lock a key moves its
// old home into the new table, and a new home's keys are in at most two old ones.
bool Store::ListKeysOf(IndexTable& table, uint64_t home, std::vector<std::string>* keys) {
  const uint64_t homes = table.geometry().homes;
  { const Index::Lock migrates(index_, KeyHash(FirstHashOf(home, homes))); }
  { const Index::Lock migrates(index_, KeyHash(FirstHashOf(home + 1, homes) - 1)); }
  const Index::Lock lock(index_, table, home);
  if (!index_.IsCurrent(table)) return false;
  std::vector<Slot> slots;
  table.AppendSlots(home, &slots);
  for (const Slot slot : slots) keys->emplace_back(ItemAt(slot).key);
  return true;
}

uint64_t Store::ListKeys(uint64_t position, std::vector<std::string>* keys) {
  for (;;) {
    const std::shared_ptr<IndexTable> table = index_.Hold();
    const uint64_t homes = table->geometry().homes;
    const uint64_t home = MapToRange(position, homes);
    if (!ListKeysOf(*table, home, keys)) continue;  // the index has begun to grow
    return FirstHashOf(home + 1, homes);
  }
}

}  // namespace gannet
