#ifndef GANNET_COMMON_BASE_BOOT_TIME_H_
#define GANNET_COMMON_BASE_BOOT_TIME_H_

#include <compare>
#include <cstdint>

namespace gannet {

// A time by a machine's CLOCK_BOOTTIME, by which leases are measured. That clock never goes back,
// and goes on while the machine is suspended. A time by another clock, or a number, does not become
// one unless somebody asks by name: a lease that was measured by CLOCK_MONOTONIC would last while
// the machine is suspended, and longer than the others wait.
class BootTime {
 public:
  constexpr BootTime() = default;  // before all others
  static constexpr BootTime FromNs(int64_t ns) { return BootTime(ns); }
  static constexpr BootTime Never() { return BootTime(INT64_MAX); }

  constexpr int64_t ns() const { return ns_; }

  friend constexpr auto operator<=>(BootTime, BootTime) = default;
  friend constexpr BootTime operator+(BootTime time, int64_t ns) { return BootTime(time.ns_ + ns); }
  friend constexpr BootTime operator-(BootTime time, int64_t ns) { return BootTime(time.ns_ - ns); }
  // Returns how many nanoseconds are between them.
  friend constexpr int64_t operator-(BootTime end, BootTime begin) { return end.ns_ - begin.ns_; }

 private:
  explicit constexpr BootTime(int64_t ns) : ns_(ns) {}

  int64_t ns_ = 0;
};
static_assert(sizeof(BootTime) == sizeof(int64_t));

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_BOOT_TIME_H_
