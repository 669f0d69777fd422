#ifndef SOFTVERBS_FAULT_STRICT_H_
#define SOFTVERBS_FAULT_STRICT_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "softverbs/base/log.h"
#include "softverbs/fault/faults.h"

namespace softverbs::fault {

// Strict mode (`strict=1`): what an application may not rely on does not happen to work. Sinks are
// poisoned when a READ or atomic is posted, requests are executed later, and so sources copied
// late; misuse is reported.

constexpr uint8_t kPoison = 0xdb;

inline bool HasAtomics() {
  const Plan* plan = Active();
  return plan == nullptr || plan->atomics != Atomics::kNone;
}
inline ibv_atomic_cap AtomicCapability() {
  const Plan* plan = Active();
  if (plan == nullptr || plan->atomics == Atomics::kGlobal) return IBV_ATOMIC_GLOB;
  return plan->atomics == Atomics::kNic ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
}

// Reports what an application must not do: on stderr in strict mode or with SOFTVERBS_VERBOSE.
// Counted in any case.
void Misuse(const char* format, ...) __attribute__((format(printf, 1, 2)));
uint64_t MisuseCount();

}  // namespace softverbs::fault

#endif  // SOFTVERBS_FAULT_STRICT_H_
