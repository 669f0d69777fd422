#include "softverbs/abi/query_verbs.h"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "softverbs/base/devices.h"
#include "softverbs/base/errno.h"
#include "softverbs/base/export.h"
#include "softverbs/base/gid.h"
#include "softverbs/base/gid_table.h"
#include "softverbs/base/link_layer.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/port_state.h"
#include "softverbs/base/verbs_limits.h"
#include "softverbs/fault/strict.h"
#include "softverbs/nic/context.h"
#include "softverbs/nic/shared_tables.h"

#undef ibv_query_port

namespace softverbs {
namespace {

constexpr uint16_t kDefaultPkey = 0xffff;
// An IEEE company number that nobody is given: bit 17 says that it is administered locally. The
// rest is "SV".
constexpr uint32_t kVendorId = 0x025356;

}  // namespace

ibv_device_attr DeviceAttributes(int device) {
  ibv_device_attr attr{};
  snprintf(attr.fw_ver, sizeof(attr.fw_ver), "1.0.0");
  attr.node_guid = htobe64(DeviceGuid(device));
  attr.sys_image_guid = htobe64(HostGuid());  // devices of one system share it
  attr.max_mr_size = UINT64_MAX;
  attr.page_size_cap = 0xfffff000;
  attr.vendor_id = kVendorId;
  attr.vendor_part_id = 1;
  attr.hw_ver = 1;
  attr.max_qp = kQpsPerProcess;
  attr.max_qp_wr = kMaxWr;
  attr.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN |
                          IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_PORT_ACTIVE_EVENT |
                          IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  attr.max_sge = attr.max_sge_rd = attr.max_srq_sge = kMaxSge;
  attr.max_cq = attr.max_pd = attr.max_srq = attr.max_ah = kMaxObjects;
  attr.max_mcast_grp = attr.max_total_mcast_qp_attach = kMaxObjects;
  attr.max_mcast_qp_attach = kQpsPerProcess;
  attr.max_cqe = kMaxCqe;
  attr.max_mr = attr.max_mw = kMaxMrs;  // together
  attr.max_srq_wr = kMaxWr;
  attr.max_qp_rd_atom = attr.max_qp_init_rd_atom = static_cast<int>(MaxReadAtomic());
  attr.max_res_rd_atom = static_cast<int>(MaxReadAtomic() * kQpsPerProcess);
  attr.atomic_cap = fault::AtomicCapability();
  attr.max_pkeys = 1;
  attr.local_ca_ack_delay = 15;
  attr.phys_port_cnt = static_cast<uint8_t>(PortsEach());
  if (HasPathMigration()) attr.device_cap_flags |= IBV_DEVICE_AUTO_PATH_MIG;
  return attr;
}

namespace {

ibv_port_attr PortAttributes(int port, bool up) {
  ibv_port_attr attr{};
  attr.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr.max_mtu = attr.active_mtu = IBV_MTU_4096;
  attr.gid_tbl_len = kGidTableSize;
  attr.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  attr.max_msg_sz = kMaxMessage;
  attr.pkey_tbl_len = 1;
  attr.max_vl_num = 1;
  attr.active_width = 2;         // 4x
  attr.active_speed = 32;        // EDR
  attr.phys_state = up ? 5 : 2;  // link up, polling
  attr.link_layer = IsInfiniBand() ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  attr.lid = LidOfPort(port);
  attr.sm_lid = LidOfPort(0);
  return attr;
}

ibv_gid_entry ToEntry(const Gid& gid, uint32_t port_number) {
  ibv_gid_entry entry{};
  entry.gid = gid.gid;
  entry.gid_index = static_cast<uint32_t>(gid.index);
  entry.port_num = port_number;
  entry.gid_type = IsInfiniBand() ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
  entry.ndev_ifindex = gid.interface;
  return entry;
}

}  // namespace

int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attr, size_t attr_size) {
  if (!HasPort(port)) return WithErrno(EINVAL);
  const int counted = PortOf(context == nullptr ? 0 : DeviceIndex(context), port);
  const ibv_port_attr full = PortAttributes(counted, context == nullptr || !IsPortDown(counted));
  memset(attr, 0, attr_size);
  memcpy(attr, &full, std::min(attr_size, sizeof(full)));
  return 0;
}

