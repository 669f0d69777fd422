#include "tools/kvload/host_and_port.h"

#include <charconv>

#include "absl/strings/str_cat.h"

namespace gannet::kvload {

absl::StatusOr<HostAndPort> ParseHostAndPort(std::string_view server) {
  const size_t colon = server.rfind(':');
  if (colon != std::string_view::npos && colon > 0) {
    HostAndPort endpoint{.host = std::string(server.substr(0, colon))};
    const char* end = server.data() + server.size();
    const auto parsed = std::from_chars(server.data() + colon + 1, end, endpoint.port);
    if (parsed.ec == std::errc() && parsed.ptr == end && endpoint.port > 0) return endpoint;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--server=", std::string(server), ": must be HOST:PORT"));
}

}  // namespace gannet::kvload
