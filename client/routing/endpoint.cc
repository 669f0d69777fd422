#include "client/routing/endpoint.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/protocol/connect.h"

namespace gannet {
namespace {

// Orders IPv4 before IPv6, then by the bytes of the address in network order.
bool IsLower(const SocketAddress& a, const SocketAddress& b) {
  if (a.family() != b.family()) return a.family() == AF_INET;
  if (a.family() == AF_INET) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in*>(a.get())->sin_addr,
                       &reinterpret_cast<const sockaddr_in*>(b.get())->sin_addr,
                       sizeof(in_addr)) < 0;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a.get())->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b.get())->sin6_addr,
                     sizeof(in6_addr)) < 0;
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos) return Endpoint{std::string(text), "", std::string(text)};
  const std::string_view name = text.substr(0, at);
  if (!IsServerName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\": before the @ comes the server's name, 1 to ",
                     kServerNameBytesMax, " letters, digits or ._:-[]"));
  }
  return Endpoint{std::string(text), std::string(name), std::string(text.substr(at + 1))};
}

std::string CanonicalAddress(std::span<const SocketAddress> addresses) {
  return std::min_element(addresses.begin(), addresses.end(), IsLower)->ToString();
}

}  // namespace gannet
