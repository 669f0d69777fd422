#ifndef SOFTVERBS_CM_SERVICE_H_
#define SOFTVERBS_CM_SERVICE_H_

#include <rdma/rdma_cma.h>

namespace softverbs::cm {

class CmId;

// Implements rdma_accept of a datagram id. Returns 0 or an errno. REQUIRES: State::mutex is not
// held.
int AcceptService(CmId* id, const rdma_conn_param* param);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_SERVICE_H_
