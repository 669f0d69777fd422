#ifndef GANNET_SERVER_STORE_EXPIRY_FLOORS_H_
#define GANNET_SERVER_STORE_EXPIRY_FLOORS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace gannet {

// When the first item of each home bucket may expire, so that who looks for expired items does not
// have to look at the others: a home, and a range of homes, has a floor below which none of its
// items expires. A floor may be too low (the item is gone), never too high. 8 bytes a home, beside
// the region.
//
// Thread safety: what changes a home or its range needs the lock of that range (Index::Lock of the
// home). NextDue needs nothing: it may miss what is being written, and the next call finds it.
class ExpiryFloors {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  ExpiryFloors(uint64_t homes, uint64_t homes_per_range)
      : homes_(homes),
        homes_per_range_(homes_per_range),
        home_floors_(homes),
        range_floors_((homes - 1) / homes_per_range + 1) {
    for (auto& floor : home_floors_) floor.store(kNever, std::memory_order_relaxed);
    for (auto& floor : range_floors_) floor.store(kNever, std::memory_order_relaxed);
  }

  // An item of this home expires then.
  void Lower(uint64_t home, uint64_t expiry_ms) {
    LowerTo(home_floors_[home], expiry_ms);
    LowerTo(range_floors_[home / homes_per_range_], expiry_ms);
  }
  // All items of this home were looked at, and the first of them expires then.
  void Set(uint64_t home, uint64_t expiry_ms) {
    home_floors_[home].store(expiry_ms, std::memory_order_relaxed);
  }
  bool Due(uint64_t home, uint64_t now_ms) const {
    return home_floors_[home].load(std::memory_order_relaxed) <= now_ms;
  }

  // The first home in [home, end) that is due; end if there is none. REQUIRES: `end` is that of a
  // range, and home is in the range or is its end.
  uint64_t NextDue(uint64_t home, uint64_t end, uint64_t now_ms) const {
    if (home == end || !RangeDue(home, now_ms)) return end;
    while (home != end && !Due(home, now_ms)) ++home;
    return home;
  }
  bool RangeDue(uint64_t home, uint64_t now_ms) const {
    return range_floors_[home / homes_per_range_].load(std::memory_order_relaxed) <= now_ms;
  }
  // Sets the floor of this home's range from those of its homes.
  void RaiseRange(uint64_t home) {
    uint64_t floor = kNever;
    const uint64_t end = RangeEnd(home);
    for (uint64_t i = RangeBegin(home); i != end; ++i) {
      floor = std::min(floor, home_floors_[i].load(std::memory_order_relaxed));
    }
    range_floors_[home / homes_per_range_].store(floor, std::memory_order_relaxed);
  }
  uint64_t RangeBegin(uint64_t home) const { return home / homes_per_range_ * homes_per_range_; }
  uint64_t RangeEnd(uint64_t home) const {
    return std::min(RangeBegin(home) + homes_per_range_, homes_);
  }
  uint64_t homes() const { return homes_; }

 private:
  // Relaxed, here and above: the lock orders those who change, and a reader that comes late comes
  // again.
  static void LowerTo(std::atomic<uint64_t>& floor, uint64_t expiry_ms) {
    if (expiry_ms < floor.load(std::memory_order_relaxed)) {
      floor.store(expiry_ms, std::memory_order_relaxed);
    }
  }

  const uint64_t homes_;
  const uint64_t homes_per_range_;
  std::vector<std::atomic<uint64_t>> home_floors_;
  std::vector<std::atomic<uint64_t>> range_floors_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_EXPIRY_FLOORS_H_
