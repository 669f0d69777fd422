#include "server/memory/store/write_span.h"

namespace gannet {
namespace {

// A span is looked through so often. If something in it stays, it is given up.
constexpr uint32_t kPassesMax = 4;
// So often at most a write chooses a span, or looks through one.
constexpr int kStepsPerWrite = 64;
// And if no write asks for it for so many steps in the background, of a millisecond or more.
constexpr uint32_t kStepsMax = 100;

}  // namespace

// Others may have written into the span since it was looked through, so that is done again when
// what was found has gone. Returns nullptr early if something stays until a record is safe.
std::byte* WriteSpan::ClearFor(uint64_t item_bytes) {
  MutexLock lock(mutex_);
  span_.steps = 0;
  // What stayed for a disk may be written by now.
  if (!span_.memory.empty() && later_ == nullptr) LookThrough();
  for (int i = 0; i < kStepsPerWrite; ++i) {
    if (span_.memory.empty()) {
      span_.memory = clearer_.Coldest(item_bytes);
      if (span_.memory.empty()) continue;
      LookThrough();
    }
    const bool whole = Claim();
    const bool some_stay =
        later_ == nullptr ? span_.stay > 0 : later_->gone_bytes() < span_.evicted_to;
    if (!whole && some_stay) return nullptr;
    if (!whole && ++span_.passes < kPassesMax) {
      LookThrough();
      continue;
    }
    GiveUp();
    if (std::byte* const block = heap_.Allocate(item_bytes)) return block;
  }
  return nullptr;
}

void WriteSpan::LookThrough() {
  Claim();
  span_.stay =
      clearer_.Clear(span_.memory, later_ == nullptr ? Unwritten::kStays : Unwritten::kGoes);
  if (later_ != nullptr) span_.evicted_to = later_->begun_bytes();
}

bool WriteSpan::Claim() {
  heap_.ClaimFree(span_.memory, &span_.claims);
  uint64_t claimed = 0;
  for (const std::span<std::byte> piece : span_.claims) claimed += piece.size();
  return claimed == span_.memory.size();
}

void WriteSpan::Look() {
  MutexLock lock(mutex_);
  if (span_.memory.empty() || ++span_.steps < kStepsMax) return;
  GiveUp();
}

void WriteSpan::GiveUp() {
  heap_.GiveBack(&span_.claims);
  span_ = {};
}

}  // namespace gannet
