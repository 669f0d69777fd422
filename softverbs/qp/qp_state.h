#ifndef SOFTVERBS_QP_QP_STATE_H_
#define SOFTVERBS_QP_QP_STATE_H_

#include <infiniband/verbs.h>

#include "softverbs/qp/qp.h"

namespace softverbs {

// Implements ibv_modify_qp. Returns 0 or an errno value. Checks the mask of attributes against the
// transition, as IBTA and the kernel do. EHOSTUNREACH: the destination GID is of a host that is not
// reached.
int ModifyQp(Qp& qp, const ibv_qp_attr& attr, int mask);

// Returns the link to the process that has the queue pair `qpn` on the host with this GID. It may
// have to be made. REQUIRES: no lock is held.
std::shared_ptr<Link> LinkTo(Nic& nic, int device, const ibv_gid& host, uint32_t qpn);

void QueryQp(Qp& qp, ibv_qp_attr* attr, ibv_qp_init_attr* init_attr);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_QP_STATE_H_
