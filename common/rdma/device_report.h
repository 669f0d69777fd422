#ifndef GANNET_COMMON_RDMA_DEVICE_REPORT_H_
#define GANNET_COMMON_RDMA_DEVICE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/rdma/device.h"

namespace gannet {

// What a device reports of itself, for people who look for a fault. Plain data, so that others can
// judge it without a device.
struct PortReport {
  uint32_t number = 0;
  bool active = false;
  std::string state;       // as libibverbs says it, or the device's provider
  std::string link_layer;  // "Ethernet" or "InfiniBand"
  uint32_t mtu_bytes = 0;  // active
  uint32_t mtu_bytes_max = 0;
  std::vector<std::string> gids;  // the GIDs that are set, as IPv6 addresses
  std::string interface;          // the network interface of the port; empty: none, or not known
};

struct DeviceReport {
  std::string name;
  DeviceKind kind = DeviceKind::kHardware;
  bool has_atomics = false;
  std::vector<PortReport> ports;
};

// Returns what the device and its ports tell. A port that cannot be queried has no state.
DeviceReport ReportDevice(ibv_context* verbs);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_DEVICE_REPORT_H_
