#include "softverbs/base/link_layer.h"

#include <netinet/in.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "softverbs/base/devices.h"
#include "softverbs/base/gid.h"
#include "softverbs/base/gid_table.h"
#include "softverbs/base/net_config.h"

namespace softverbs {
namespace {

constexpr uint16_t kLidMax = 0xbfff;  // those above are of multicast groups
constexpr uint16_t kLidOfOneHost = 1;
constexpr size_t kLidAt = sizeof(ibv_gid) - sizeof(uint16_t);  // in a GID

uint16_t LastBytes(const ibv_gid& gid) {
  return static_cast<uint16_t>(gid.raw[kLidAt] << 8 | gid.raw[kLidAt + 1]);
}

[[noreturn]] void Refuse(const char* why) {
  fprintf(stderr, "softverbs[%d]: SOFTVERBS_LINK_LAYER: %s\n", getpid(), why);
  _exit(2);
}

// Returns 0 on Ethernet.
uint16_t ParseOwnLid(const char* text) {
  const std::string_view layer = text == nullptr ? "" : text;
  if (layer.empty() || layer == "ethernet") return 0;
  if (layer != "infiniband") Refuse("it is ethernet or infiniband");
  const NetConfig* net = Net();
  if (net == nullptr) return kLidOfOneHost;
  const uint16_t lid = LastBytes(net->gid());
  if (lid == 0 || lid > kLidMax) {
    Refuse(
        "the last two bytes of SOFTVERBS_NET's address are the LID: they must be 0.1 to 191.255");
  }
  return lid;
}

// Returns the GID of the host or the port with this LID. REQUIRES: IsHost(lid).
ibv_gid GidOfLid(uint16_t lid) {
  const NetConfig* net = Net();
  if (net == nullptr) return LoopbackGidsOf(lid - kLidOfOneHost).back();
  ibv_gid gid = net->gid();
  gid.raw[kLidAt] = static_cast<uint8_t>(lid >> 8);
  gid.raw[kLidAt + 1] = static_cast<uint8_t>(lid);
  return gid;
}

// Returns whether a LID leads somewhere. Without SOFTVERBS_NET there is one host, and those of its
// ports that have a loopback address are reached.
bool IsHost(uint16_t lid) {
  if (lid == 0 || lid > kLidMax) return false;
  if (Net() != nullptr) return true;
  const int port = lid - kLidOfOneHost;
  return port < PortCount() && !LoopbackGidsOf(port).empty();
}

// Returns the LID of the first port.
uint16_t FirstLid() {
  static const uint16_t lid = ParseOwnLid(getenv("SOFTVERBS_LINK_LAYER"));
  return lid;
}

}  // namespace

bool IsInfiniBand() { return FirstLid() != 0; }

bool HasPathMigration() { return PortsEach() > 1 && IsInfiniBand(); }

uint16_t LidOfPort(int port) {
  if (!IsInfiniBand()) return 0;
  const NetConfig* net = Net();
  if (net != nullptr) return LastBytes(net->gids[static_cast<size_t>(port)]);
  return static_cast<uint16_t>(FirstLid() + port);
}

uint16_t LidOf(const ibv_gid& gid) {
  if (!IsInfiniBand()) return 0;
  return Net() == nullptr ? LidOfPort(PortOf(gid)) : LastBytes(gid);
}

std::optional<ibv_global_route> RouteOf(int device, const ibv_ah_attr& path) {
  if (path.is_global != 0) return path.grh;
  if (!IsInfiniBand() || !IsHost(path.dlid) || !HasPort(path.port_num)) return {};
  ibv_global_route route{};
  route.dgid = GidOfLid(path.dlid);
  route.sgid_index =
      static_cast<uint8_t>(Net() == nullptr ? LoopbackGidIndex(PortOf(device, path.port_num)) : 0);
  route.hop_limit = 1;
  return route;
}

}  // namespace softverbs
