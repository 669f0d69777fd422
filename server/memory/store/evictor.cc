// docs/memory.md says which item goes, and why.

#include "server/memory/store/evictor.h"

#include <algorithm>
#include <array>

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
// A step in the background evicts at most so many items: some 0.3 ms.
constexpr int kEvictionsPerStep = 256;
// If so much more than the watermark is free, and a write finds no block, free memory is scattered.
// Spans for large items are cleared sooner: they are no longer than the item.
constexpr uint64_t kScatteredShare = 16;
constexpr uint64_t kScatteredShareForLarge = 48;
// At most this share of the heap counts as unusable.
constexpr uint64_t kUnusableShareMax = 40;

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
  const bool full = items_.heap().use().occupied_bytes() >= FullBytes() + state_.WatermarkBytes();
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
    if (!some_come || IsScattered(SizeClassFor(item_bytes)))
      block = write_span_.ClearFor(item_bytes);
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
  return items_.heap().use().occupied_bytes() < FullBytes() - scattered;
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
    clearer_.ClearFor(item_bytes);
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
    clearer_.ClearFor(item_bytes);
    block = items_.heap().Allocate(item_bytes);
  }
  return block;
}

bool Evictor::EvictToWatermark(ServerTime now) {
  if (paused()) return false;
  write_span_.Look();
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
  StubReserve& reserve = items_.stubs()->reserve();
  if (!reserve.Fill() && reserve.TakeShortages() > 0) {
    clearer_.ClearFor(StubBytes(kKeyBytesMax));
    reserve.Fill();
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

}  // namespace

uint64_t Evictor::BytesThatStay() const {
  const uint64_t occupied = items_.heap().use().occupied_bytes();
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
    block = write_span_.ClearFor(item_bytes);
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

}  // namespace gannet
