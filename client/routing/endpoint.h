#ifndef GANNET_CLIENT_ROUTING_ENDPOINT_H_
#define GANNET_CLIENT_ROUTING_ENDPOINT_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/rdma/address.h"

namespace gannet {

// A server's address as a user writes it: "HOST:PORT", or "NAME@HOST:PORT" if the server must have
// the name NAME.
struct Endpoint {
  std::string text;     // the whole endpoint
  std::string name;     // empty: the user gave none
  std::string address;  // "HOST:PORT", still to be resolved
};

// Splits an endpoint. InvalidArgument: the name is not a valid one. Does not check the address.
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

// Returns the name that clients use for a server without a name: the lowest of its IPv4 addresses,
// or if it has none, of its IPv6 addresses, with the port. So it does not matter how the address
// was written, nor in which order DNS answers. REQUIRES: at least one address.
std::string CanonicalAddress(std::span<const SocketAddress> addresses);

}  // namespace gannet

#endif  // GANNET_CLIENT_ROUTING_ENDPOINT_H_
