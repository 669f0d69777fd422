#ifndef GANNET_TOOLS_KVLOAD_ENDPOINT_H_
#define GANNET_TOOLS_KVLOAD_ENDPOINT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gannet::kvload {

// A server that is reached through the kernel.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
};

// InvalidArgument unless it is HOST:PORT.
absl::StatusOr<Endpoint> EndpointOf(std::string_view server);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_ENDPOINT_H_
