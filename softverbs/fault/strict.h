#ifndef SOFTVERBS_FAULT_STRICT_H_
#define SOFTVERBS_FAULT_STRICT_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "softverbs/base/devices.h"
#include "softverbs/base/log.h"
#include "softverbs/fault/faults.h"

namespace softverbs::fault {

// Strict mode (`strict=1`): the device does not let an application get away with what it may not
// rely on. Sinks are poisoned when a READ or atomic is posted. Requests are executed later, so
// their sources are copied late. Misuse is reported.

constexpr uint8_t kPoison = 0xdb;

inline bool HasAtomics() {
  const Plan* plan = Active();
  return plan == nullptr || plan->atomics != Atomics::kNone;
}
inline ibv_atomic_cap AtomicCapability() {
  const Plan* plan = Active();
  if (!HasAtomics()) return IBV_ATOMIC_NONE;
  // Atomics of several devices are not atomic with each other (nic/atomic_units.h).
  const bool by_nic = DeviceCount() > 1 || (plan != nullptr && plan->atomics == Atomics::kNic);
  return by_nic ? IBV_ATOMIC_HCA : IBV_ATOMIC_GLOB;
}

// Reports something that an application must not do, on stderr in strict mode or with
// SOFTVERBS_VERBOSE. Counts it in any case.
void Misuse(const char* format, ...) __attribute__((format(printf, 1, 2)));
uint64_t MisuseCount();

}  // namespace softverbs::fault

#endif  // SOFTVERBS_FAULT_STRICT_H_
