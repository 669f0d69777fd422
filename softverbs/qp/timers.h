#ifndef SOFTVERBS_QP_TIMERS_H_
#define SOFTVERBS_QP_TIMERS_H_

#include <cstdint>

#include "softverbs/qp/qp.h"

namespace softverbs {

// Returns the time of an RNR timer code (IBTA table 45, 0..31): 655.36 ms for 0, 0.01 ms for 1, ...
int64_t RnrTimerNs(uint32_t code);

// Returns the local acknowledgement timeout, 4.096 us * 2^code.
int64_t AckTimeoutNs(uint32_t code);

// Lets the requester go on after `wait_ns`, unless it backs off again or is reset before. REQUIRES:
// the queue pair's lock, requester.backing_off.
void ResumeAfter(Qp& qp, int64_t wait_ns) SV_REQUIRES(qp.lock);

// Holds the request at queue.next back for `wait_ns` (a fault), unless it is held back already.
// REQUIRES: the queue pair's lock.
void HoldBack(Qp& qp, int64_t wait_ns) SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_TIMERS_H_
