#ifndef SOFTVERBS_CM_REMOTE_H_
#define SOFTVERBS_CM_REMOTE_H_

#include <optional>

#include "softverbs/cm/cm_address.h"

namespace softverbs::cm {

// What rdma_cm needs to reach other hosts (SOFTVERBS_NET). A connection of another host is accepted
// by any process of this host's user. It hands the descriptor to the listener, through the UNIX
// socket that connections of this host come through.

// Returns the address of SOFTVERBS_NET with port 0 if `destination` can be reached from it, and is
// of another host. Otherwise returns nothing.
std::optional<Address> SourceForHost(const Address& destination);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_REMOTE_H_
