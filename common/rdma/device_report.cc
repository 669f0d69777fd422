#include "common/rdma/device_report.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/rdma/port.h"

namespace gannet {
namespace {

std::vector<std::string> GidsOf(ibv_context* verbs, uint8_t port, int length) {
  std::vector<std::string> gids;
  for (int i = 0; i < length; ++i) {
    ibv_gid gid{};
    if (ibv_query_gid(verbs, port, i, &gid) != 0) continue;
    if (std::ranges::all_of(gid.raw, [](uint8_t byte) { return byte == 0; })) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (inet_ntop(AF_INET6, gid.raw, text.data(), text.size()) != nullptr) {
      gids.emplace_back(text.data());
    }
  }
  return gids;
}

// The kernel tells an interface for each GID, and an error for a GID that is not set.
std::string InterfaceOf(const ibv_context& verbs, const PortReport& port) {
  constexpr int kGidsMax = 16;
  const std::string of_gid = absl::StrCat("/sys/class/infiniband/", verbs.device->name, "/ports/",
                                          port.number, "/gid_attrs/ndevs/");
  std::string name;
  for (int i = 0; i < kGidsMax && name.empty(); ++i) {
    std::ifstream file(absl::StrCat(of_gid, i));
    std::getline(file, name);
  }
  return name;
}

PortReport ReportPort(ibv_context* verbs, uint8_t number) {
  PortReport report{.number = number};
  ibv_port_attr port{};
  if (ibv_query_port(verbs, number, &port) != 0) return report;
  report.active = port.state == IBV_PORT_ACTIVE;
  report.state = ibv_port_state_str(port.state);
  report.link_layer = port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
  report.mtu_bytes = MtuBytes(port.active_mtu);
  report.mtu_bytes_max = MtuBytes(port.max_mtu);
  report.gids = GidsOf(verbs, number, port.gid_tbl_len);
  report.interface = InterfaceOf(*verbs, report);
  return report;
}

}  // namespace

DeviceReport ReportDevice(ibv_context* verbs) {
  DeviceReport report{.name = verbs->device->name, .kind = KindOf(*verbs->device)};
  ibv_device_attr attributes{};
  if (ibv_query_device(verbs, &attributes) != 0) return report;
  report.has_atomics = attributes.atomic_cap != IBV_ATOMIC_NONE;
  for (uint8_t port = 1; port <= attributes.phys_port_cnt; ++port) {
    report.ports.push_back(ReportPort(verbs, port));
  }
  return report;
}

}  // namespace gannet
