#ifndef SOFTVERBS_CM_BIND_H_
#define SOFTVERBS_CM_BIND_H_

#include "softverbs/cm/cm_address.h"
#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/port_name.h"

namespace softverbs::cm {

// Implements rdma_bind_addr: claims an address of this host. Returns 0 or an errno.
int Bind(CmId* id, const Address& wanted);

// Claims `wanted` as the id's local address; port 0 means any port. Returns 0 or an errno.
// REQUIRES: State::mutex is held.
int ClaimFor(CmId* id, PortUse use, Address wanted) SV_REQUIRES(state_mutex);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_BIND_H_
