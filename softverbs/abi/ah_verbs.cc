#include <cerrno>
#include <cstring>
#include <optional>

#include "softverbs/base/devices.h"
#include "softverbs/base/errno.h"
#include "softverbs/base/export.h"
#include "softverbs/base/gid.h"
#include "softverbs/base/gid_table.h"
#include "softverbs/base/link_layer.h"
#include "softverbs/nic/address_handle.h"
#include "softverbs/nic/context.h"
#include "softverbs/nic/grh.h"

namespace softverbs {
namespace {

constexpr uint8_t kReplyHopLimit = 0xff;

// Returns 0 or an errno value.
int CheckRoute(int port, const ibv_global_route& route) {
  if (IsMulticastGid(route.dgid)) return CheckMulticast();
  if (IsGidOfThisHost(route.dgid)) return 0;
  return IsReachable(port, route.dgid, route.sgid_index) ? 0 : EHOSTUNREACH;
}

// Returns the index of the GID that a datagram was sent to, for the way back. A multicast group is
// none of our GIDs.
uint8_t GidIndex(const ibv_gid& gid) {
  if (!IsMulticastGid(gid)) {
    if (const auto index = FindGid(gid)) return static_cast<uint8_t>(*index);
  }
  return IsMappedIpv4(gid) ? static_cast<uint8_t>(LoopbackGidIndex(PortOf(gid))) : 0;
}

}  // namespace
}  // namespace softverbs

using softverbs::Ah;
using softverbs::Pd;

SOFTVERBS_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (!softverbs::HasPort(attr->port_num)) return softverbs::NullWithErrno<ibv_ah>(EINVAL);
  const int device = softverbs::DeviceIndex(pd->context);
  const auto route = softverbs::RouteOf(device, *attr);
  const int port = softverbs::PortOf(device, attr->port_num);
  const auto source = route ? softverbs::GidAt(port, route->sgid_index) : std::nullopt;
  if (!source) return softverbs::NullWithErrno<ibv_ah>(EINVAL);
  if (const int error = softverbs::CheckRoute(port, *route)) {
    return softverbs::NullWithErrno<ibv_ah>(error);
  }
  if (const int error = Pd::From(pd)->Check()) return softverbs::NullWithErrno<ibv_ah>(error);
  if (!softverbs::Context::From(pd->context)->nic->ahs().Take()) {
    return softverbs::NullWithErrno<ibv_ah>(ENOMEM);
  }
  auto* ah = new Ah;
  ah->ibv.context = pd->context;
  ah->ibv.pd = pd;
  ah->identity.Take(ah->ibv);
  ah->route = *route;
  ah->source = source->gid;
  Pd::From(pd)->users.fetch_add(1, std::memory_order_acq_rel);
  return &ah->ibv;
}

SOFTVERBS_EXPORT int ibv_init_ah_from_wc(ibv_context*, uint8_t port, ibv_wc* wc, ibv_grh* grh,
                                         ibv_ah_attr* attr) {
  memset(attr, 0, sizeof(*attr));
  attr->port_num = port;
  attr->sl = wc->sl;
  attr->dlid = wc->slid;
  if ((wc->wc_flags & IBV_WC_GRH) == 0) return 0;
  const softverbs::GrhFields fields = softverbs::ParseGrh(reinterpret_cast<const uint8_t*>(grh));
  attr->is_global = 1;
  attr->grh.dgid = fields.source;
  attr->grh.sgid_index = softverbs::GidIndex(fields.destination);
  attr->grh.flow_label = fields.flow_label;
  attr->grh.traffic_class = fields.traffic_class;
  attr->grh.hop_limit = softverbs::kReplyHopLimit;
  return 0;
}

SOFTVERBS_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) {
  ibv_ah_attr attr;
  ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr);
  return ibv_create_ah(pd, &attr);
}

SOFTVERBS_EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  if (softverbs::Inherited(ah->context)) return 0;
  if (const int error = Ah::From(ah)->Check()) return softverbs::WithErrno(error);
  Pd::From(ah->pd)->users.fetch_sub(1, std::memory_order_acq_rel);
  softverbs::Context::From(ah->context)->nic->ahs().Return();
  delete reinterpret_cast<Ah*>(ah);
  return 0;
}
