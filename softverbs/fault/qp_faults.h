#ifndef SOFTVERBS_FAULT_QP_FAULTS_H_
#define SOFTVERBS_FAULT_QP_FAULTS_H_

#include <cstdint>

#include "softverbs/fault/faults.h"
#include "softverbs/fault/nodes.h"

namespace softverbs::fault {

// The counts of a queue pair for the plan's decisions. Guarded by the queue pair's lock, except
// `ordinal` and `node`. A reset does not clear them, so that the queue pair does not meet the same
// faults again.
struct QpFaults {
  const uint32_t ordinal = NextOrdinal();
  const uint32_t node = nodes.present;  // of a simulation
  uint64_t requests = 0;                // posted while a plan was active
  uint64_t of_connection = 0;           // those since it was reset
  uint64_t completions = 0;
  uint64_t arrivals = 0;  // of requests
  uint64_t reads = 0;     // of READs
  uint64_t receives = 0;  // that messages asked for
};

}  // namespace softverbs::fault

#endif  // SOFTVERBS_FAULT_QP_FAULTS_H_
