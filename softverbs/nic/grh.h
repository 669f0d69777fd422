#ifndef SOFTVERBS_NIC_GRH_H_
#define SOFTVERBS_NIC_GRH_H_

#include <infiniband/verbs.h>

#include <cstdint>

namespace softverbs {

// The global route header: the 40 bytes before a datagram in the receive buffer. As on RoCE v2 they
// hold an IPv6 header, whose fields the header's are; or, between IPv4 addresses, 20 bytes of
// nothing and an IPv4 header (RoCE v2 annex, A17.4.5.2).

constexpr uint32_t kGrhBytes = 40;
static_assert(sizeof(ibv_grh) == kGrhBytes);

// Writes the header of a datagram of `payload` bytes that goes by `route`.
void WriteGrh(const ibv_global_route& route, uint32_t payload, uint8_t* to);

// What a header says. `from` holds kGrhBytes bytes of any content.
struct GrhFields {
  ibv_gid source;
  ibv_gid destination;
  uint32_t flow_label;
  uint8_t traffic_class;
};
GrhFields ParseGrh(const uint8_t* from);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_GRH_H_
