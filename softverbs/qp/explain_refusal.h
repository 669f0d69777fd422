#ifndef SOFTVERBS_QP_EXPLAIN_REFUSAL_H_
#define SOFTVERBS_QP_EXPLAIN_REFUSAL_H_

#include "softverbs/nic/packet.h"
#include "softverbs/qp/qp.h"

namespace softverbs {

// With SOFTVERBS_VERBOSE, prints why a peer's READ, WRITE or atomic may not be executed: which
// queue pair, key, range and right. REQUIRES: it was refused with a remote access error.
void ExplainRefusal(const Qp& qp, const PacketHeader& request) SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_EXPLAIN_REFUSAL_H_
