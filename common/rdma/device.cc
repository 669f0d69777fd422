#include "common/rdma/device.h"

#include <rdma/rdma_cma.h>

#include <climits>
#include <cstdlib>
#include <memory>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rdma/handle.h"
#include "common/rdma/port.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

// The kernel puts its software devices (rdma_rxe, siw) below /sys/devices/virtual, and a NIC below
// its bus.
bool IsKernelSoftware(const ibv_device& device) {
  char path[PATH_MAX];
  if (realpath(device.ibdev_path, path) != nullptr) {
    return std::string_view(path).find("/devices/virtual/") != std::string_view::npos;
  }
  const std::string_view name = device.name;
  return name.starts_with("rxe") || name.starts_with("siw");
}

bool TakesInline(ibv_pd* pd, ibv_cq* cq, uint32_t bytes) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = cq;
  attributes.recv_cq = cq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = 1,
                    .max_recv_wr = 1,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = bytes};
  return Handle<ibv_qp>(ibv_create_qp(pd, &attributes)) != nullptr;
}

// No attribute tells how much a device takes inline, so this makes queue pairs to find out.
absl::StatusOr<uint32_t> ProbeInlineBytes(ibv_context* verbs) {
  const Handle<ibv_pd> pd(ibv_alloc_pd(verbs));
  if (pd == nullptr) return LastErrnoStatus("cannot allocate a protection domain");
  const Handle<ibv_cq> cq(ibv_create_cq(verbs, 2, nullptr, nullptr, 0));
  if (cq == nullptr) return LastErrnoStatusOfPinning("cannot create a completion queue");
  for (const uint32_t bytes : {512, 256, 220, 128, 64, 32, 0}) {
    if (TakesInline(pd.get(), cq.get(), bytes)) return bytes;
  }
  return LastErrnoStatusOfPinning("cannot create a queue pair");
}

absl::StatusOr<DeviceCaps> ReadCaps(ibv_context* verbs) {
  ibv_device_attr attributes{};
  GANNET_RETURN_IF_ERROR(
      ErrnoStatus(ibv_query_device(verbs, &attributes), "cannot query the device"));
  ibv_port_attr port{};
  GANNET_RETURN_IF_ERROR(ErrnoStatus(ibv_query_port(verbs, 1, &port), "cannot query port 1"));
  DeviceCaps caps;
  caps.max_qp_wr = attributes.max_qp_wr - 1;
  caps.max_sge = attributes.max_sge;
  caps.max_sge_rd = attributes.max_sge_rd > 0 ? attributes.max_sge_rd : attributes.max_sge;
  caps.max_srq_wr = attributes.max_srq_wr;
  caps.max_cqe = attributes.max_cqe;
  caps.max_qp_rd_atom = static_cast<uint8_t>(std::min(attributes.max_qp_rd_atom, 255));
  caps.max_qp_init_rd_atom = static_cast<uint8_t>(std::min(attributes.max_qp_init_rd_atom, 255));
  caps.atomics = attributes.atomic_cap;
  caps.mtu_bytes = MtuBytes(port.active_mtu);
  caps.max_mr_bytes = attributes.max_mr_size;
  GANNET_ASSIGN_OR_RETURN(caps.max_inline_data, ProbeInlineBytes(verbs));
  return caps;
}

}  // namespace

std::string_view DeviceKindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kHardware:
      return "hardware";
    case DeviceKind::kKernelSoftware:
      return "kernel-software";
    case DeviceKind::kSoftverbs:
      return "softverbs";
  }
  return "?";
}

DeviceKind KindOf(const ibv_device& device) {
  const std::string_view prefix = kSoftverbsDeviceName.substr(0, kSoftverbsDeviceName.size() - 1);
  if (std::string_view(device.name).starts_with(prefix)) return DeviceKind::kSoftverbs;
  return IsKernelSoftware(device) ? DeviceKind::kKernelSoftware : DeviceKind::kHardware;
}

std::vector<ibv_context*> ListDevices() {
  int count = 0;
  // NULL with ENODEV or ENOSYS means that the kernel has no RDMA. That is an empty list.
  const std::unique_ptr<ibv_context*, decltype(&rdma_free_devices)> list(rdma_get_devices(&count),
                                                                         &rdma_free_devices);
  if (list == nullptr) return {};
  return {list.get(), list.get() + count};
}

absl::StatusOr<Device> OpenDevice(std::string_view name) {
  const std::vector<ibv_context*> devices = ListDevices();
  std::string present;
  for (ibv_context* verbs : devices) {
    if (verbs->device->name == name) return DescribeDevice(verbs);
    absl::StrAppend(&present, present.empty() ? "" : ", ", verbs->device->name);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("there is no RDMA device \"", std::string(name), "\" here; there ",
                   devices.size() == 1 ? "is " : "are ", present.empty() ? "none" : present));
}

absl::StatusOr<Device> DescribeDevice(ibv_context* verbs) {
  GANNET_ASSIGN_OR_RETURN(DeviceCaps caps, ReadCaps(verbs));
  return Device{verbs, verbs->device->name, KindOf(*verbs->device), caps};
}

}  // namespace gannet
