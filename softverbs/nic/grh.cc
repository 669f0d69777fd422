#include "softverbs/nic/grh.h"

#include <arpa/inet.h>
#include <netinet/ip.h>

#include <cstring>

#include "softverbs/base/gid.h"

namespace softverbs {
namespace {

constexpr size_t kIpv4At = kGrhBytes - sizeof(iphdr);
constexpr size_t kIpv4InGid = sizeof(ibv_gid) - sizeof(in_addr);
constexpr uint8_t kNextHeaderIba = 0x1b;
constexpr uint32_t kFlowLabelMask = 0xfffff;
constexpr int kVersionShift = 28;
constexpr int kTrafficClassShift = 20;

// Computes the checksum of RFC 1071. The header's checksum field must be zero.
uint16_t Checksum(const iphdr& header) {
  uint16_t words[sizeof(header) / 2];
  memcpy(words, &header, sizeof(header));
  uint32_t sum = 0;
  for (uint16_t word : words) sum += word;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

void WriteIpv4(const ibv_gid& source, const ibv_global_route& route, uint32_t payload,
               uint8_t* to) {
  iphdr header{};
  header.version = 4;
  header.ihl = sizeof(header) / 4;
  header.tos = route.traffic_class;
  header.tot_len = htons(static_cast<uint16_t>(sizeof(header) + payload));
  header.ttl = route.hop_limit;
  header.protocol = IPPROTO_UDP;
  memcpy(&header.saddr, source.raw + kIpv4InGid, sizeof(header.saddr));
  memcpy(&header.daddr, route.dgid.raw + kIpv4InGid, sizeof(header.daddr));
  header.check = Checksum(header);
  memset(to, 0, kIpv4At);
  memcpy(to + kIpv4At, &header, sizeof(header));
}

}  // namespace

void WriteGrh(const ibv_gid& source, const ibv_global_route& route, uint32_t payload, uint8_t* to) {
  if (IsMappedIpv4(source) && IsMappedIpv4(route.dgid)) {
    return WriteIpv4(source, route, payload, to);
  }
  ibv_grh header{};
  header.version_tclass_flow =
      htonl(6u << kVersionShift | uint32_t{route.traffic_class} << kTrafficClassShift |
            (route.flow_label & kFlowLabelMask));
  header.paylen = htons(static_cast<uint16_t>(payload));
  header.next_hdr = kNextHeaderIba;
  header.hop_limit = route.hop_limit;
  header.sgid = source;
  header.dgid = route.dgid;
  memcpy(to, &header, sizeof(header));
}

GrhFields ParseGrh(const uint8_t* from) {
  ibv_grh header;
  memcpy(&header, from, sizeof(header));
  const uint32_t first = ntohl(header.version_tclass_flow);
  if (first >> kVersionShift == 6) {
    return {header.sgid, header.dgid, first & kFlowLabelMask,
            static_cast<uint8_t>(first >> kTrafficClassShift), kRoceV2OverIpv6};
  }
  iphdr ipv4;
  memcpy(&ipv4, from + kIpv4At, sizeof(ipv4));
  return {MappedIpv4({ipv4.saddr}), MappedIpv4({ipv4.daddr}), 0, ipv4.tos, kRoceV2OverIpv4};
}

}  // namespace softverbs
