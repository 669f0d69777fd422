#include "tests/integration/wire_tap.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "common/base/check.h"
#include "common/protocol/message.h"

namespace gannet {
namespace {

constexpr uint16_t kRocePort = 4791;
constexpr size_t kUdpBytes = 8;
constexpr size_t kBaseHeaderBytes = 12;
constexpr uint8_t kIpProtocolUdp = 17;
constexpr int kReceiveBufferBytes = 32 << 20;

// Opcodes of reliable connections. A message of several packets counts by its first.
enum BaseOpcode : uint8_t {
  kSendFirst = 0x00,
  kSendOnly = 0x04,
  kReadRequest = 0x0c,
  kCompareSwap = 0x13,
};

uint32_t BigEndian24(const std::byte* at) {
  return std::to_integer<uint32_t>(at[0]) << 16 | std::to_integer<uint32_t>(at[1]) << 8 |
         std::to_integer<uint32_t>(at[2]);
}

// Returns the transport packet in an IPv4 packet, or an empty one if there is none.
std::span<const std::byte> TransportPacket(std::span<const std::byte> ip) {
  if (ip.size() < 20 || std::to_integer<uint8_t>(ip[9]) != kIpProtocolUdp) return {};
  const size_t ip_bytes = (std::to_integer<size_t>(ip[0]) & 15) * 4;
  if (ip.size() < ip_bytes + kUdpBytes + kBaseHeaderBytes) return {};
  uint16_t port;
  std::memcpy(&port, ip.data() + ip_bytes + 2, sizeof(port));
  return ntohs(port) == kRocePort ? ip.subspan(ip_bytes + kUdpBytes) : std::span<const std::byte>();
}

bool IsHeartbeat(std::span<const std::byte> message) {
  RequestHeader header;
  if (message.size() < sizeof(header)) return false;
  std::memcpy(&header, message.data(), sizeof(header));
  return header.opcode == static_cast<uint8_t>(Opcode::kHeartbeat);
}

}  // namespace

WireTap::WireTap(const std::string& interface) {
  // Packets that leave are shown only to sockets for all protocols.
  fd_ = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
  GANNET_CHECK(fd_ >= 0, "no packet socket");
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBufferBytes, sizeof(kReceiveBufferBytes));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  GANNET_CHECK(address.sll_ifindex > 0, "no such network interface");
  GANNET_CHECK(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
               "cannot listen to the network interface");
}

WireTap::~WireTap() { close(fd_); }

WireTap::Counts WireTap::Take() {
  Counts counts;
  std::array<std::byte, 65536> packet;
  for (;;) {
    sockaddr_ll from{};
    socklen_t from_bytes = sizeof(from);
    const ssize_t n = recvfrom(fd_, packet.data(), packet.size(), 0,
                               reinterpret_cast<sockaddr*>(&from), &from_bytes);
    if (n < 0) break;
    if (from.sll_pkttype != PACKET_OUTGOING || from.sll_protocol != htons(ETH_P_IP)) continue;
    CountPacket({packet.data(), static_cast<size_t>(n)}, &counts);
  }
  tpacket_stats lost{};
  socklen_t lost_bytes = sizeof(lost);
  getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &lost, &lost_bytes);
  GANNET_CHECK(lost.tp_drops == 0, "packets passed uncounted");
  return counts;
}

void WireTap::CountPacket(std::span<const std::byte> ip, Counts* counts) {
  const std::span<const std::byte> packet = TransportPacket(ip);
  if (packet.empty()) return;
  const uint8_t opcode = std::to_integer<uint8_t>(packet[0]);
  uint64_t* count = nullptr;
  switch (opcode) {
    case kSendFirst:
    case kSendOnly:
      count = IsHeartbeat(packet.subspan(kBaseHeaderBytes)) ? &counts->heartbeats
                                                            : &counts->verbs.sends;
      break;
    case kReadRequest:
      count = &counts->verbs.reads;
      break;
    case kCompareSwap:
      count = &counts->verbs.cas;
      break;
    default:
      return;
  }
  if (!seen_.emplace(BigEndian24(&packet[5]), BigEndian24(&packet[9]), opcode).second) return;
  ++*count;
}

}  // namespace gannet
