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

// Fails what the queue pair has under way when its retries are over, unless its port is up or
// something was answered by then. REQUIRES: the queue pair's lock, its port is down.
void LimitWaitForPort(Qp& qp) SV_REQUIRES(qp.lock);

// Between processes of one host nothing is lost, and a living peer may take its time. Between hosts
// there may be no answer for ever. Then the requester waits `(retry_cnt + 1) * timeout` since the
// last progress, but at least kSilenceNsMin, and calls HandleSilence. A timer looks for progress
// eight times in that time. TCP resends what was lost, so nothing is sent again here.
inline constexpr int64_t kSilenceNsMin = 1'000'000'000;

// Bounds the life of the link's packets by this queue pair's wait for answers. REQUIRES: the lock,
// a link to another host. Called before packets are sent.
void LimitLife(Qp& qp) SV_REQUIRES(qp.lock);
// Starts the timer if requests are under way and it does not run. REQUIRES: the same.
void AwaitAnswers(Qp& qp) SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_TIMERS_H_
