#ifndef SOFTVERBS_BASE_GID_TABLE_H_
#define SOFTVERBS_BASE_GID_TABLE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace softverbs {

// The table of GIDs of each port, which are counted over all devices (devices.h). All functions are
// thread safe.
//
// 1. It has the addresses of the host's network interfaces, IPv4 ones in mapped form. Each
//    interface also has the link-local address that is made of its MAC address, as with a kernel's
//    table. Those that other hosts may reach come first, IPv4 before IPv6. Link-local ones and
//    those of interfaces without a link follow, and then those of loopback interfaces. 127.0.0.1 is
//    last, and is always there. With SOFTVERBS_NET, index 0 is its address of the port, because
//    programs take the first GID that suits them, and only this one is reached from other hosts.
//    Each of several ports has the addresses that belong to it (devices.h), and its own loopback
//    address last.
// 2. As with a kernel's table, an index keeps its meaning: an address that goes leaves a hole.
//    Holes are filled only when the table is full. So what comes later is behind 127.0.0.1.
// 3. The table is the process's own. Peers exchange GIDs and not indices.

constexpr int kGidTableSize = 256;

struct Gid {
  int index;
  ibv_gid gid;
  uint32_t interface;  // its number; 0 if there is none
};

// Returns what is at `index`, or nothing if that is a hole or out of range.
std::optional<Gid> GidAt(int port, int index);

// Returns the valid entries, in ascending order of their indices.
std::vector<Gid> ValidGids(int port);

// Returns the index of a GID in the table of the port that it belongs to, or nothing if it is not
// an address of this host. Looks at the interfaces again before it says that.
std::optional<int> FindGid(const ibv_gid& gid);

// Returns whether packets to this GID reach this host: it is in the table, or in 127.0.0.0/8. There
// is one exception: if SOFTVERBS_NET is in 127.0.0.0/8, each such address is a host of its own, so
// that tests have several hosts on one.
bool IsGidOfThisHost(const ibv_gid& gid);

// Returns whether packets to this GID stay on this host: IsGidOfThisHost, and not the address that
// SOFTVERBS_NET_SELF takes for another host's.
bool StaysOnThisHost(const ibv_gid& gid);

// Returns whether another host's GID can be reached from the GID at `source` of the port:
// SOFTVERBS_NET is set, and the source is the port's address there. Reports it if not.
bool IsReachable(int port, const ibv_gid& gid, int source);

// Returns 0 or an errno value: multicast does not leave the host, so with SOFTVERBS_NET it is
// refused, rather than reach only some of the members. Reports it if so.
int CheckMulticast();

// Returns the index of the port's loopback address: 127.0.0.1 for port 0.
int LoopbackGidIndex(int port);

// Looks at the interfaces again. Called where programs ask how large the table is, or for all of
// it.
void RefreshGids();

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_GID_TABLE_H_
