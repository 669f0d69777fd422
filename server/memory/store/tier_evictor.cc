// Which values are written next, and which items and stubs go. How much is written ahead decides
// what a PUT without room finds: items that become stubs, or others that are deleted.

#include "server/memory/store/tier_evictor.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "server/memory/store/store.h"

namespace gannet {
namespace {

// So many that were written and are not there any more are passed over at once.
constexpr int kGoneMax = 64;
// A write chooses so many values.
constexpr size_t kChosenPerWrite = 16;
// So many stubs go in one step, if there are too many.
constexpr int kStubsPerStep = 256;
// Two worths differ by less than this.
constexpr int32_t kMoreThanAnyWorth = 1000;
// So much is written ahead.
constexpr uint64_t kAheadShare = 32;
constexpr uint64_t kAheadBytesMin = 1 << 20;
constexpr uint64_t kAheadBytesMax = 256 << 20;
constexpr uint64_t kAheadShareMax = 8;

uint64_t AheadBytes(const Heap& heap) {
  const uint64_t capacity = heap.capacity_bytes();
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
    const std::optional<Index::Found> found = FindVersion(items_, lock, item->hash, item->version);
    const bool gone = found && store_.Evict(lock, *found);
    stubs_.ahead().Drop(item->version);
    if (gone) return true;
  }
  return false;
}

void TierEvictor::Prefer(std::span<ItemSampler::Candidate> candidates) const {
  for (ItemSampler::Candidate& candidate : candidates) {
    const ItemHeader header = items_.LoadHeader(candidate.found.slot);
    switch (stubs_.ahead().StateOf(header.version)) {
      case AheadOfEviction::State::kNotHere:
        break;
      case AheadOfEviction::State::kOnTheWay:
        candidate.worth += kMoreThanAnyWorth;
        break;
      case AheadOfEviction::State::kWritten:
        candidate.worth -= kMoreThanAnyWorth;
    }
  }
}

// As much is written ahead as would have to go now if the heap were full a little earlier.
bool TierEvictor::Step(uint64_t full_bytes) {
  const uint64_t begin = full_bytes - std::min(full_bytes, AheadBytes(items_.heap()));
  const uint64_t occupied = items_.heap().occupied_bytes();
  if (occupied > begin) ChooseVictims(occupied - begin, AheadOfEviction::kChosenMax);
  int evicted = 0;
  while (evicted < kStubsPerStep && stubs_.too_many() && EvictStub()) ++evicted;
  return evicted == kStubsPerStep;
}

void TierEvictor::ChooseForWrite() { ChooseVictims(AheadBytes(items_.heap()), kChosenPerWrite); }

void TierEvictor::ChooseVictims(uint64_t bytes, size_t most) {
  const auto choose = [this](const Index::Lock& /*held*/, auto candidates) {
    return ChooseColdest(candidates);
  };
  size_t chosen = 0;
  while (chosen < most && stubs_.ahead().bytes() < bytes && !stubs_.ahead().full() &&
         sampler_.Sample(ItemSampler::Kind::kValues, kSizeClassNone, choose)) {
    ++chosen;
  }
  if (chosen > 0) stubs_.AskWriter();
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
          const TierPlace place = PlaceOfStub(items_, candidate.found.slot);
          return std::tuple(place.lap, place.position);
        });
        return first != candidates.end() && store_.Evict(held, first->found);
      });
}

}  // namespace gannet
