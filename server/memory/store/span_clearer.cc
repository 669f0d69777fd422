// A span is found by how much is used of it (Coldest). Its items are found by what lies in its
// memory, and proved by the index.

#include "server/memory/store/span_clearer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "server/memory/store/store_find.h"

namespace gannet {
namespace {

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

}  // namespace

// A span is made of whole runs: if a part of a slab were left, all of it would stay a slab. Places
// are drawn from the memory, not from the items: long items are few, but cold ones free the most.
std::span<std::byte> SpanClearer::Coldest(uint64_t item_bytes) const {
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

void SpanClearer::ClearFor(uint64_t item_bytes) {
  const std::span<std::byte> coldest = Coldest(item_bytes);
  if (coldest.empty()) return;
  Heap::Claims claims;
  items_.heap().ClaimFree(coldest, &claims);
  Clear(coldest, Unwritten::kGoes);
  items_.heap().GiveBack(&claims);
}

uint32_t SpanClearer::ClearPart(std::span<std::byte> memory, std::span<std::byte> part,
                                Unwritten unwritten) {
  Cleared span{
      .begin = memory.data(), .end = memory.data() + memory.size(), .unwritten = unwritten};
  const uint64_t from = static_cast<uint64_t>(part.data() - items_.Block(0));
  const uint64_t to = from + part.size();
  const Heat& heat = state_.heat;
  for (uint64_t at = heat.NextUsed(from, to); at < to; at = heat.NextUsed(at, to)) {
    const uint64_t granule_end = std::min(at + Heat::kGranuleBytes, to);
    for (; at < granule_end; at += kItemAlignment) ClearItemAt(at, &span);
  }
  for (uint32_t i = 0; i < span.kept; ++i) items_.heap().Free(span.blocks[i], span.classes[i]);
  return span.stay;
}

// Moves the item out of the span if there is a block for it elsewhere. Otherwise evicts it, but for
// a stub, which stays: it is short, and its value may be long.
void SpanClearer::ClearItem(const Index::Lock& held, const Index::Found& found, Cleared* span) {
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
void SpanClearer::ClearItemAt(uint64_t offset, Cleared* span) {
  Items::KeyCopy copy;
  const std::string_view key = items_.GuessKeyAt(offset, &copy);
  if (key.empty()) return;
  const KeyHash hash = KeyHash::Of(key, items_.first_superblock().hash_seed);
  const Index::Lock lock(items_.index(), hash);
  const auto found =
      items_.index().Find(lock, hash, [&](Slot slot) { return slot.offset() == offset; });
  if (found) ClearItem(lock, *found, span);
}

}  // namespace gannet
