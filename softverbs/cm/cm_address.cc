#include "softverbs/cm/cm_address.h"

#include <arpa/inet.h>
#include <errno.h>

#include <algorithm>
#include <cstring>

#include "softverbs/base/gid.h"
#include "softverbs/base/gid_table.h"
#include "softverbs/base/unique_fd.h"

namespace softverbs::cm {
namespace {

sockaddr_in* V4(sockaddr_storage* s) { return reinterpret_cast<sockaddr_in*>(s); }
sockaddr_in6* V6(sockaddr_storage* s) { return reinterpret_cast<sockaddr_in6*>(s); }
const sockaddr_in* V4(const sockaddr_storage* s) { return reinterpret_cast<const sockaddr_in*>(s); }
const sockaddr_in6* V6(const sockaddr_storage* s) {
  return reinterpret_cast<const sockaddr_in6*>(s);
}

}  // namespace

Address::Address() : storage_{} { storage_.ss_family = AF_INET; }

std::optional<Address> Address::From(const sockaddr* from) {
  if (from == nullptr || (from->sa_family != AF_INET && from->sa_family != AF_INET6)) return {};
  Address address;
  const size_t size = from->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&address.storage_, from, size);
  return address;
}

std::optional<Address> Address::From(const WireAddress& from) {
  if (from.family != AF_INET && from.family != AF_INET6) return {};
  Address address = Wildcard(from.family);
  std::memcpy(address.bytes(), from.bytes, address.byte_count());
  address.set_port(ntohs(from.port));
  if (from.family == AF_INET6) V6(&address.storage_)->sin6_scope_id = from.scope_id;
  return address;
}

Address Address::Wildcard(int family) {
  Address address;
  address.storage_.ss_family = static_cast<sa_family_t>(family);
  return address;
}

Address Address::Loopback(int family) {
  Address address = Wildcard(family);
  if (family == AF_INET) {
    V4(&address.storage_)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else {
    V6(&address.storage_)->sin6_addr = in6addr_loopback;
  }
  return address;
}

const uint8_t* Address::bytes() const {
  return family() == AF_INET ? reinterpret_cast<const uint8_t*>(&V4(&storage_)->sin_addr)
                             : V6(&storage_)->sin6_addr.s6_addr;
}

uint8_t* Address::bytes() {
  return const_cast<uint8_t*>(static_cast<const Address*>(this)->bytes());
}

uint16_t Address::port() const {
  return ntohs(family() == AF_INET ? V4(&storage_)->sin_port : V6(&storage_)->sin6_port);
}

void Address::set_port(uint16_t port) {
  (family() == AF_INET ? V4(&storage_)->sin_port : V6(&storage_)->sin6_port) = htons(port);
}

bool Address::IsWildcard() const {
  return std::all_of(bytes(), bytes() + byte_count(), [](uint8_t b) { return b == 0; });
}

bool Address::IsMulticast() const { return IsMulticastGid(ToGid()); }

bool Address::IsLoopback() const {
  const Address plain = Unmapped();
  if (plain.family() == AF_INET) return plain.bytes()[0] == 127;
  return IN6_IS_ADDR_LOOPBACK(&V6(&plain.storage_)->sin6_addr);
}

bool Address::SameHost(const Address& other) const {
  if (family() != other.family()) return false;
  if (std::memcmp(bytes(), other.bytes(), byte_count()) != 0) return false;
  return family() == AF_INET || V6(&storage_)->sin6_scope_id == V6(&other.storage_)->sin6_scope_id;
}

Address Address::Unmapped() const {
  if (family() == AF_INET || !IN6_IS_ADDR_V4MAPPED(&V6(&storage_)->sin6_addr)) return *this;
  Address plain = Wildcard(AF_INET);
  std::memcpy(plain.bytes(), bytes() + 12, 4);
  plain.set_port(port());
  return plain;
}

socklen_t Address::size() const {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

void Address::CopyTo(sockaddr_storage* to) const {
  // Copies only what the family has. As with rdma-core, the rest of the caller's storage stays as
  // it is.
  std::memcpy(to, &storage_, size());
}

WireAddress Address::ToWire() const {
  WireAddress wire = {};
  wire.family = storage_.ss_family;
  wire.port = htons(port());
  if (family() == AF_INET6) wire.scope_id = V6(&storage_)->sin6_scope_id;
  std::memcpy(wire.bytes, bytes(), byte_count());
  return wire;
}

ibv_gid Address::ToGid() const {
  ibv_gid gid = {};
  if (family() == AF_INET6) {
    std::memcpy(gid.raw, bytes(), sizeof(gid.raw));
  } else {
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, bytes(), 4);
  }
  return gid;
}

std::string Address::Host() const {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family(), bytes(), text, sizeof(text));
  std::string host = text;
  if (family() == AF_INET6 && V6(&storage_)->sin6_scope_id != 0) {
    host += "%" + std::to_string(V6(&storage_)->sin6_scope_id);
  }
  return host;
}

std::optional<Address> SourceFor(const Address& destination) {
  UniqueFd probe(socket(destination.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return {};
  Address to = destination;
  if (to.port() == 0) to.set_port(9);  // connecting a datagram socket only routes; port 0 may not
  if (connect(probe.get(), to.get(), to.size()) != 0) return {};
  sockaddr_storage from = {};
  socklen_t size = sizeof(from);
  if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&from), &size) != 0) return {};
  auto source = Address::From(reinterpret_cast<const sockaddr*>(&from));
  if (source) source->set_port(0);
  return source;
}

int CheckLocal(const Address& address) {
  // All of 127.0.0.0/8 is this host, although the kernel answers from 127.0.0.1. There is one
  // exception, see gid_table.h.
  if (address.IsLoopback()) {
    const Address plain = address.Unmapped();
    const bool own = plain.family() == AF_INET6 || IsGidOfThisHost(plain.ToGid());
    return own ? 0 : EADDRNOTAVAIL;
  }
  const auto source = SourceFor(address);
  // The kernel reaches its own addresses from the same address.
  if (source) return source->SameHost(address) ? 0 : EADDRNOTAVAIL;
  return errno == EMFILE || errno == ENFILE ? errno : EADDRNOTAVAIL;
}

}  // namespace softverbs::cm
