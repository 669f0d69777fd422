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
// So many values are chosen at once.
constexpr size_t kChosenAtOnce = 16;
// So many stubs go in one step, if there are too many.
constexpr int kStubsPerStep = 256;
// Two worths differ by less than this.
constexpr int32_t kMoreThanAnyWorth = 1000;
// So much is written ahead: at least what some clients put at once, if values are long.
constexpr uint64_t kAheadShare = 32;
constexpr uint64_t kAheadBytesMin = 32 << 20;
constexpr uint64_t kAheadBytesMax = 256 << 20;
constexpr uint64_t kAheadShareMax = 8;
// So many items go at most for one that is promoted. It is used half as much again as they are, so
// that two of them do not take turns.
constexpr int kEvictionsPerPromotion = 4;
// This share of what is written ahead may go for promotions.
constexpr uint64_t kAheadShareOfPromotions = 4;
constexpr int32_t kPromotedWorthMore = Heat::kUnitsPerDoubling / 2;

uint64_t AheadBytes(const Heap& heap) {
  const uint64_t capacity = heap.capacity_bytes();
  const uint64_t least = std::min(kAheadBytesMin, capacity / kAheadShareMax);
  return std::clamp(capacity / kAheadShare, least, std::max(least, kAheadBytesMax));
}

}  // namespace

// An item that was changed since has another version. One that is locked, or leased to clients, or
// worth too much, stays, and is chosen again if it is cold.
bool TierEvictor::EvictWritten(int32_t worth_max) {
  for (int i = 0; i < kGoneMax; ++i) {
    const std::optional<AheadOfEviction::Item> item = stubs_.ahead().TakeWritten();
    if (!item) return false;
    const Index::Lock lock(items_.index(), item->hash);
    const std::optional<Index::Found> found = FindVersion(items_, lock, item->hash, item->version);
    if (!found) {
      stubs_.ahead().Drop(item->version);
      continue;
    }
    const Slot slot = found->slot;
    const uint8_t heat = items_.eviction()->heat.Get(slot.offset());
    const bool worth_too_much = WorthOf(heat, slot.size_class()) > worth_max;
    if (!worth_too_much && store_.Evict(lock, *found)) {
      stubs_.ahead().Drop(item->version);
      return true;
    }
    stubs_.ahead().Spare(item->version);
    if (worth_too_much) return false;
  }
  return false;
}

// Writes need what is free and what can go: without it, they would evict what is not on the disk.
// A promotion leaves them the most of it.
std::byte* TierEvictor::RoomForPromoted(uint64_t item_bytes, uint8_t heat, uint64_t full_bytes) {
  Heap& heap = items_.heap();
  const uint64_t bytes = Heap::BlockBytes(item_bytes);
  const uint64_t ahead = AheadBytes(heap);
  const uint64_t left = ahead - ahead / kAheadShareOfPromotions;
  const int32_t worth_max = WorthOf(heat, SizeClassFor(item_bytes)) - kPromotedWorthMore;
  for (int evictions = 0;; ++evictions) {
    const uint64_t occupied = heap.use().occupied_bytes() + bytes;
    if (occupied + left > full_bytes + stubs_.ahead().written_bytes()) return nullptr;
    if (occupied <= full_bytes) {
      if (std::byte* const block = heap.Allocate(item_bytes)) return block;
    }
    if (evictions == kEvictionsPerPromotion || !EvictWritten(worth_max)) return nullptr;
  }
}

void TierEvictor::Prefer(std::span<ItemSampler::Candidate> candidates) const {
  for (ItemSampler::Candidate& candidate : candidates) {
    const ItemHeader header = items_.LoadHeader(candidate.found.slot);
    switch (stubs_.ahead().StateOf(header.version)) {
      case AheadOfEviction::State::kNotHere:
      case AheadOfEviction::State::kKept:
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
uint64_t TierEvictor::BytesAhead(uint64_t full_bytes) const {
  const uint64_t begin = full_bytes - std::min(full_bytes, AheadBytes(items_.heap()));
  const uint64_t occupied = items_.heap().use().occupied_bytes();
  return occupied - std::min(occupied, begin);
}

bool TierEvictor::ChooseAhead(uint64_t full_bytes) {
  return ChooseVictims(BytesAhead(full_bytes)) > 0;
}

// So the thread is not woken for each value.
void TierEvictor::AskIfShort(uint64_t full_bytes) const {
  if (stubs_.ahead().bytes() < BytesAhead(full_bytes) / 2) stubs_.AskWriter();
}

bool TierEvictor::Step(uint64_t full_bytes) {
  AskIfShort(full_bytes);
  stubs_.ahead().StepPassed();
  int evicted = 0;
  while (evicted < kStubsPerStep && stubs_.too_many() && EvictStub()) ++evicted;
  return evicted == kStubsPerStep;
}

bool TierEvictor::StaysForDisk(Slot slot) {
  if (stubs_.MayBeChosen(slot)) {
    if (!stubs_.Choose(slot)) return true;
    stubs_.AskWriter();
  }
  const uint64_t version = items_.LoadHeader(slot).version;
  return stubs_.ahead().StateOf(version) == AheadOfEviction::State::kOnTheWay;
}

void TierEvictor::ChooseForWrite() {
  if (ChooseVictims(AheadBytes(items_.heap())) > 0) stubs_.AskWriter();
}

size_t TierEvictor::ChooseVictims(uint64_t bytes) {
  const auto choose = [this](const Index::Lock& /*held*/, auto candidates) {
    return ChooseColdest(candidates);
  };
  size_t chosen = 0;
  while (chosen < kChosenAtOnce && stubs_.ahead().bytes() < bytes && !stubs_.ahead().full() &&
         sampler_.Sample(ItemSampler::Kind::kValues, kSizeClassNone, choose)) {
    ++chosen;
  }
  return chosen;
}

bool TierEvictor::ChooseColdest(std::span<ItemSampler::Candidate> candidates) {
  const auto last = std::partition(
      candidates.begin(), candidates.end(),
      [this](const auto& candidate) { return stubs_.MayBeChosen(candidate.found.slot); });
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
