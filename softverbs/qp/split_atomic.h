#ifndef SOFTVERBS_QP_SPLIT_ATOMIC_H_
#define SOFTVERBS_QP_SPLIT_ATOMIC_H_

#include "softverbs/qp/qp.h"

namespace softverbs {

// Atomics where there are several devices (nic/atomic_units.h). The answer waits for the word to be
// written, and what follows on the same queue pair waits for the answer.

// Begins the atomic, and fills in its answer. Returns false if the key does not allow it. REQUIRES:
// lock held.
bool BeginSplitAtomic(Qp& qp, const PacketHeader& request, Answer* answer) SV_REQUIRES(qp.lock);

// Returns whether an atomic of this queue pair is under way. REQUIRES: lock held.
bool IsSplitting(const Qp& qp) SV_REQUIRES(qp.lock);

// Ends it now: nothing may write through a queue pair that has left its connection. REQUIRES: lock
// held.
void EndSplitAtomics(Qp& qp) SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_SPLIT_ATOMIC_H_
