#ifndef SOFTVERBS_BASE_GID_H_
#define SOFTVERBS_BASE_GID_H_

#include <infiniband/verbs.h>

#include <cstdint>

namespace softverbs {

// The port's GIDs: 0 is link local, made of an identity of this host (its boot and network
// namespace) that all its processes agree on; 1 is the IPv4 loopback address.
constexpr int kGidCount = 2;
ibv_gid GidAt(int index);

// Returns the node GUID behind GID 0, in host byte order.
uint64_t HostGuid();

// Returns whether it is a mapped IPv4 address, ::ffff:a.b.c.d, which RoCE v2 sends by IPv4.
bool IsMappedIpv4(const ibv_gid& gid);

// Returns whether it is an IPv6 multicast address or a mapped IPv4 one.
bool IsMulticastGid(const ibv_gid& gid);

// Returns whether it is one of the port's GIDs or an address of a local network interface.
bool IsGidOfThisHost(const ibv_gid& gid);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_GID_H_
