#ifndef SOFTVERBS_QP_TEAR_ANSWER_H_
#define SOFTVERBS_QP_TEAR_ANSWER_H_

#include "softverbs/qp/qp.h"

namespace softverbs {

// Makes sure that the bytes of `answer` from `sent` on can be sent. Returns false if they are not
// there yet; then it goes on by itself, and calls SendAnswers and Transmit at its end. REQUIRES:
// the queue pair's lock held; `answer` is the first of those owed.
bool PrepareTorn(Qp& qp, Answer& answer) SV_REQUIRES(qp.lock);

// Returns whether a torn READ is in progress. The requests behind it wait. REQUIRES: lock held.
bool IsTearing(const Qp& qp) SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_TEAR_ANSWER_H_
