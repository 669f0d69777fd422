#include "common/rdma/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

// Where an IPv4 address stands in the 16 bytes of an IPv6 address.
constexpr size_t kV4At = 12;

absl::Status Malformed(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(text), "\" is no HOST:PORT: ", std::string(why),
                   "; write 10.0.0.1:7471, name:7471 or [fd00::1]:7471"));
}

absl::StatusOr<uint16_t> ParsePort(std::string_view text, std::string_view port) {
  uint16_t value = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  if (error != std::errc() || end != port.data() + port.size()) {
    return Malformed(text, "the port is a number from 0 to 65535");
  }
  return value;
}

bool IsLinkLocal(const sockaddr& address) {
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr& address) {
  if (address.sa_family == AF_INET) std::memcpy(&any_.v4, &address, sizeof(any_.v4));
  if (address.sa_family == AF_INET6) std::memcpy(&any_.v6, &address, sizeof(any_.v6));
}

uint16_t SocketAddress::port() const {
  return ntohs(family() == AF_INET6 ? any_.v6.sin6_port : any_.v4.sin_port);
}

void SocketAddress::set_port(uint16_t port) {
  (family() == AF_INET6 ? any_.v6.sin6_port : any_.v4.sin_port) = htons(port);
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) return ntohl(any_.v4.sin_addr.s_addr) >> 24 == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&any_.v6.sin6_addr);
}

std::string SocketAddress::HostString() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET) inet_ntop(AF_INET, &any_.v4.sin_addr, text, sizeof(text));
  if (family() == AF_INET6) inet_ntop(AF_INET6, &any_.v6.sin6_addr, text, sizeof(text));
  return text;
}

std::array<std::byte, 18> SocketAddress::NetworkBytes() const {
  std::array<std::byte, 18> bytes{};
  if (family() == AF_INET6) {
    std::memcpy(bytes.data(), &any_.v6.sin6_addr, sizeof(any_.v6.sin6_addr));
  } else {
    bytes[kV4At - 2] = bytes[kV4At - 1] = std::byte{0xff};
    std::memcpy(bytes.data() + kV4At, &any_.v4.sin_addr, sizeof(any_.v4.sin_addr));
  }
  const uint16_t port_bytes = htons(port());
  std::memcpy(bytes.data() + sizeof(in6_addr), &port_bytes, sizeof(port_bytes));
  return bytes;
}

SocketAddress SocketAddress::OfNetworkBytes(std::span<const std::byte, 18> bytes) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  std::memcpy(&v6.sin6_addr, bytes.data(), sizeof(v6.sin6_addr));
  std::memcpy(&v6.sin6_port, bytes.data() + sizeof(in6_addr), sizeof(v6.sin6_port));
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
    return SocketAddress(reinterpret_cast<const sockaddr&>(v6));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port;
  std::memcpy(&v4.sin_addr, bytes.data() + kV4At, sizeof(v4.sin_addr));
  return SocketAddress(reinterpret_cast<const sockaddr&>(v4));
}

std::string SocketAddress::ToString() const {
  if (family() == AF_INET6) return absl::StrCat("[", HostString(), "]:", port());
  return absl::StrCat(HostString(), ":", port());
}

absl::StatusOr<HostPort> ParseHostPort(std::string_view text, uint16_t default_port) {
  HostPort result{.port = default_port};
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return Malformed(text, "the bracket is not closed");
    result.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    if (!rest.empty() && !rest.starts_with(':')) {
      return Malformed(text, "after the bracket comes a colon and the port");
    }
  } else if (std::count(text.begin(), text.end(), ':') > 1) {
    result.host = text;  // a bare IPv6 address
  } else {
    const size_t colon = text.find(':');
    result.host = text.substr(0, colon);
    if (colon != std::string_view::npos) rest = text.substr(colon);
  }
  if (result.host.empty()) return Malformed(text, "there is no host");
  if (IsNumber(result.host)) return Malformed(text, "a number alone is a port, not a host");
  if (!rest.empty()) {
    GANNET_ASSIGN_OR_RETURN(result.port, ParsePort(text, rest.substr(1)));
  }
  return result;
}

absl::StatusOr<std::vector<SocketAddress>> ResolveAll(std::string_view text,
                                                      uint16_t default_port) {
  GANNET_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(text, default_port));
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(parsed.host.c_str(), nullptr, &hints, &list); error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot look up \"", parsed.host,
                     "\": ", error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    addresses.emplace_back(*entry->ai_addr).set_port(parsed.port);
  }
  if (addresses.empty()) {
    return absl::UnavailableError(absl::StrCat("\"", parsed.host, "\" has no IP address"));
  }
  return addresses;
}

absl::StatusOr<SocketAddress> Resolve(std::string_view text, uint16_t default_port) {
  GANNET_ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses,
                          ResolveAll(text, default_port));
  return addresses.front();
}

std::optional<SocketAddress> NumericAddress(std::string_view text, uint16_t default_port) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(text, default_port);
  in6_addr ignored;
  if (!parsed.ok() || (inet_pton(AF_INET, parsed->host.c_str(), &ignored) != 1 &&
                       inet_pton(AF_INET6, parsed->host.c_str(), &ignored) != 1)) {
    return std::nullopt;
  }
  const absl::StatusOr<SocketAddress> address = Resolve(text, default_port);
  return address.ok() ? std::optional(*address) : std::nullopt;
}

absl::StatusOr<SocketAddress> ResolveListen(std::string_view text, uint16_t default_port) {
  constexpr char kAny[] = "0.0.0.0";
  if (IsNumber(text)) {
    return Resolve(absl::StrCat(kAny, ":", std::string(text)), default_port);
  }
  if (text.starts_with(':') && IsNumber(text.substr(1))) {
    return Resolve(absl::StrCat(kAny, std::string(text)), default_port);
  }
  return Resolve(text, default_port);
}

absl::StatusOr<std::vector<SocketAddress>> LocalAddresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return LastErrnoStatus("cannot list this host's addresses");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<SocketAddress> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if ((family != AF_INET && family != AF_INET6) || IsLinkLocal(*entry->ifa_addr)) continue;
    addresses.emplace_back(*entry->ifa_addr);
  }
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const SocketAddress& address) { return !address.is_loopback(); });
  return addresses;
}

}  // namespace gannet
