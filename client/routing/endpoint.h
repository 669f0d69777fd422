#ifndef GANNET_CLIENT_ROUTING_ENDPOINT_H_
#define GANNET_CLIENT_ROUTING_ENDPOINT_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/rdma/address.h"

namespace gannet {

// Where a server is, as a user writes it: "HOST:PORT", or "NAME@HOST:PORT" if the name that the
// server has must be NAME.
struct Endpoint {
  std::string text;     // the whole of it
  std::string name;     // empty: the user gave none
  std::string address;  // "HOST:PORT", still to be resolved
};

// InvalidArgument: the name is none. The address is not looked at.
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

// What a server without a name is called: the lowest of its IPv4 addresses, or of its IPv6
// addresses if it has no other, with the port. So neither how the address was written nor the order
// in which DNS answers matters. REQUIRES: at least one address.
std::string CanonicalAddress(std::span<const SocketAddress> addresses);

}  // namespace gannet

#endif  // GANNET_CLIENT_ROUTING_ENDPOINT_H_
