#ifndef GANNET_SERVER_GROUP_REPLICA_PRIMARY_WATCH_H_
#define GANNET_SERVER_GROUP_REPLICA_PRIMARY_WATCH_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "server/group/replica/group_times.h"

namespace gannet {

// A backup's look at its primary: when to take over.
//
// Thread safety: one thread. Times are those of CLOCK_BOOTTIME.
class PrimaryWatch {
 public:
  // `now`: when this member learned that it is in sync.
  explicit PrimaryWatch(BootTime now) : heard_(now) {}

  // A beacon came. Returns whether to answer it.
  bool OnBeacon(BootTime now) {
    if (fenced_) return false;
    heard_ = now;
    return true;
  }
  // Whether the primary's lease is over for certain. `order` is this member's place among those in
  // sync, from 0: candidates begin one beacon apart, so the first one mostly wins. `times` are the
  // primary's.
  bool IsOver(const GroupTimes& times, BootTime now, uint32_t order) const {
    return now - heard_ >= times.grace_ns() + int64_t{order} * times.beacon_ns();
  }
  // From now on no beacon is answered, so the lease cannot come back. Comes before the link's queue
  // pairs are moved to the error state, and before the ring is read.
  void Fence() { fenced_ = true; }

 private:
  BootTime heard_;
  bool fenced_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_PRIMARY_WATCH_H_
