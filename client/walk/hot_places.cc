#include "client/walk/hot_places.h"

#include <algorithm>
#include <cmath>

namespace gannet {

bool HotPlaces::IsSane(const HeatsReply& heats, uint64_t region_bytes) {
  // The heats end with a whole word of eight, which may go beyond the region.
  constexpr uint64_t kSpare = 8;
  return heats.bytes != 0 && heats.granule_bytes != 0 && heats.units_per_doubling != 0 &&
         heats.bytes <= region_bytes / heats.granule_bytes + kSpare;
}

void HotPlaces::Take(uint64_t first, std::span<const std::byte> heats) {
  for (size_t i = 0; i < heats.size(); ++i) {
    const auto heat = static_cast<uint8_t>(heats[i]);
    if (heat < least_) continue;
    places_.push_back({first + i, heat});
    if (places_.size() == 2 * max_) KeepHottest();
  }
}

void HotPlaces::KeepHottest() {
  if (places_.size() < max_) return;
  const auto end = places_.begin() + static_cast<std::ptrdiff_t>(max_);
  std::ranges::nth_element(places_, end - 1, std::ranges::greater{}, &Place::heat);
  // Once there are `max_` places, another one must be hotter than the coldest of them.
  least_ = static_cast<uint8_t>(std::min<uint32_t>(end[-1].heat + 1u, 255));
  places_.erase(end, places_.end());
}

void HotPlaces::Finish() {
  KeepHottest();
  for (const Place& place : places_) heat_of_[place.number] = place.heat;
  places_.clear();
}

std::optional<uint8_t> HotPlaces::HeatAt(uint64_t offset) const {
  const auto found = heat_of_.find(offset / heats_.granule_bytes);
  if (found == heat_of_.end()) return std::nullopt;
  return found->second;
}

double HotPlaces::UsesOf(uint8_t heat) const {
  return std::exp2((static_cast<double>(heat) - heats_.used_once) / heats_.units_per_doubling);
}

}  // namespace gannet
