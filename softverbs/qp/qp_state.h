#ifndef SOFTVERBS_QP_QP_STATE_H_
#define SOFTVERBS_QP_QP_STATE_H_

#include <infiniband/verbs.h>

#include "softverbs/qp/qp.h"

namespace softverbs {

// Implements ibv_modify_qp. Returns 0 or an errno value. Checks the mask of attributes against the
// transition, as IBTA and the kernel do. EHOSTUNREACH: the destination GID is not of this host.
int ModifyQp(Qp& qp, const ibv_qp_attr& attr, int mask);

void QueryQp(Qp& qp, ibv_qp_attr* attr, ibv_qp_init_attr* init_attr);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_QP_STATE_H_
