#include "server/memory/store/tier_evictor.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "server/memory/store/store.h"

namespace gannet {
namespace {

// So many that were written and are not there any more are passed over at once.
constexpr int kGoneMax = 64;
// So many stubs go in one step, if there are too many.
constexpr int kStubsPerStep = 256;
// So much is written ahead.
constexpr uint64_t kAheadShare = 32;
constexpr uint64_t kAheadBytesMin = 1 << 20;
constexpr uint64_t kAheadBytesMax = 256 << 20;
constexpr uint64_t kAheadShareMax = 8;

uint64_t AheadBytes(uint64_t capacity) {
  const uint64_t least = std::min(kAheadBytesMin, capacity / kAheadShareMax);
  return std::clamp(capacity / kAheadShare, least, std::max(least, kAheadBytesMax));
}

}  // namespace

// An item that was changed since has another version. One that is locked, or leased to clients,
// stays, and is chosen again if it stays cold.
bool TierEvictor::EvictWritten() {
  for (int i = 0; i < kGoneMax; ++i) {
    const std::optional<AheadOfEviction::Item> item = stubs_.ahead().TakeWritten();
    if (!item) return false;
    const Index::Lock lock(items_.index(), item->hash);
    const std::optional<Index::Found> found = stubs_.FindItem(lock, item->hash, item->version);
    const bool gone = found && store_.Evict(lock, *found);
    stubs_.ahead().Drop(item->version);
    if (gone) return true;
  }
  return false;
}

bool TierEvictor::Step(uint64_t full_bytes) {
  ChooseVictims(full_bytes);
  int evicted = 0;
  while (evicted < kStubsPerStep && stubs_.too_many() && EvictStub()) ++evicted;
  return evicted == kStubsPerStep;
}

void TierEvictor::ChooseVictims(uint64_t full_bytes) {
  const Heap& heap = items_.heap();
  const uint64_t ahead = AheadBytes(heap.capacity_bytes());
  const uint64_t begin = full_bytes - std::min(full_bytes, ahead);
  bool chosen = false;
  for (size_t i = 0; i < AheadOfEviction::kChosenMax; ++i) {
    const uint64_t occupied = heap.occupied_bytes();
    if (occupied <= begin || stubs_.ahead().bytes() >= occupied - begin) break;
    if (stubs_.ahead().full()) break;
    chosen |= sampler_.Sample(
        ItemSampler::Kind::kValues, kSizeClassNone,
        [this](const Index::Lock& /*held*/, auto candidates) { return ChooseColdest(candidates); });
  }
  if (chosen) stubs_.AskWriter();
}

bool TierEvictor::ChooseColdest(std::span<ItemSampler::Candidate> candidates) {
  const auto last = std::partition(
      candidates.begin(), candidates.end(),
      [this](const auto& candidate) { return stubs_.MayBeWritten(candidate.found.slot); });
  if (last == candidates.begin()) return false;
  const auto coldest = std::min_element(
      candidates.begin(), last, [](const auto& a, const auto& b) { return a.worth < b.worth; });
  return stubs_.Choose(coldest->found.slot);
}

bool TierEvictor::EvictStub() {
  return sampler_.Sample(
      ItemSampler::Kind::kStubs, kSizeClassNone, [this](const Index::Lock& held, auto candidates) {
        const auto first = std::ranges::min_element(candidates, {}, [this](const auto& candidate) {
          const TierPlace place = stubs_.PlaceAt(candidate.found.slot);
          return std::tuple(place.lap, place.position);
        });
        return first != candidates.end() && store_.Evict(held, first->found);
      });
}

}  // namespace gannet
