#ifndef GANNET_COMMON_RDMA_ADDRESS_H_
#define GANNET_COMMON_RDMA_ADDRESS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gannet {

// An IPv4 or IPv6 address with a port.
class SocketAddress {
 public:
  SocketAddress() = default;  // family AF_UNSPEC
  explicit SocketAddress(const sockaddr& address);

  const sockaddr* get() const { return &any_.base; }
  // librdmacm takes pointers to non-const addresses, but changes none.
  sockaddr* get() { return &any_.base; }
  int family() const { return any_.base.sa_family; }
  uint16_t port() const;
  void set_port(uint16_t port);
  bool is_loopback() const;
  // "10.0.0.1:7471", "[fd00::1]:7471".
  std::string ToString() const;
  // The address without port and brackets.
  std::string HostString() const;
  // Returns address and port in network order, so that all machines have the same bytes: 16 for
  // the address (an IPv4 address as ::ffff:10.0.0.1), and 2 for the port.
  std::array<std::byte, 18> NetworkBytes() const;
  static SocketAddress OfNetworkBytes(std::span<const std::byte, 18> bytes);

 private:
  union Any {
    sockaddr_storage storage;
    sockaddr base;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  Any any_{};
};

// Splits "HOST:PORT", "HOST", "[IPV6]:PORT", "[IPV6]" or a bare "IPV6". InvalidArgument says what
// is wrong with the text. A HOST that is only a number is refused: it is a port in the wrong place,
// and the C library would take 7471 for the address 0.0.29.47.
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
absl::StatusOr<HostPort> ParseHostPort(std::string_view text, uint16_t default_port);

// Parses the text and looks the name up; may block on DNS. Returns at least one address, in the
// order in which to try them. Unavailable: the name is not known.
absl::StatusOr<std::vector<SocketAddress>> ResolveAll(std::string_view text, uint16_t default_port);
// Returns the first address of ResolveAll.
absl::StatusOr<SocketAddress> Resolve(std::string_view text, uint16_t default_port);

// Returns the address if the host is written as one, and so needs no looking up; nullopt if not, or
// if the text is malformed.
std::optional<SocketAddress> NumericAddress(std::string_view text, uint16_t default_port);

// As Resolve, for an address to listen on: "PORT" or ":PORT" alone means that port of every IPv4
// address.
absl::StatusOr<SocketAddress> ResolveListen(std::string_view text, uint16_t default_port);

// Returns the addresses of this host's interfaces that are up, loopback last, without link-local
// ones.
absl::StatusOr<std::vector<SocketAddress>> LocalAddresses();

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_ADDRESS_H_
