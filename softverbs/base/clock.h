#ifndef SOFTVERBS_BASE_CLOCK_H_
#define SOFTVERBS_BASE_CLOCK_H_

#include <time.h>

#include <cstdint>

namespace softverbs {

// CLOCK_MONOTONIC in nanoseconds.
inline int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_CLOCK_H_
