#include "client/routing/endpoint.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/server_list.h"
#include "common/protocol/connect.h"
#include "common/protocol/limits.h"

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

absl::StatusOr<Endpoint> ParseGroup(std::string_view text) {
  Endpoint group{.text = std::string(text), .group = true};
  for (const std::string& member : std::vector<std::string>(
           absl::StrSplit(std::string(text.substr(kGroupPrefix.size())), ',', absl::SkipEmpty()))) {
    if (member.find('@') != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", std::string(text),
                       "\": the members of a group have no names here; write HOST:PORT"));
    }
    group.addresses.push_back(member);
  }
  if (!group.addresses.empty()) return group;
  return absl::InvalidArgumentError(absl::StrCat("\"", std::string(text), "\": behind ",
                                                 std::string(kGroupPrefix), " come its members"));
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  if (IsGroup(text)) return ParseGroup(text);
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos) return Endpoint{std::string(text), "", {std::string(text)}};
  const std::string_view name = text.substr(0, at);
  if (!IsServerName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\": before the @ comes the server's name, 1 to ",
                     kServerNameBytesMax, " letters, digits or ._:-[]"));
  }
  return Endpoint{std::string(text), std::string(name), {std::string(text.substr(at + 1))}};
}

absl::StatusOr<std::vector<SocketAddress>> ResolveEndpoint(const Endpoint& endpoint) {
  std::vector<SocketAddress> all;
  absl::Status unknown;
  for (const std::string& text : endpoint.addresses) {
    const absl::StatusOr<std::vector<SocketAddress>> some = ResolveAll(text, kDefaultPort);
    if (!some.ok() && !absl::IsUnavailable(some.status())) return some.status();
    if (!some.ok()) {
      unknown = some.status();
      continue;
    }
    for (const SocketAddress& address : *some) {
      const auto same = [&](const SocketAddress& it) {
        return it.ToString() == address.ToString();
      };
      if (std::ranges::none_of(all, same)) all.push_back(address);
    }
  }
  if (all.empty()) return unknown;
  return all;
}

std::shared_ptr<NameLookup> NamesOf(const Endpoint& endpoint) {
  const auto is_number = [](const std::string& text) {
    return NumericAddress(text, kDefaultPort).has_value();
  };
  if (std::ranges::all_of(endpoint.addresses, is_number)) return nullptr;
  return std::make_shared<NameLookup>([endpoint] { return ResolveEndpoint(endpoint); });
}

std::string CanonicalAddress(std::span<const SocketAddress> addresses) {
  GANNET_CHECK(!addresses.empty(), "a server has no address");
  return std::min_element(addresses.begin(), addresses.end(), IsLower)->ToString();
}

}  // namespace gannet
