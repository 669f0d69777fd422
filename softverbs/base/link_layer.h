#ifndef SOFTVERBS_BASE_LINK_LAYER_H_
#define SOFTVERBS_BASE_LINK_LAYER_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

namespace softverbs {

// The port is an Ethernet port, where only GIDs lead to a destination. With
// SOFTVERBS_LINK_LAYER=infiniband it is one of InfiniBand, for programs that need LIDs: a LID leads
// to a host, too. The LID of a host is the last two bytes of its address in SOFTVERBS_NET, or 1
// without it. So all hosts must share the rest of their addresses, as in one subnet. Of several
// ports (devices.h), port K has the LID 1 + K. Any other value of the variable than ethernet or
// infiniband ends the process with status 2, as does an address without a LID (they are 1 to
// 0xbfff).
bool IsInfiniBand();

// Returns whether queue pairs may have an alternate path (qp/path.h): devices have two ports of
// InfiniBand. RoCE has no alternate paths.
bool HasPathMigration();

// Returns the LID of a port of this process, or 0 on Ethernet.
uint16_t LidOfPort(int port);

// Returns the LID of the host whose address in SOFTVERBS_NET has this GID, and without
// SOFTVERBS_NET that of the GID's port. Returns 0 on Ethernet.
uint16_t LidOf(const ibv_gid& gid);

// Returns the route of a path of a device. If a path of an InfiniBand port has only a LID, this is
// the route to the GID of the host, or of the port. Returns nothing if the path leads nowhere: it
// has no GID on Ethernet, or no LID either.
std::optional<ibv_global_route> RouteOf(int device, const ibv_ah_attr& path);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_LINK_LAYER_H_
