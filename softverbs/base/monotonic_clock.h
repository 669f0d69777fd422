#ifndef SOFTVERBS_BASE_MONOTONIC_CLOCK_H_
#define SOFTVERBS_BASE_MONOTONIC_CLOCK_H_

#include <time.h>

#include <atomic>
#include <cstdint>

namespace softverbs {

// The time of a simulation, or kRealTime if there is none. Only the simulation writes it.
constexpr int64_t kRealTime = -1;
inline constinit std::atomic<int64_t> simulated_ns{kRealTime};

// Returns CLOCK_MONOTONIC in nanoseconds, or the simulation's clock. Relaxed: a simulation has one
// thread.
inline int64_t MonotonicNs() {
  const int64_t simulated = simulated_ns.load(std::memory_order_relaxed);
  if (simulated != kRealTime) [[unlikely]]
    return simulated;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_MONOTONIC_CLOCK_H_
