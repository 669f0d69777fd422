#ifndef SOFTVERBS_QP_DATAGRAM_ROUTE_H_
#define SOFTVERBS_QP_DATAGRAM_ROUTE_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "softverbs/nic/link.h"

namespace softverbs {

// Where a posted datagram goes: what its address handle said when it was posted, and the processes
// to reach.
struct DatagramRoute {
  ibv_wc_status error = IBV_WC_SUCCESS;
  uint32_t qpn = 0;  // kMulticastQpn for a group
  uint32_t qkey = 0;
  ibv_gid source{};
  ibv_global_route route{};
  std::vector<std::shared_ptr<Link>> links;  // one; for a group, one per process in it
  size_t reached = 0;                        // how many of the links, so far
};

}  // namespace softverbs

#endif  // SOFTVERBS_QP_DATAGRAM_ROUTE_H_
