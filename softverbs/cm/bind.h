#ifndef GANNET_SOFTVERBS_CM_BIND_H_
#define GANNET_SOFTVERBS_CM_BIND_H_

#include "softverbs/cm/address.h"
#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/port_name.h"

namespace softverbs::cm {

// rdma_bind_addr: claims an address of this host. Returns 0 or an errno.
int Bind(CmId* id, const Address& wanted);

// Claims `wanted` (a port of 0: any) as the id's local address. Returns 0 or an errno.
// REQUIRES: State::mutex is held.
int ClaimFor(CmId* id, PortUse use, Address wanted);

}  // namespace softverbs::cm

#endif  // GANNET_SOFTVERBS_CM_BIND_H_
