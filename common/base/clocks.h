#ifndef GANNET_COMMON_BASE_CLOCKS_H_
#define GANNET_COMMON_BASE_CLOCKS_H_

#include <time.h>

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "common/base/boot_time.h"
#include "common/base/clock.h"

namespace gannet {

// The clocks of a machine, as types. A part that needs the time gets them from whoever makes it: in
// the end from a program, or from a simulation. There is no default that asks the machine, so a
// part that is handed no clock does not compile, instead of leaving the simulation unseen.

// A time by a machine's wall clock. It jumps when somebody sets the clock. So it says whether a
// request to connect is fresh, and where versions and a server's own clock begin. It never says
// whether an item has expired: ServerClock (server/rpc/now.h) does. Therefore neither becomes the
// other, or a number, unless somebody asks by name.
class WallTime {
 public:
  constexpr WallTime() = default;
  static constexpr WallTime FromNs(int64_t ns) { return WallTime(ns); }

  // Since the Unix epoch: for bytes on the wire, for versions, and for text.
  constexpr uint64_t ms() const { return static_cast<uint64_t>(ns_ / kNsPerMs); }
  constexpr int64_t ns() const { return ns_; }

  friend constexpr auto operator<=>(WallTime, WallTime) = default;

 private:
  explicit constexpr WallTime(int64_t ns) : ns_(ns) {}

  int64_t ns_ = 0;
};
static_assert(sizeof(WallTime) == sizeof(int64_t));

// Reads a wall clock. Thread safe if the function is, as the machine's is.
class WallClock {
 public:
  using Reader = WallTime (*)();

  template <std::convertible_to<Reader> T>
  constexpr WallClock(T reader) : read_(reader) {}  // NOLINT(google-explicit-constructor)
  WallClock(std::nullptr_t) = delete;               // NOLINT(google-explicit-constructor)

  WallTime Now() const { return read_(); }

 private:
  Reader read_;
};

// Reads CLOCK_BOOTTIME. Leases and what clients are told of a server's clock are measured by it.
// Thread safe if the function is, as the machine's is.
class BootClock {
 public:
  template <std::invocable T>
  requires std::same_as<std::invoke_result_t<T>, BootTime> BootClock(T reader)
      : read_(std::move(reader)) {}  // NOLINT(google-explicit-constructor)

  BootTime Now() const { return read_(); }

 private:
  std::function<BootTime()> read_;
};

struct Clocks {
  WallClock wall;
  BootClock boot;
};

inline int64_t BootNs() {
  timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec * kNsPerSecond + t.tv_nsec;
}

// The machine's clocks, for programs and tests. Whoever they make is handed these.
inline WallTime MachineWallTime() { return WallTime::FromNs(WallNs()); }
inline BootTime MachineBootTime() { return BootTime::FromNs(BootNs()); }
inline Clocks MachineClocks() { return {.wall = MachineWallTime, .boot = MachineBootTime}; }

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_CLOCKS_H_
