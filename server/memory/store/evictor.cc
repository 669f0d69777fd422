// docs/memory.md says which item goes, and why.

#include "server/memory/store/evictor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "server/memory/store/store_find.h"

namespace gannet {
namespace {

// If the coldest item is locked, so many others are tried.
constexpr int kLockedMax = 4;
// What a write without room does at most: it evicts so many items one by one, and then clears so
// many spans. If that does not help, because values that other writes are bringing lie in the midst
// of these spans, it is put off (Store::NoRoom).
constexpr int kEvictionsPerWrite = 24;
constexpr int kSpansPerWrite = 8;
// A span is the coldest of so many; for a long item of more, if that does not mean to look at more
// memory.
constexpr uint64_t kSpansCompared = 8;
constexpr uint64_t kSpansComparedForLong = 16;
constexpr uint64_t kComparedBytesMax = 4 << 20;
// A span for a small item has room for two of jemalloc's longest slabs. With half as much, what is
// cleared is often just the slab of other items of the same size.
constexpr uint64_t kSpanBytesMin = 64 << 10;
// An item of a span that is longer is not moved, because it would be copied under a lock.
constexpr uint64_t kMovedBytesMax = 256 << 10;
// A step in the background evicts at most so many items: some 0.3 ms.
constexpr int kEvictionsPerStep = 256;
// If so much more than the watermark is free, and a write finds no block, free memory is scattered.
// Spans for large items are cleared sooner: they are no longer than the item.
constexpr uint64_t kScatteredShare = 16;
constexpr uint64_t kScatteredShareForLarge = 48;
// At most this share of the heap counts as unusable.
constexpr uint64_t kUnusableShareMax = 40;
// Memory for a table is cleared in steps of some 1 ms, if so many times the table is free.
constexpr uint64_t kTableBytesPerStep = 512 << 10;
constexpr uint64_t kFreeTablesMin = 2;
// What other threads write into it meanwhile is cleared in the next passes. The next piece is tried
// when this share of the heap was freed; if the last ones did not become free as a whole, because
// something in them stays, twice as much for each of them.
constexpr uint64_t kTablePlaces = 16;
constexpr uint64_t kTableFreedShare = 64;
constexpr uint32_t kTableFailuresMax = 3;
constexpr uint32_t kTablePassesMax = 4;

}  // namespace

bool Evictor::EvictColdest(const Index::Lock& held, std::span<Candidate> candidates,
                           Unwritten unwritten) {
  if (tier_ != nullptr) tier_->Prefer(candidates);
  for (int tries = 0; tries < kLockedMax && !candidates.empty(); ++tries) {
    const auto coldest = std::ranges::min_element(candidates, {}, &Candidate::worth);
    if (unwritten == Unwritten::kStays && tier_->StaysForDisk(coldest->found.slot)) return false;
    if (store_.Evict(held, coldest->found)) return true;
    *coldest = candidates.back();
    candidates = candidates.first(candidates.size() - 1);
  }
  return false;
}

bool Evictor::EvictInWindow(const Index::Lock& held, KeyHash hash, uint32_t size_class) {
  if (paused()) return false;
  IndexTable& table = items_.index().TableOf(hash);
  std::array<Candidate, 4 * kSlotsPerBucket> candidates;
  const ItemSampler::Choice choice{
      .size_class = size_class, .reach = 1, .window_only = true, .kind = ItemSampler::Kind::kAll};
  const size_t n = sampler_.ListNear(held, table, table.Home(hash), choice, candidates);
  return EvictColdest(held, std::span(candidates).first(n));
}

bool Evictor::EvictSomewhere(uint32_t size_class, Unwritten unwritten) {
  return sampler_.Sample(ItemSampler::Kind::kValues, size_class,
                         [&](const Index::Lock& held, std::span<Candidate> candidates) {
                           return EvictColdest(held, candidates, unwritten);
                         });
}

// The background step then keeps a little more free, so that the next write need not evict.
void Evictor::NoteUnusable() {
  const uint64_t capacity = items_.heap().capacity_bytes();
  const uint64_t unusable = state_.unusable_bytes.load(std::memory_order_relaxed);
  const bool full = items_.heap().occupied_bytes() >= FullBytes() + state_.WatermarkBytes();
  if (full || unusable > capacity / kUnusableShareMax) return;
  state_.unusable_bytes.store(unusable + capacity / 1024, std::memory_order_relaxed);
}

std::byte* Evictor::EvictFor(uint64_t item_bytes, Unwritten unwritten) {
  if (paused()) return nullptr;
  if (later_ != nullptr) return EvictForLater(item_bytes);
  const uint64_t evicted = state_.items_evicted.load(std::memory_order_relaxed);
  std::byte* block = tier_ == nullptr ? nullptr : EvictWritten(item_bytes, unwritten);
  if (block == nullptr && Waits(item_bytes, unwritten)) {
    const bool some_come = tier_->SomeAreOnTheWay();
    if (!some_come || IsScattered(SizeClassFor(item_bytes))) block = ClearWriteSpan(item_bytes);
  } else {
    // What single evictions free is seldom as long as a long item, so it would stay free.
    if (block == nullptr && !Eviction::IsLong(item_bytes)) block = EvictSingly(item_bytes);
    if (block == nullptr) block = ClearSpansFor(item_bytes);
  }
  // Counts what other threads evicted meanwhile, too.
  state_.evicted_by_writes.fetch_add(state_.items_evicted.load(std::memory_order_relaxed) - evicted,
                                     std::memory_order_relaxed);
  return block;
}

bool Evictor::IsScattered(uint32_t size_class) const {
  const uint64_t scattered = items_.heap().capacity_bytes() /
                             (IsLargeClass(size_class) ? kScatteredShareForLarge : kScatteredShare);
  return items_.heap().occupied_bytes() < FullBytes() - scattered;
}

std::byte* Evictor::EvictWritten(uint64_t item_bytes, Unwritten unwritten) {
  std::byte* block = nullptr;
  for (int i = 0; block == nullptr && i < kEvictionsPerWrite; ++i) {
    if (Waits(item_bytes, unwritten) && tier_->SomeAreOnTheWay() &&
        IsScattered(SizeClassFor(item_bytes)))
      break;
    if (!tier_->EvictWritten()) break;
    block = items_.heap().Allocate(item_bytes);
  }
  if (block == nullptr) {
    tier_->ChooseForWrite();
  } else {
    tier_->AskIfShort(FullBytes());
  }
  return block;
}

std::byte* Evictor::RoomForPromoted(uint64_t item_bytes, uint8_t heat) {
  return tier_->RoomForPromoted(item_bytes, heat, FullBytes());
}

std::byte* Evictor::EvictSingly(uint64_t item_bytes) {
  std::byte* block = nullptr;
  NoteUnusable();
  const uint32_t size_class = SizeClassFor(item_bytes);
  if (IsScattered(size_class)) {
    ClearSpanFor(item_bytes);
    block = items_.heap().Allocate(item_bytes);
  }
  for (int i = 0; block == nullptr && i < kEvictionsPerWrite; ++i) {
    EvictSomewhere(size_class);
    block = items_.heap().Allocate(item_bytes);
  }
  return block;
}

std::byte* Evictor::ClearSpansFor(uint64_t item_bytes) {
  std::byte* block = nullptr;
  for (int i = 0; block == nullptr && i < kSpansPerWrite; ++i) {
    ClearSpanFor(item_bytes);
    block = items_.heap().Allocate(item_bytes);
  }
  return block;
}

// A span is made of whole runs: if a part of a slab were left, all of it would stay a slab. Places
// are drawn from the memory, not from the items: long items are few, but cold ones free the most.
std::span<std::byte> Evictor::ColdestSpan(uint64_t item_bytes) const {
  const uint64_t block_bytes = Heap::BlockBytes(item_bytes);
  const uint64_t bytes =
      IsLargeClass(SizeClassFor(item_bytes)) ? block_bytes : std::max(block_bytes, kSpanBytesMin);
  std::span<std::byte> coldest;
  double least_cost = std::numeric_limits<double>::max();
  const bool is_long = Eviction::IsLong(item_bytes);
  const uint64_t compared =
      is_long ? std::clamp(kComparedBytesMax / bytes, kSpansCompared, kSpansComparedForLong)
              : kSpansCompared;
  for (uint64_t i = 0; i < compared; ++i) {
    const uint64_t place = MapToRange(state_.Random(), items_.heap().capacity_bytes());
    const std::span<std::byte> span = items_.heap().WholeRuns(place, bytes);
    if (span.size() < bytes) continue;
    const uint64_t begin = static_cast<uint64_t>(span.data() - items_.Block(0));
    const uint64_t uses = state_.heat.SumOfUses(begin, begin + span.size());
    // What a long item does not need of the span counts less: few other items are as long.
    const double length = static_cast<double>(span.size());
    const double cost = static_cast<double>(uses) / (is_long ? std::sqrt(length) : length);
    // A span that nobody uses has no items, but still is not free. So it belongs to something that
    // nobody may evict.
    if (uses == 0 || cost >= least_cost) continue;
    least_cost = cost;
    coldest = span;
  }
  if (!coldest.empty()) return coldest;
  const std::optional<uint64_t> place = items_.heap().PlaceAlone(item_bytes);
  return place ? items_.heap().WholeRuns(*place, bytes) : coldest;
}

void Evictor::ClearSpanFor(uint64_t item_bytes) {
  const std::span<std::byte> coldest = ColdestSpan(item_bytes);
  if (coldest.empty()) return;
  Heap::Claims claims;
  items_.heap().ClaimFree(coldest, &claims);
  ClearSpan(coldest);
  items_.heap().GiveBack(&claims);
}

uint32_t Evictor::ClearSpan(std::span<std::byte> memory, Unwritten unwritten) {
  const uint64_t begin = static_cast<uint64_t>(memory.data() - items_.Block(0));
  ClearedSpan span{
      .begin = memory.data(), .end = memory.data() + memory.size(), .unwritten = unwritten};
  ClearPart(begin, begin + memory.size(), &span);
  return span.stay;
}

void Evictor::ClearPart(uint64_t from, uint64_t to, ClearedSpan* span) {
  const Heat& heat = state_.heat;
  for (uint64_t at = heat.NextUsed(from, to); at < to; at = heat.NextUsed(at, to)) {
    const uint64_t granule_end = std::min(at + Heat::kGranuleBytes, to);
    for (; at < granule_end; at += kItemAlignment) ClearItemAt(at, span);
  }
  for (uint32_t i = 0; i < span->kept; ++i) items_.heap().Free(span->blocks[i], span->classes[i]);
}

// Near the end of the heap, which hands out the lowest memory: there is the least of what stays.
bool Evictor::ChooseTableSpan(uint64_t table_bytes) {
  const Heap& heap = items_.heap();
  const uint64_t capacity = heap.capacity_bytes();
  if (capacity - heap.occupied_bytes() < kFreeTablesMin * table_bytes) return false;
  if (heap.freed_bytes() < table_span_.freed_next) return false;
  // Meanwhile the table that is wanted becomes a little longer, as more memory becomes free.
  const uint64_t bytes = table_bytes + table_bytes / 8;
  for (uint64_t i = 0; i < kTablePlaces; ++i) {
    const uint64_t from_end = (1 + table_span_.tries++ % kTablePlaces) * bytes;
    if (from_end > capacity) continue;
    const std::span<std::byte> memory = heap.WholeRuns(capacity - from_end, bytes);
    if (memory.size() < bytes) continue;
    table_span_.memory = memory;
    table_span_.cleared = 0;
    table_span_.passes = 0;
    Claim(memory);
    return true;
  }
  return false;
}

void Evictor::Claim(std::span<std::byte> runs) {
  Heap::Claims& claims = table_span_.claims;
  const size_t before = claims.size();
  items_.heap().ClaimFree(runs, &claims);
  for (size_t i = before; i < claims.size(); ++i) table_span_.claimed += claims[i].size();
}

void Evictor::ReleaseTableSpan() {
  TableSpan& span = table_span_;
  if (span.memory.empty()) return;
  const bool whole = span.claimed == span.memory.size();
  items_.heap().GiveBack(&span.claims);
  span.failures = whole ? 0 : std::min(span.failures + 1, kTableFailuresMax);
  const uint64_t share = items_.heap().capacity_bytes() / kTableFreedShare;
  span.freed_next = items_.heap().freed_bytes() + (share << span.failures);
  span.memory = {};
  span.claimed = 0;
}

// Clears whole slabs at once: writes would take the blocks that are free in a part of one.
bool Evictor::ClearForTable(uint64_t table_bytes) {
  if (paused()) return false;
  if (table_bytes == 0) {
    ReleaseTableSpan();
    return false;
  }
  if (table_span_.memory.empty() && !ChooseTableSpan(table_bytes)) return false;
  const std::span<std::byte> memory = table_span_.memory;
  const std::byte* const end = memory.data() + memory.size();
  std::byte* const from = memory.data() + table_span_.cleared;
  std::byte* const heap_begin = items_.Block(items_.first_superblock().heap_offset);
  const std::span<std::byte> runs =
      items_.heap().WholeRuns(static_cast<uint64_t>(from - heap_begin), kTableBytesPerStep);
  if (runs.empty()) {
    ReleaseTableSpan();
    return false;
  }
  const std::byte* const to = std::min<const std::byte*>(runs.data() + runs.size(), end);
  ClearedSpan span{.begin = memory.data(), .end = end};
  ClearPart(static_cast<uint64_t>(from - items_.Block(0)),
            static_cast<uint64_t>(to - items_.Block(0)), &span);
  Claim({from, static_cast<size_t>(to - from)});
  table_span_.cleared = static_cast<uint64_t>(to - memory.data());
  if (table_span_.cleared < memory.size()) return true;
  table_span_.cleared = 0;
  const bool whole = table_span_.claimed == memory.size();
  if (whole || ++table_span_.passes == kTablePassesMax) ReleaseTableSpan();
  return true;
}

// Moves the item out of the span if there is a block for it elsewhere. Otherwise evicts it, but for
// a stub, which stays: it is short, and its value may be long.
void Evictor::ClearItem(const Index::Lock& held, const Index::Found& found, ClearedSpan* span) {
  const ItemHeader header = items_.LoadHeader(found.slot);
  const uint64_t bytes = ItemBytes(header.key_bytes(), header.value_bytes);
  const uint32_t size_class = SizeClassFor(bytes);
  while (bytes <= kMovedBytesMax && span->kept < span->blocks.size()) {
    std::byte* const block = items_.heap().Allocate(bytes);
    if (block == nullptr) break;
    if (block < span->begin || block >= span->end) {
      compactor_.Move(held, found, block, size_class);
      return;
    }
    // Kept until the span is clear, so that nobody gets it meanwhile.
    span->blocks[span->kept] = block;
    span->classes[span->kept++] = static_cast<uint8_t>(size_class);
  }
  if (IsStub(found.slot)) return;
  if (span->unwritten == Unwritten::kStays && tier_->StaysForDisk(found.slot)) {
    ++span->stay;
    return;
  }
  store_.Evict(held, found);
}

// Finds the item by what its bytes say, without a lock, and then proves it by the index.
void Evictor::ClearItemAt(uint64_t offset, ClearedSpan* span) {
  Items::KeyCopy copy;
  const std::string_view key = items_.GuessKeyAt(offset, &copy);
  if (key.empty()) return;
  const KeyHash hash = KeyHash::Of(key, items_.first_superblock().hash_seed);
  const Index::Lock lock(items_.index(), hash);
  const auto found =
      items_.index().Find(lock, hash, [&](Slot slot) { return slot.offset() == offset; });
  if (found) ClearItem(lock, *found, span);
}

bool Evictor::EvictToWatermark(ServerTime now) {
  if (paused()) return false;
  LookAtWriteSpan();
  state_.ages.Mark(now, items_.next_version());
  const bool hot = state_.Cool();
  const bool more_of_tier = tier_ != nullptr && StepOfTier();
  const uint64_t unusable = state_.unusable_bytes.load(std::memory_order_relaxed);
  state_.unusable_bytes.store(unusable - unusable / 1024, std::memory_order_relaxed);
  int evictions = 0;
  while (evictions < kEvictionsPerStep && BytesThatStay() > FullBytes() && EvictOne()) ++evictions;
  const uint64_t version = state_.last_evicted_version.exchange(0, std::memory_order_relaxed);
  if (version != 0) {
    const uint64_t before = state_.evicted_age_ms.load(std::memory_order_relaxed);
    const uint64_t age = state_.ages.AgeMs(now, version);
    state_.evicted_age_ms.store(before == 0 ? age : before - before / 8 + age / 8,
                                std::memory_order_relaxed);
  }
  return hot || more_of_tier || evictions == kEvictionsPerStep;
}

// What is on the way to the disk becomes a stub soon. Until then a write that needs room makes
// some.
bool Evictor::EvictOne() {
  if (tier_ == nullptr) return EvictSomewhere(kSizeClassNone);
  if (tier_->EvictWritten()) return true;
  if (!tier_->DiskWorks()) return EvictSomewhere(kSizeClassNone);
  return !tier_->SomeAreOnTheWay() && EvictSomewhere(kSizeClassNone, Unwritten::kStays);
}

// So long items come at the pace of the disk. Else others would be evicted, missed, and put again.
bool Evictor::Waits(uint64_t item_bytes, Unwritten unwritten) const {
  return tier_ != nullptr && unwritten == Unwritten::kStays && Eviction::IsLong(item_bytes) &&
         tier_->DiskWorks();
}

// If items were deleted for want of a stub's block, what is free lies in pieces that are too short.
bool Evictor::StepOfTier() {
  const bool more = tier_->Step(FullBytes());
  if (!items_.stubs()->FillReserve() && items_.stubs()->TakeShortages() > 0) {
    ClearSpanFor(StubBytes(kKeyBytesMax));
    items_.stubs()->FillReserve();
  }
  return more;
}

void Evictor::Installed(KeyHash hash, Slot old, Slot slot) {
  // The key of a stub has its heat where those of keys are that were evicted.
  const bool is_new = old.empty() || IsStub(old);
  const uint8_t heat = is_new ? uint8_t{Heat::kNone} : state_.heat.Get(old.offset());
  state_.Installed(hash, slot.offset(), slot.size_class(), heat);
}

// Evictor, while evictions wait for their records to be safe. An item stays until then, and so does
// its block. So a write that finds no room gets none here. It is put off, holds nothing, and comes
// again. What is evicted for it goes as soon as other changes that were recorded now.

namespace {

// A write without room has items evicted until so many bytes go. More writes will want some before
// these have gone.
constexpr uint64_t kBytesAhead = 64 << 10;
// But at most so many items at once.
constexpr int kItemsAtOnce = 64;
// Single evictions may free blocks in slabs of other sizes. So every so many writes without room, a
// span is cleared, which serves any size.
constexpr uint32_t kTurnsForSpan = 4;
// A span is looked through so often. If something in it stays, it is given up.
constexpr uint32_t kPassesMax = 4;
// So often at most a write chooses a span, or looks through one.
constexpr int kStepsPerWrite = 64;
// And if no write asks for it for so many steps in the background, of a millisecond or more.
constexpr uint32_t kStepsMax = 100;

}  // namespace

uint64_t Evictor::BytesThatStay() const {
  const uint64_t occupied = items_.heap().occupied_bytes();
  return later_ == nullptr ? occupied : occupied - std::min(occupied, later_->waiting_bytes());
}

std::byte* Evictor::EvictForLater(uint64_t item_bytes) {
  const uint64_t evicted = state_.items_evicted.load(std::memory_order_relaxed);
  const uint32_t turn = turns_.fetch_add(1, std::memory_order_relaxed);
  std::byte* block = nullptr;
  NoteUnusable();
  const bool clears = Eviction::IsLong(item_bytes) || IsScattered(SizeClassFor(item_bytes)) ||
                      turn % kTurnsForSpan == kTurnsForSpan - 1;
  if (clears) {
    block = ClearWriteSpan(item_bytes);
  } else {
    EvictAhead(item_bytes);
  }
  const uint64_t now_evicted = state_.items_evicted.load(std::memory_order_relaxed);
  state_.evicted_by_writes.fetch_add(now_evicted - evicted, std::memory_order_relaxed);
  if (block == nullptr && tidy_wanted_ != nullptr) tidy_wanted_->Ask();
  return block;
}

void Evictor::EvictAhead(uint64_t item_bytes) {
  const uint64_t bytes = std::max(kBytesAhead, Heap::BlockBytes(item_bytes));
  for (int i = 0; i < kItemsAtOnce && later_->waiting_bytes() < bytes; ++i) {
    EvictSomewhere(SizeClassFor(item_bytes));
  }
}

// Others may have written into the span since it was looked through, so that is done again when
// what was found has gone. Returns nullptr early if something stays until a record is safe.
std::byte* Evictor::ClearWriteSpan(uint64_t item_bytes) {
  MutexLock lock(write_span_mutex_);
  WriteSpan& span = write_span_;
  span.steps = 0;
  // What stayed for a disk may be written by now.
  if (!span.memory.empty() && later_ == nullptr) LookThrough(&span);
  for (int i = 0; i < kStepsPerWrite; ++i) {
    if (span.memory.empty()) {
      span.memory = ColdestSpan(item_bytes);
      if (span.memory.empty()) continue;
      LookThrough(&span);
    }
    const bool whole = Claim(&span);
    const bool some_stay =
        later_ == nullptr ? span.stay > 0 : later_->gone_bytes() < span.evicted_to;
    if (!whole && some_stay) return nullptr;
    if (!whole && ++span.passes < kPassesMax) {
      LookThrough(&span);
      continue;
    }
    GiveUp(&span);
    if (std::byte* const block = items_.heap().Allocate(item_bytes)) return block;
  }
  return nullptr;
}

void Evictor::LookThrough(WriteSpan* span) {
  Claim(span);
  span->stay = ClearSpan(span->memory, later_ == nullptr ? Unwritten::kStays : Unwritten::kGoes);
  if (later_ != nullptr) span->evicted_to = later_->begun_bytes();
}

bool Evictor::Claim(WriteSpan* span) {
  items_.heap().ClaimFree(span->memory, &span->claims);
  uint64_t claimed = 0;
  for (const std::span<std::byte> piece : span->claims) claimed += piece.size();
  return claimed == span->memory.size();
}

void Evictor::LookAtWriteSpan() {
  MutexLock lock(write_span_mutex_);
  if (write_span_.memory.empty() || ++write_span_.steps < kStepsMax) return;
  GiveUp(&write_span_);
}

void Evictor::GiveUp(WriteSpan* span) {
  items_.heap().GiveBack(&span->claims);
  *span = {};
}

}  // namespace gannet
