#ifndef SOFTVERBS_CM_CM_ADDRESS_H_
#define SOFTVERBS_CM_CM_ADDRESS_H_

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "softverbs/cm/wire.h"

namespace softverbs::cm {

// An IPv4 or IPv6 address with a port. A value type. IPv4-mapped IPv6 addresses are kept as they
// are; Unmapped() gives the IPv4 address that they mean.
class Address {
 public:
  // The IPv4 wildcard, port 0.
  Address();

  // Returns nothing if `from` is null or of another family.
  static std::optional<Address> From(const sockaddr* from);
  static std::optional<Address> From(const WireAddress& from);
  static Address Wildcard(int family);
  static Address Loopback(int family);

  int family() const { return storage_.ss_family; }
  uint16_t port() const;  // host byte order
  void set_port(uint16_t port);

  bool IsWildcard() const;
  bool IsMulticast() const;
  bool IsLoopback() const;                    // 127.0.0.0/8 or ::1
  bool SameHost(const Address& other) const;  // everything but the port is equal
  Address Unmapped() const;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const;
  void CopyTo(sockaddr_storage* to) const;
  WireAddress ToWire() const;
  ibv_gid ToGid() const;  // as RoCE v2 forms it: IPv4-mapped for IPv4

  // "127.0.0.1", "::1", "fe80::1%2".
  std::string Host() const;

 private:
  const uint8_t* bytes() const;
  uint8_t* bytes();
  size_t byte_count() const { return family() == AF_INET ? 4 : 16; }

  sockaddr_storage storage_;
};

// Returns the address from which this host would send to `destination`, by the kernel's routing.
// Sends no packet. Returns nothing and sets errno if there is no route or no descriptor.
std::optional<Address> SourceFor(const Address& destination);

// Returns 0 if a (specific) address is one of this host's own, EADDRNOTAVAIL if not, or the errno
// that prevented finding out.
int CheckLocal(const Address& address);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_CM_ADDRESS_H_
