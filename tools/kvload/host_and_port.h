#ifndef GANNET_TOOLS_KVLOAD_HOST_AND_PORT_H_
#define GANNET_TOOLS_KVLOAD_HOST_AND_PORT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gannet::kvload {

// The address of a server that is reached through the kernel's network stack.
struct HostAndPort {
  std::string host;
  uint16_t port = 0;
};

// Parses HOST:PORT. Returns InvalidArgument for anything else.
absl::StatusOr<HostAndPort> ParseHostAndPort(std::string_view server);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_HOST_AND_PORT_H_
