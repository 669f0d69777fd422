// Evictor, while evictions wait for their records to be safe. An item stays until then, and so does
// its block. So a write that finds no room gets none here. It is put off, holds nothing, and comes
// again. What is evicted for it goes as soon as other changes that were recorded now.

#include <algorithm>

#include "server/store/evictor.h"

namespace gannet {
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
    block = ClearSpanLater(item_bytes);
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
// what was found has gone. Returns nullptr early if evictions wait.
std::byte* Evictor::ClearSpanLater(uint64_t item_bytes) {
  MutexLock lock(write_span_mutex_);
  WriteSpan& span = write_span_;
  span.steps = 0;
  for (int i = 0; i < kStepsPerWrite; ++i) {
    if (span.memory.empty()) {
      span.memory = ColdestSpan(item_bytes);
      if (span.memory.empty()) continue;
      LookThrough(&span);
    }
    const bool whole = Claim(&span);
    if (!whole && later_->gone_bytes() < span.evicted_to) return nullptr;
    if (!whole && span.passes < kPassesMax) {
      LookThrough(&span);
      continue;
    }
    GiveUp(&span);
    if (std::byte* const block = items_.heap().Allocate(item_bytes)) return block;
  }
  return nullptr;
}

void Evictor::LookThrough(WriteSpan* span) {
  ClearSpan(span->memory);
  span->evicted_to = later_->begun_bytes();
  ++span->passes;
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
