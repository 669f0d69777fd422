#include "softverbs/cm/port_name.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string_view>

namespace softverbs::cm {
namespace {

constexpr std::string_view kV6OnlySuffix = "/v6only";

struct PortRange {
  uint16_t first;
  uint16_t last;
};
constexpr PortRange kListenerPorts = {32768, 46655};
constexpr PortRange kSourcePorts = {46656, 60999};
constexpr int kEphemeralTries = 4096;  // random picks before the range counts as exhausted

std::string SpacePrefix(rdma_port_space ps) {
  char text[32];
  snprintf(text, sizeof(text), "softverbs/cm/%04x/", static_cast<unsigned>(ps));
  return text;
}

std::string Name(rdma_port_space ps, const Address& given, bool v6only) {
  const Address address = given.Unmapped();
  std::string name = SpacePrefix(ps) + address.Host() + "/" + std::to_string(address.port());
  if (v6only && address.family() == AF_INET6 && address.IsWildcard()) name += kV6OnlySuffix;
  return name;
}

// What a name claims, as far as it matters for overlaps.
struct Claim {
  std::string host;
  uint16_t port = 0;
  bool v6only = false;

  bool IsV6() const { return host.find(':') != std::string::npos; }
  bool IsWildcard() const { return host == "0.0.0.0" || host == "::"; }
  bool TakesBothFamilies() const { return host == "::" && !v6only; }
};

// Parses what follows the prefix. Returns false if it is not such a name.
bool ParseClaim(std::string_view text, Claim* claim) {
  claim->v6only = text.ends_with(kV6OnlySuffix);
  if (claim->v6only) text.remove_suffix(kV6OnlySuffix.size());
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  claim->host = text.substr(0, slash);
  const std::string_view port = text.substr(slash + 1);
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), claim->port);
  return parsed.ec == std::errc() && parsed.ptr == port.data() + port.size();
}

bool Overlap(const Claim& a, const Claim& b) {
  if (a.port != b.port) return false;
  if (a.TakesBothFamilies() || b.TakesBothFamilies()) return true;
  if (a.IsV6() != b.IsV6()) return false;
  return a.host == b.host || a.IsWildcard() || b.IsWildcard();
}

// Returns whether another name that is bound or listened on overlaps `name`. The kernel's list also
// shows the sockets of connections (state 03), which keep a listener's name but do not own the
// port. If the list cannot be read, only equal names collide, in bind(2).
bool OverlapsAnother(rdma_port_space ps, const std::string& name) {
  const std::string prefix = "@" + SpacePrefix(ps);
  Claim mine;
  ParseClaim(std::string_view(name).substr(prefix.size() - 1), &mine);
  std::ifstream list("/proc/net/unix");
  std::string line;
  while (std::getline(list, line)) {
    const size_t at = line.find(prefix);
    if (at == std::string::npos || line.compare(at + 1, std::string::npos, name) == 0) continue;
    unsigned state = 0;
    if (sscanf(line.c_str(), "%*s %*s %*s %*s %*s %x", &state) != 1 || state != 1) continue;
    Claim other;
    if (ParseClaim(std::string_view(line).substr(at + prefix.size()), &other) &&
        Overlap(mine, other)) {
      return true;
    }
  }
  return false;
}

int ClaimName(const std::string& name, UniqueFd* holder) {
  UniqueFd fd = UnnamedSocket();
  if (!fd) return errno;
  const UnixName unix_name = ToUnix(name);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&unix_name.address), unix_name.size) != 0) {
    return errno;
  }
  *holder = std::move(fd);
  return 0;
}

uint16_t RandomPort(PortRange range) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_int_distribution<uint16_t>(range.first, range.last)(random);
}

}  // namespace

UnixName ToUnix(const std::string& name) {
  UnixName unix_name = {};
  unix_name.address.sun_family = AF_UNIX;  // sun_path[0] stays zero: the abstract namespace
  const size_t size = std::min(name.size(), sizeof(unix_name.address.sun_path) - 1);
  std::memcpy(unix_name.address.sun_path + 1, name.data(), size);
  unix_name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return unix_name;
}

std::vector<std::string> ListenerNames(rdma_port_space ps, const Address& destination) {
  const Address plain = destination.Unmapped();
  Address wildcard = Address::Wildcard(plain.family());
  Address wildcard6 = Address::Wildcard(AF_INET6);
  wildcard.set_port(destination.port());
  wildcard6.set_port(destination.port());
  if (plain.family() == AF_INET) {
    return {Name(ps, plain, false), Name(ps, wildcard, false), Name(ps, wildcard6, false)};
  }
  return {Name(ps, plain, false), Name(ps, wildcard6, true), Name(ps, wildcard6, false)};
}

UniqueFd UnnamedSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

int ClaimPort(rdma_port_space ps, bool v6only, PortUse use, Address* address, UniqueFd* holder) {
  const bool ephemeral = address->port() == 0;
  const PortRange range = use == PortUse::kListener ? kListenerPorts : kSourcePorts;
  for (int tries = ephemeral ? kEphemeralTries : 1; tries > 0; tries--) {
    Address wanted = *address;
    if (ephemeral) wanted.set_port(RandomPort(range));
    const std::string name = Name(ps, wanted, v6only);
    UniqueFd fd;
    const int error = ClaimName(name, &fd);
    if (error != 0 && error != EADDRINUSE) return error;
    if (error != 0) continue;
    // Binds first and compares afterwards, so that of two that overlap at least one sees the other.
    const bool chosen_source = ephemeral && use == PortUse::kSource;
    if (!chosen_source && OverlapsAnother(ps, name)) continue;
    *address = wanted;
    *holder = std::move(fd);
    return 0;
  }
  return EADDRINUSE;
}

}  // namespace softverbs::cm
