#ifndef GANNET_SERVER_GROUP_MOVE_CLOCK_DIFFERENCE_H_
#define GANNET_SERVER_GROUP_MOVE_CLOCK_DIFFERENCE_H_

#include <algorithm>
#include <cstdint>

#include "common/base/server_time.h"
#include "common/layout/item.h"

namespace gannet {

// By how much a receiver's clock is ahead of its giver's, at least (docs/partitions.md, rule 15).
// Items expire by these clocks. It is negative if the giver's is ahead.
//
// Times that it makes of others are from 1 to kExpiryMsMax: an expiry of 0 means "never".
class ClockDifference {
 public:
  ClockDifference() = default;  // none
  // The receiver read `own` and then asked. The giver answered with its clock, `giver`. Both
  // were cut to whole milliseconds, so it may be one less than it looks.
  ClockDifference(ServerTime own, ServerTime giver)
      : ms_(Bounded(own.ms()) - Bounded(giver.ms()) - 1) {}

  ServerTime ToOwn(ServerTime giver) const { return Moved(giver, ms_); }
  ServerTime ToGivers(ServerTime own) const { return Moved(own, -ms_); }

 private:
  // The giver may say anything.
  static int64_t Bounded(uint64_t ms) { return static_cast<int64_t>(std::min(ms, kExpiryMsMax)); }
  static ServerTime Moved(ServerTime time, int64_t by_ms) {
    constexpr auto kMax = static_cast<int64_t>(kExpiryMsMax);
    return ServerTime::FromMs(
        static_cast<uint64_t>(std::clamp<int64_t>(Bounded(time.ms()) + by_ms, 1, kMax)));
  }

  int64_t ms_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_CLOCK_DIFFERENCE_H_
