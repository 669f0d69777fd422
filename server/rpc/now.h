#ifndef GANNET_SERVER_RPC_NOW_H_
#define GANNET_SERVER_RPC_NOW_H_

#include <time.h>

#include <cstdint>

#include "common/base/clock.h"

namespace gannet {

// The time of one Poll. The main loop or a simulation provides it.
struct Now {
  int64_t monotonic_ns = 0;
  uint64_t wall_ms = 0;  // the server's clock
};

// Nanoseconds of CLOCK_BOOTTIME, which goes on while the machine is suspended. Clients rely on
// that: their clocks go on too (common/base/clock.h has the clock for everything else).
inline int64_t ServerNs() {
  timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec * kNsPerSecond + t.tv_nsec;
}

// The server's clock, by which items expire: the wall clock when it was started, plus the time
// since. It does not jump if somebody steps the wall clock (ntpd, an operator, a migrated
// virtual machine), so no item expires early or late. Immutable after Start, so any thread may use
// it.
class ServerClock {
 public:
  // The functions that return the times. A test provides its own.
  struct Source {
    uint64_t (*wall_ms)() = gannet::WallMs;
    int64_t (*monotonic_ns)() = ServerNs;
  };

  static ServerClock Start() { return Start(Source()); }
  static ServerClock Start(const Source& source) { return ServerClock(source); }

  // Call it only in main loops: everybody else gets a Now. The store reads WallMs again for an item
  // that is about to expire.
  Now Read() const {
    const int64_t now_ns = source_.monotonic_ns();
    return {now_ns, wall_ms_ + static_cast<uint64_t>((now_ns - started_ns_) / kNsPerMs)};
  }

  uint64_t WallMs() const { return Read().wall_ms; }

 private:
  explicit ServerClock(const Source& source)
      : source_(source), wall_ms_(source.wall_ms()), started_ns_(source.monotonic_ns()) {}

  const Source source_;
  const uint64_t wall_ms_;
  const int64_t started_ns_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_NOW_H_