int QueryDeviceEx(ibv_context* context, const ibv_query_device_ex_input*, ibv_device_attr_ex* attr,
                  size_t attr_size) {
  ibv_device_attr_ex full{};
  full.orig_attr = DeviceAttributes(DeviceIndex(context));
  full.completion_timestamp_mask = UINT64_MAX;
  full.hca_core_clock = 1'000'000;  // kHz: CLOCK_MONOTONIC counts nanoseconds
  full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
  full.phys_port_cnt_ex = full.orig_attr.phys_port_cnt;
  memset(attr, 0, attr_size);
  memcpy(attr, &full, std::min(attr_size, sizeof(full)));
  return 0;
}

int QueryRtValues(ibv_context*, ibv_values_ex* values) {
  if (values->comp_mask != IBV_VALUES_MASK_RAW_CLOCK) return WithErrno(EINVAL);
  const int64_t now = MonotonicNs();
  values->raw_clock.tv_sec = now / 1'000'000'000;
  values->raw_clock.tv_nsec = now % 1'000'000'000;
  return 0;
}

}  // namespace softverbs

SOFTVERBS_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  *attr = softverbs::DeviceAttributes(softverbs::DeviceIndex(context));
  return 0;
}

// The exported symbol serves programs that are older than the table. Their struct ends before
// port_cap_flags2.
SOFTVERBS_EXPORT int ibv_query_port(ibv_context* context, uint8_t port,
                                    _compat_ibv_port_attr* attr) {
  return softverbs::QueryPort(context, port, reinterpret_cast<ibv_port_attr*>(attr),
                              offsetof(ibv_port_attr, port_cap_flags2));
}

SOFTVERBS_EXPORT int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) {
  if (!softverbs::HasPort(port) || index < 0 || index >= softverbs::kGidTableSize) {
    errno = EINVAL;
    return -1;
  }
  const auto found =
      softverbs::GidAt(softverbs::PortOf(softverbs::DeviceIndex(context), port), index);
  *gid = found ? found->gid : ibv_gid{};  // as the kernel answers for a hole
  return 0;
}

SOFTVERBS_EXPORT int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index,
                                       ibv_gid_entry* entry, uint32_t flags, size_t entry_size) {
  if (!softverbs::HasPort(port) || flags != 0 || entry_size < sizeof(*entry) ||
      index >= softverbs::kGidTableSize) {
    return softverbs::WithErrno(EINVAL);
  }
  const int counted = softverbs::PortOf(softverbs::DeviceIndex(context), port);
  const auto gid = softverbs::GidAt(counted, static_cast<int>(index));
  if (!gid) return softverbs::WithErrno(ENODATA);
  *entry = softverbs::ToEntry(*gid, port);
  return 0;
}

SOFTVERBS_EXPORT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                              size_t max_entries, uint32_t flags,
                                              size_t entry_size) {
  softverbs::RefreshGids();
  std::vector<ibv_gid_entry> all;
  for (unsigned number = 1; softverbs::HasPort(number); ++number) {
    const int port = softverbs::PortOf(softverbs::DeviceIndex(context), number);
    for (const softverbs::Gid& gid : softverbs::ValidGids(port)) {
      all.push_back(softverbs::ToEntry(gid, number));
    }
  }
  if (flags != 0 || entry_size != sizeof(*entries) || all.size() > max_entries) {
    return -softverbs::WithErrno(EINVAL);
  }
  std::ranges::copy(all, entries);
  return static_cast<ssize_t>(all.size());
}

// Part of the private interface, but perftest calls it. In its enum, 1 is RoCE v2.
SOFTVERBS_EXPORT int ibv_query_gid_type(ibv_context*, uint8_t port, unsigned int index,
                                        uint32_t* type) {
  if (!softverbs::HasPort(port) || index >= softverbs::kGidTableSize) {
    errno = EINVAL;
    return -1;
  }
  *type = 1;
  return 0;
}

SOFTVERBS_EXPORT int ibv_query_pkey(ibv_context*, uint8_t port, int index, __be16* pkey) {
  if (!softverbs::HasPort(port) || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *pkey = htobe16(softverbs::kDefaultPkey);
  return 0;
}

SOFTVERBS_EXPORT int ibv_get_pkey_index(ibv_context*, uint8_t port, __be16 pkey) {
  if (softverbs::HasPort(port) && pkey == htobe16(softverbs::kDefaultPkey)) return 0;
  errno = EINVAL;
  return -1;
}
