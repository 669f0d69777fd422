#ifndef GANNET_CLIENT_ROUTING_ENDPOINT_H_
#define GANNET_CLIENT_ROUTING_ENDPOINT_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rdma/address.h"
#include "common/rdma/name_lookup.h"

namespace gannet {

// A server's address as a user writes it: "HOST:PORT", or "NAME@HOST:PORT" if the server must have
// the name NAME. Or a group, which is one server with several addresses:
// "cluster:HOST:PORT,HOST:PORT" lists members of it, in any order. One that answers is enough.
struct Endpoint {
  std::string text;                    // the whole endpoint
  std::string name;                    // empty: the user gave none
  std::vector<std::string> addresses;  // "HOST:PORT" each, still to be resolved; at least one
  bool group = false;
};

// Splits an endpoint. InvalidArgument: the name is not a valid one, or a group has no members. Does
// not check the addresses.
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

// Where a server can be reached.
struct ServerAddresses {
  std::vector<SocketAddress> all;
  bool group = false;                 // they are those of a group's members
  std::shared_ptr<NameLookup> names;  // that they were the addresses of; null: of none
};

// Returns all addresses of the server, at least one, in the order in which to try them; may block
// on DNS. InvalidArgument: an address is malformed. Unavailable: DNS does not know the host, or
// none of a group's.
absl::StatusOr<std::vector<SocketAddress>> ResolveEndpoint(const Endpoint& endpoint);
// Returns what looks the endpoint's names up again, whose addresses may have changed. Returns null
// if it has no names: an address is one for ever.
std::shared_ptr<NameLookup> NamesOf(const Endpoint& endpoint);

// Returns the name that clients use for a server without a name: the lowest of its IPv4 addresses,
// or if it has none, of its IPv6 addresses, with the port. So it does not matter how the address
// was written, nor in which order DNS answers. REQUIRES: at least one address.
std::string CanonicalAddress(std::span<const SocketAddress> addresses);

}  // namespace gannet

#endif  // GANNET_CLIENT_ROUTING_ENDPOINT_H_
