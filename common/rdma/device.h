#ifndef GANNET_COMMON_RDMA_DEVICE_H_
#define GANNET_COMMON_RDMA_DEVICE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gannet {

enum class DeviceKind : uint8_t { kHardware, kKernelSoftware, kSoftverbs };

// "hardware", "kernel-software", "softverbs".
std::string_view DeviceKindName(DeviceKind kind);
DeviceKind KindOf(const ibv_device& device);

// The first device that softverbs offers; further ones have the same name with another number.
inline constexpr std::string_view kSoftverbsDeviceName = "softverbs0";

// The limits that the device reports. Obey them.
struct DeviceCaps {
  uint32_t max_qp_wr = 0;   // without the send that closing a connection needs
  uint32_t max_sge = 0;     // of SENDs and WRITEs
  uint32_t max_sge_rd = 0;  // of READs: siw has 1
  uint32_t max_srq_wr = 0;
  uint32_t max_cqe = 0;
  uint32_t max_inline_data = 0;     // of a queue pair with one sge, found by making one
  uint8_t max_qp_rd_atom = 0;       // peer's READs and atomics served at once, per queue pair
  uint8_t max_qp_init_rd_atom = 0;  // own READs and atomics in flight, per queue pair
  ibv_atomic_cap atomics = IBV_ATOMIC_NONE;  // HCA: atomic among NIC operations only
  uint32_t mtu_bytes = 0;                    // active, of port 1
  uint64_t max_mr_bytes = 0;

  bool has_atomics() const { return atomics != IBV_ATOMIC_NONE; }
};

// An opened device. librdmacm opens every device once and keeps it open for the life of the
// process, and its connections must use its contexts. So `verbs` is borrowed: copies are free, and
// nobody closes it.
struct Device {
  ibv_context* verbs = nullptr;
  std::string name;
  DeviceKind kind = DeviceKind::kHardware;
  DeviceCaps caps;
};

// Returns the devices of this machine. Returns an empty list, not an error, if it has none or no
// RDMA support.
std::vector<ibv_context*> ListDevices();

// FailedPrecondition: no such device; the text lists the devices that exist.
absl::StatusOr<Device> OpenDevice(std::string_view name);
// Describes the device of a context that came from a cm id, e.g. the one that reaches a server.
absl::StatusOr<Device> DescribeDevice(ibv_context* verbs);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_DEVICE_H_
