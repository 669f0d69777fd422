#include "softverbs/base/net_config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "softverbs/base/gid.h"

namespace softverbs {
namespace {

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

std::optional<ibv_gid> ParseAddress(const std::string& text) {
  ibv_gid gid;
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return MappedIpv4(v4);
  if (inet_pton(AF_INET6, text.c_str(), gid.raw) == 1) return gid;
  return std::nullopt;
}

// Separates an address from the port behind it. An IPv6 address with a port stands in brackets.
bool Split(std::string_view text, std::string* address, std::string_view* port) {
  *port = {};
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    *address = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    if (text.empty()) return true;
    *port = text.substr(1);
    return text.front() == ':' && !port->empty();
  }
  const size_t colon = text.find(':');
  const bool has_port = colon != std::string_view::npos && colon == text.rfind(':');
  *address = has_port ? text.substr(0, colon) : text;
  if (has_port) *port = text.substr(colon + 1);
  return !has_port || !port->empty();
}

bool IsOfOneHost(const ibv_gid& gid) {
  if (IsMulticastGid(gid)) return false;
  const bool link_local = gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
  const bool wildcard = Equal(gid, ibv_gid{}) || Equal(gid, MappedIpv4(in_addr{}));
  return !link_local && !wildcard;
}

}  // namespace

std::optional<ibv_gid> ParseHostAddress(const std::string& text) {
  const auto gid = ParseAddress(text);
  return gid && IsOfOneHost(*gid) ? gid : std::nullopt;
}

bool NetConfig::Has(const ibv_gid& gid) const {
  return std::ranges::any_of(gids, [&](const ibv_gid& own) { return Equal(own, gid); });
}

const ibv_gid& NetConfig::Nearest(const ibv_gid& gid) const {
  const auto same_bytes = [&](const ibv_gid& own) {
    return std::ranges::mismatch(own.raw, gid.raw).in1 - own.raw;
  };
  return *std::ranges::max_element(gids, {}, same_bytes);
}

std::optional<NetConfig> ParseNet(std::string_view text) {
  NetConfig config;
  std::string_view port;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    std::string address;
    // Only the last one may have a port.
    if (!Split(text.substr(0, comma), &address, &port) || (more && !port.empty())) {
      return std::nullopt;
    }
    const auto gid = ParseHostAddress(address);
    if (!gid || config.Has(*gid)) return std::nullopt;
    config.gids.push_back(*gid);
    if (IsMappedIpv4(*gid) != IsMappedIpv4(config.gid())) return std::nullopt;
    if (more) text.remove_prefix(comma + 1);
  }
  if (port.empty()) return config;
  const auto number = ParsePort(port);
  if (!number) return std::nullopt;
  config.port = *number;
  return config;
}

const NetConfig* Net() {
  static const std::optional<NetConfig> config = []() -> std::optional<NetConfig> {
    const char* text = getenv("SOFTVERBS_NET");
    if (text == nullptr || *text == '\0') return std::nullopt;
    if (const auto parsed = ParseNet(text)) return parsed;
    fprintf(stderr,
            "softverbs[%d]: SOFTVERBS_NET is ADDRESS[:PORT], an address of this host that others "
            "reach, such as 10.0.0.1, 10.0.0.1:4791 or [fd00::1]:4791; of several devices "
            "10.0.0.1,10.0.1.1:4791\n",
            getpid());
    _exit(2);
  }();
  return config ? &*config : nullptr;
}

bool NetReachesSelf() {
  static const bool reaches = [] {
    const char* text = getenv("SOFTVERBS_NET_SELF");
    return Net() != nullptr && text != nullptr && std::string_view(text) == "1";
  }();
  return reaches;
}

bool IsSocketAddress(const ibv_gid& gid) { return IsOfOneHost(gid); }

socklen_t ToSocketAddress(const ibv_gid& gid, uint16_t port, sockaddr_storage* address) {
  memset(address, 0, sizeof(*address));
  if (IsMappedIpv4(gid)) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(address);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    memcpy(&v4->sin_addr, gid.raw + 12, sizeof(v4->sin_addr));
    return sizeof(*v4);
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(address);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  memcpy(&v6->sin6_addr, gid.raw, sizeof(gid.raw));
  return sizeof(*v6);
}

namespace {

std::optional<ibv_gid> ToGid(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return MappedIpv4(reinterpret_cast<const sockaddr_in*>(&address)->sin_addr);
  }
  if (address.ss_family != AF_INET6) return std::nullopt;
  ibv_gid gid;
  memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr, sizeof(gid.raw));
  return gid;
}

}  // namespace

std::optional<ibv_gid> PeerGid(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return std::nullopt;
  return ToGid(address);
}

std::optional<ibv_gid> OwnGid(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return std::nullopt;
  return ToGid(address);
}

}  // namespace softverbs
