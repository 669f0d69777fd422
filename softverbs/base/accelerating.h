#ifndef SOFTVERBS_BASE_ACCELERATING_H_
#define SOFTVERBS_BASE_ACCELERATING_H_

#include <atomic>

namespace softverbs {

namespace internal {
extern constinit std::atomic<bool> accelerating;
}

// Returns whether initiators execute requests on their targets' memory themselves
// (qp/accelerator.h). False with SOFTVERBS_ACCELERATE=0, and while a fault plan is active. Relaxed:
// an operation that is under way while this changes may still be executed the old way.
inline bool Accelerating() { return internal::accelerating.load(std::memory_order_relaxed); }

// Turns acceleration off, or on again unless SOFTVERBS_ACCELERATE=0.
void SetAccelerating(bool on);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_ACCELERATING_H_
