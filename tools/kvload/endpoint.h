#ifndef GANNET_TOOLS_KVLOAD_ENDPOINT_H_
#define GANNET_TOOLS_KVLOAD_ENDPOINT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gannet::kvload {

// The address of a server that is reached through the kernel's network stack.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
};

// Parses HOST:PORT. Returns InvalidArgument for anything else.
absl::StatusOr<Endpoint> EndpointOf(std::string_view server);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_ENDPOINT_H_
