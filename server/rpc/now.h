#ifndef GANNET_SERVER_RPC_NOW_H_
#define GANNET_SERVER_RPC_NOW_H_

#include <time.h>

#include <atomic>
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
// virtual machine), so no item expires early or late. In a group a backup's follows that of its
// primary, and goes on from there when the backup is primary itself.
//
// Thread safe.
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
    // Relaxed: both are times, and say nothing of other memory.
    const uint64_t followed_ms = followed_ms_.load(std::memory_order_relaxed);
    if (followed_ms != 0) return {now_ns, followed_ms};
    const uint64_t at_start_ms = at_start_ms_.load(std::memory_order_relaxed);
    return {now_ns, at_start_ms + static_cast<uint64_t>((now_ns - started_ns_) / kNsPerMs)};
  }

  uint64_t WallMs() const { return Read().wall_ms; }

  // From now on the clock stands still at this time.
  void Follow(uint64_t ms) { followed_ms_.store(ms, std::memory_order_relaxed); }
  // From now on the clock goes on from this time.
  void GoOnFrom(uint64_t ms) {
    const auto since_ms = (source_.monotonic_ns() - started_ns_) / kNsPerMs;
    at_start_ms_.store(ms - static_cast<uint64_t>(since_ms), std::memory_order_relaxed);
    followed_ms_.store(0, std::memory_order_relaxed);
  }

 private:
  explicit ServerClock(const Source& source)
      : source_(source), started_ns_(source.monotonic_ns()), at_start_ms_(source.wall_ms()) {}

  const Source source_;
  const int64_t started_ns_;
  std::atomic<uint64_t> at_start_ms_;     // the time when it was started
  std::atomic<uint64_t> followed_ms_{0};  // 0: it goes on by itself
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_NOW_H_
