#ifndef GANNET_CLIENT_WALK_HOT_PLACES_H_
#define GANNET_CLIENT_WALK_HOT_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/base/check.h"
#include "common/lookup/index_walk.h"
#include "common/protocol/heats.h"

namespace gannet {

// Finds the places of a region that are used most. It is given the region's heats piece by piece.
// It keeps a fixed number of places, so its memory does not grow with the region.
//
// One thread.
class HotPlaces final : public WantedItems {
 public:
  // Returns whether a reply may be right for a region of so many bytes, and has heats.
  static bool IsSane(const HeatsReply& heats, uint64_t region_bytes);

  // REQUIRES: IsSane; max is not 0.
  HotPlaces(const HeatsReply& heats, size_t max) : heats_(heats), max_(max) {
    GANNET_CHECK(max > 0, "no place is wanted");
  }

  // Takes the next heats, from number `first` on.
  void Take(uint64_t first, std::span<const std::byte> heats);
  // Ends the search. Call it after the last Take.
  void Finish();

  bool empty() const { return heat_of_.empty(); }
  // Returns the heat of the item that begins at this offset of the region, if it is among the
  // hottest. REQUIRES: Finish was called.
  std::optional<uint8_t> HeatAt(uint64_t offset) const;
  bool IsWanted(uint64_t offset) const override { return HeatAt(offset).has_value(); }
  // Returns how often an item of this heat was used. Older uses count less.
  double UsesOf(uint8_t heat) const;
  bool IsMost(uint8_t heat) const { return heat >= heats_.most; }

 private:
  struct Place {
    uint64_t number;
    uint8_t heat;
  };

  void KeepHottest();

  const HeatsReply heats_;
  const size_t max_;
  uint8_t least_ = 1;  // places with less heat are not among the hottest
  std::vector<Place> places_;
  std::unordered_map<uint64_t, uint8_t> heat_of_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_WALK_HOT_PLACES_H_
