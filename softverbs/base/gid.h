#ifndef SOFTVERBS_BASE_GID_H_
#define SOFTVERBS_BASE_GID_H_

#include <infiniband/verbs.h>
#include <netinet/in.h>

#include <cstdint>

namespace softverbs {

// Returns the node GUID, in host byte order. It is made of an identity of this host (its boot and
// network namespace) that all its processes agree on.
uint64_t HostGuid();

// Returns an IPv4 address as a GID, ::ffff:a.b.c.d.
ibv_gid MappedIpv4(in_addr address);

// Returns whether it is a mapped IPv4 address, which RoCE v2 sends by IPv4.
bool IsMappedIpv4(const ibv_gid& gid);

// Returns whether it is of 127.0.0.0/8.
bool IsLoopback(const ibv_gid& gid);

// Returns whether it is an IPv6 multicast address or a mapped IPv4 one.
bool IsMulticastGid(const ibv_gid& gid);

bool Equal(const ibv_gid& gid, const ibv_gid& other);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_GID_H_
