#ifndef SOFTVERBS_BASE_LINK_LAYER_H_
#define SOFTVERBS_BASE_LINK_LAYER_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

namespace softverbs {

// The port is an Ethernet port, where only GIDs lead to a destination. With
// SOFTVERBS_LINK_LAYER=infiniband it is one of InfiniBand, for programs that need LIDs: a LID leads
// to a host, too. The LID of a host is the last two bytes of its address in SOFTVERBS_NET, or 1
// without it. So all hosts must share the rest of their addresses, as in one subnet. Any other
// value of the variable than ethernet or infiniband ends the process with status 2, as does an
// address without a LID (they are 1 to 0xbfff).
bool IsInfiniBand();

// Returns this port's LID, or 0 on Ethernet.
uint16_t OwnLid();

// Returns the LID of the host whose address in SOFTVERBS_NET has this GID. Returns 0 on Ethernet.
uint16_t LidOf(const ibv_gid& gid);

// Returns a path's route. If a path of an InfiniBand port has only a LID, this is the route to the
// host's GID. Returns nothing if the path leads nowhere: it has no GID on Ethernet, or no LID
// either.
std::optional<ibv_global_route> RouteOf(const ibv_ah_attr& path);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_LINK_LAYER_H_
