#ifndef GANNET_COMMON_BASE_CLOCK_H_
#define GANNET_COMMON_BASE_CLOCK_H_

#include <time.h>

#include <cstdint>

namespace gannet {

// State machines below main() take the time as an argument, so that a simulation can run them in
// virtual time. Only main loops and the synchronous wrappers read these clocks.

inline constexpr int64_t kNsPerUs = 1'000;
inline constexpr int64_t kNsPerMs = 1'000'000;
inline constexpr int64_t kNsPerSecond = 1'000'000'000;

// Nanoseconds of CLOCK_MONOTONIC. For deadlines, timeouts and latencies.
inline int64_t MonotonicNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kNsPerSecond + t.tv_nsec;
}

// Nanoseconds since the Unix epoch.
inline int64_t WallNs() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * kNsPerSecond + t.tv_nsec;
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_CLOCK_H_
