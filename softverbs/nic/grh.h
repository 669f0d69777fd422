#ifndef SOFTVERBS_NIC_GRH_H_
#define SOFTVERBS_NIC_GRH_H_

#include <infiniband/verbs.h>

#include <cstdint>

namespace softverbs {

// The global route header: the 40 bytes before a datagram in the receive buffer. As on RoCE v2 they
// hold an IPv6 header, which has the same fields. Between IPv4 addresses they hold 20 unused bytes
// and an IPv4 header (RoCE v2 annex, A17.4.5.2).

constexpr uint32_t kGrhBytes = 40;
static_assert(sizeof(ibv_grh) == kGrhBytes);

// Writes the header of a datagram with `payload` bytes that is sent from `source` along `route`.
void WriteGrh(const ibv_gid& source, const ibv_global_route& route, uint32_t payload, uint8_t* to);

// The kind of packet that a datagram came in. Mellanox adapters put it into the service level of
// the completion: bit 3 for UDP, and below it the type of the IP header. UCX reads it there.
constexpr uint8_t kRoceV2OverIpv6 = 0x9;
constexpr uint8_t kRoceV2OverIpv4 = 0xa;

// The fields of a header. `kind` is one of the constants above.
struct GrhFields {
  ibv_gid source;
  ibv_gid destination;
  uint32_t flow_label;
  uint8_t traffic_class;
  uint8_t kind;
};
// Parses kGrhBytes bytes of any content.
GrhFields ParseGrh(const uint8_t* from);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_GRH_H_
