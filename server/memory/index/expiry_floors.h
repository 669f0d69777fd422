#ifndef GANNET_SERVER_MEMORY_INDEX_EXPIRY_FLOORS_H_
#define GANNET_SERVER_MEMORY_INDEX_EXPIRY_FLOORS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/base/server_time.h"

namespace gannet {

// Says when the first item of each home may expire, so that a search for expired items can skip the
// other homes. Each home, and each range of homes, has a floor: none of its items expires before
// that. A floor may be too low (if the item is gone), but never too high. It takes 8 bytes per
// home, outside the region, and none where no item expires: "never" is stored as zero, and such
// pages are not touched.
//
// Thread safety: to change a home or its range, hold the lock of that range (Index::Lock of the
// home). NextDue needs no lock: it may miss a floor that is being written, and the next call finds
// it.
class ExpiryFloors {
 public:
  static constexpr ServerTime kNever = ServerTime::FromMs(UINT64_MAX);

  // Each range has the same number of homes, give or take one. If there are few homes, it may have
  // none.
  ExpiryFloors(uint64_t homes, uint64_t ranges)
      : homes_(homes),
        home_floors_(static_cast<Floor*>(std::calloc(homes, sizeof(Floor)))),
        range_floors_(ranges) {
    GANNET_CHECK(home_floors_ != nullptr, "no memory for when items expire");
  }

  // Records that an item of this home expires at this time.
  void Lower(uint64_t home, ServerTime time) {
    LowerTo(home_floors_[home], time);
    LowerTo(range_floors_[RangeOf(home)], time);
  }
  // Records when the first of this home's items expires, after a look at all of them.
  void Set(uint64_t home, ServerTime time) { home_floors_[home].Store(time); }
  ServerTime Of(uint64_t home) const { return home_floors_[home].Load(); }
  bool Due(uint64_t home, ServerTime now) const { return home_floors_[home].Load() <= now; }

  // Returns the first home in [home, end) that is due, or `end` if there is none. REQUIRES: `end`
  // is the end of a range, and `home` is in that range or equals `end`.
  uint64_t NextDue(uint64_t home, uint64_t end, ServerTime now) const {
    if (home == end || !RangeDue(home, now)) return end;
    while (home != end && !Due(home, now)) ++home;
    return home;
  }
  bool RangeDue(uint64_t home, ServerTime now) const {
    return range_floors_[RangeOf(home)].Load() <= now;
  }
  // Sets the floor of this home's range from those of its homes.
  void RaiseRange(uint64_t home) {
    ServerTime floor = kNever;
    const uint64_t end = RangeEnd(home);
    for (uint64_t i = RangeBegin(home); i != end; ++i) {
      floor = std::min(floor, home_floors_[i].Load());
    }
    range_floors_[RangeOf(home)].Store(floor);
  }
  uint64_t RangeBegin(uint64_t home) const { return FirstOfRange(RangeOf(home)); }
  uint64_t RangeEnd(uint64_t home) const { return FirstOfRange(RangeOf(home) + 1); }
  uint64_t homes() const { return homes_; }

 private:
  // Relaxed: the lock orders the changes, and a reader that misses one looks again later.
  class Floor {
   public:
    ServerTime Load() const {
      return ServerTime::FromMs(~inverted_.load(std::memory_order_relaxed));
    }
    void Store(ServerTime time) { inverted_.store(~time.ms(), std::memory_order_relaxed); }

   private:
    std::atomic<uint64_t> inverted_{~kNever.ms()};
  };
  static_assert(sizeof(Floor) == sizeof(uint64_t) && ~kNever.ms() == 0);
  struct FreeFloors {
    void operator()(Floor* floors) const { std::free(floors); }
  };

  static void LowerTo(Floor& floor, ServerTime time) {
    if (time < floor.Load()) floor.Store(time);
  }

  // Both products fit: a region has less than 2^34 buckets.
  uint64_t RangeOf(uint64_t home) const { return home * range_floors_.size() / homes_; }
  uint64_t FirstOfRange(uint64_t range) const {
    return (range * homes_ + range_floors_.size() - 1) / range_floors_.size();
  }

  const uint64_t homes_;
  std::unique_ptr<Floor[], FreeFloors> home_floors_;
  std::vector<Floor> range_floors_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_INDEX_EXPIRY_FLOORS_H_
