#ifndef SOFTVERBS_QP_TRANSITIONS_H_
#define SOFTVERBS_QP_TRANSITIONS_H_

#include <infiniband/verbs.h>

namespace softverbs {

// Returns whether a queue pair of this type may go from one state to another with the attributes of
// `mask` (IBTA 11.2.5.2): all that are required, and none that are not allowed.
bool IsLegalTransition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_TRANSITIONS_H_
