#ifndef SOFTVERBS_QP_TIMERS_H_
#define SOFTVERBS_QP_TIMERS_H_

#include <cstdint>

#include "softverbs/qp/qp.h"

namespace softverbs {

// How long an RNR timer code (IBTA table 45, 0..31) means: 655.36 ms for 0, 0.01 ms for 1, ...
int64_t RnrTimerNs(uint32_t code);

// The local acknowledgement timeout, 4.096 us * 2^code.
int64_t AckTimeoutNs(uint32_t code);

// Lets the requester go on after `wait_ns`, unless it backs off anew or is reset before. REQUIRES:
// the queue pair's lock, requester.backing_off.
void ResumeAfter(Qp& qp, int64_t wait_ns);

// Keeps the request at queue.next back for `wait_ns`, a fault, if that is not being done already.
// REQUIRES: the queue pair's lock.
void HoldBack(Qp& qp, int64_t wait_ns);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_TIMERS_H_
