#ifndef SOFTVERBS_BASE_NET_CONFIG_H_
#define SOFTVERBS_BASE_NET_CONFIG_H_

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace softverbs {

// What SOFTVERBS_NET=ADDRESS[,ADDRESS...][:PORT] says: the addresses at which processes of other
// hosts reach this one, one for each device. The same port is used at all hosts.
struct NetConfig {
  static constexpr uint16_t kDefaultPort = 4791;

  std::vector<ibv_gid> gids;  // by device; all are IPv4 or all are IPv6, none is there twice
  uint16_t port = kDefaultPort;

  const ibv_gid& gid() const { return gids.front(); }
  bool Has(const ibv_gid& gid) const;
  // Returns the own address that is most like this one, as in one subnet.
  const ibv_gid& Nearest(const ibv_gid& gid) const;
};

// Parses "10.0.0.1", "10.0.0.1:4791", "fd00::1", "[fd00::1]:4791" or a list of addresses, whose
// last one may have the port. Returns nothing if it is none of these, or has no addresses of one
// host (a wildcard, a group, a link-local address).
std::optional<NetConfig> ParseNet(std::string_view text);

// Parses an IPv4 or IPv6 address without a port. Returns nothing if it is none, or no address of
// one host.
std::optional<ibv_gid> ParseHostAddress(const std::string& text);

// Returns what SOFTVERBS_NET says, or null if it is not set: then this process reaches only its own
// host. A wrong value ends the process with status 2.
const NetConfig* Net();

// Returns whether SOFTVERBS_NET_SELF is 1: this process reaches the address of SOFTVERBS_NET, its
// own, by TCP, too. So tests whose two ends are in one process run on the links between hosts.
bool NetReachesSelf();

// Returns whether a GID is the form of an address that a socket can be bound to or connect to.
bool IsSocketAddress(const ibv_gid& gid);

// Writes the socket address of a GID and a port, and returns its size.
socklen_t ToSocketAddress(const ibv_gid& gid, uint16_t port, sockaddr_storage* address);

// Returns the GID of a socket's peer, or of the socket itself, or nothing if it has none.
std::optional<ibv_gid> PeerGid(int socket);
std::optional<ibv_gid> OwnGid(int socket);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_NET_CONFIG_H_
