#ifndef GANNET_COMMON_RDMA_CM_PATH_H_
#define GANNET_COMMON_RDMA_CM_PATH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/rdma/address.h"

namespace gannet {

// Where a connection to an address would leave this machine, as rdma_cm chooses it.
struct CmPath {
  std::string device;
  uint32_t port = 0;     // of the device
  std::string gid;       // an IPv6 address; empty: the network has none (iWARP)
  int gid_index = -1;    // in the port's table; -1: the table does not have it
  std::string gid_type;  // as the kernel calls it: "RoCE v2"; empty: not known
};

// Asks rdma_cm for the path, and makes no connection. Unavailable or FailedPrecondition: there is
// no route, or none over an RDMA device.
absl::StatusOr<CmPath> ResolvePath(const SocketAddress& to, int timeout_ms);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_CM_PATH_H_
