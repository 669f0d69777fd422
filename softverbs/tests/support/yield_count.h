#ifndef SOFTVERBS_TESTS_SUPPORT_YIELD_COUNT_H_
#define SOFTVERBS_TESTS_SUPPORT_YIELD_COUNT_H_

#include <cstdint>

namespace softverbs {

// Returns how often this thread has called sched_yield, softverbs included. A program that uses
// this has a sched_yield of its own, which counts.
uint64_t YieldsOfThisThread();

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_SUPPORT_YIELD_COUNT_H_
