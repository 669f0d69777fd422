#ifndef GANNET_SERVER_MOVE_CLOCK_DIFFERENCE_H_
#define GANNET_SERVER_MOVE_CLOCK_DIFFERENCE_H_

#include <algorithm>
#include <cstdint>

#include "common/layout/item.h"

namespace gannet {

// By how much a receiver's clock is ahead of its giver's, at least (docs/partitions.md, rule 15).
// Items expire by these clocks. It is negative if the giver's is ahead.
//
// Times that it makes of others are from 1 to kExpiryMsMax: an expiry of 0 means "never".
class ClockDifference {
 public:
  ClockDifference() = default;  // none
  // The receiver read `own_ms` and then asked. The giver answered with its clock, `giver_ms`. Both
  // were cut to whole milliseconds, so it may be one less than it looks.
  ClockDifference(uint64_t own_ms, uint64_t giver_ms)
      : ms_(Bounded(own_ms) - Bounded(giver_ms) - 1) {}

  uint64_t ToOwn(uint64_t giver_ms) const { return Moved(giver_ms, ms_); }
  uint64_t ToGivers(uint64_t own_ms) const { return Moved(own_ms, -ms_); }

 private:
  // The giver may say anything.
  static int64_t Bounded(uint64_t ms) { return static_cast<int64_t>(std::min(ms, kExpiryMsMax)); }
  static uint64_t Moved(uint64_t ms, int64_t by_ms) {
    constexpr auto kMax = static_cast<int64_t>(kExpiryMsMax);
    return static_cast<uint64_t>(std::clamp<int64_t>(Bounded(ms) + by_ms, 1, kMax));
  }

  int64_t ms_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MOVE_CLOCK_DIFFERENCE_H_
