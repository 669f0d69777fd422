// Endpoints: ids made from an rdma_addrinfo, whose calls wait for their own completion.

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <utility>

#include "softverbs/base/export.h"
#include "softverbs/cm/bind.h"
#include "softverbs/cm/cm_id.h"

namespace softverbs::cm {
namespace {

constexpr int kResolveTimeoutMs = 2000;

// Returns 0, or -1 and errno.
int SetUpPassive(CmId* id, const rdma_addrinfo& info, ibv_pd* pd, const ibv_qp_init_attr* attr) {
  if (rdma_bind_addr(id, info.ai_src_addr) != 0) return -1;
  if (pd != nullptr) id->pd = pd;
  if (attr != nullptr) {
    id->endpoint_qp = *attr;
    id->endpoint_qp->qp_type = static_cast<ibv_qp_type>(info.ai_qp_type);
  }
  return 0;
}

// Returns 0, or -1 and errno.
int SetUpActive(CmId* id, const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (rdma_resolve_addr(id, info.ai_src_addr, info.ai_dst_addr, kResolveTimeoutMs) != 0) return -1;
  if (rdma_resolve_route(id, kResolveTimeoutMs) != 0) return -1;
  if (attr != nullptr) {
    attr->qp_type = static_cast<ibv_qp_type>(info.ai_qp_type);
    if (rdma_create_qp(id, pd, attr) != 0) return -1;
  }
  if (info.ai_connect_len > 0) {
    const auto* data = static_cast<const uint8_t*>(info.ai_connect);
    id->endpoint_data.assign(data, data + info.ai_connect_len);
  }
  return 0;
}

// Turns the event that rdma_get_request waits for into its result. Returns 0 or an errno.
int CheckRequest(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_REJECTED) return ECONNREFUSED;
  if (event.status != 0) return std::abs(event.status);
  return event.event == RDMA_CM_EVENT_CONNECT_REQUEST ? 0 : EINVAL;
}

}  // namespace
}  // namespace softverbs::cm

using softverbs::cm::CmId;
using softverbs::cm::Result;

SOFTVERBS_EXPORT int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* res, ibv_pd* pd,
                                    ibv_qp_init_attr* qp_init_attr) {
  rdma_cm_id* handle = nullptr;
  const auto ps = static_cast<rdma_port_space>(res->ai_port_space);
  const auto type = static_cast<ibv_qp_type>(res->ai_qp_type);
  if (const int error = softverbs::cm::CreateId(nullptr, &handle, nullptr, ps, type)) {
    return Result(error);
  }
  CmId* cm = CmId::From(handle);
  const int failed = (res->ai_flags & RAI_PASSIVE) != 0
                         ? softverbs::cm::SetUpPassive(cm, *res, pd, qp_init_attr)
                         : softverbs::cm::SetUpActive(cm, *res, pd, qp_init_attr);
  if (failed != 0) {
    const int error = errno;
    rdma_destroy_ep(handle);
    return Result(error);
  }
  *id = handle;
  return 0;
}

SOFTVERBS_EXPORT void rdma_destroy_ep(rdma_cm_id* id) {
  if (id->qp != nullptr) rdma_destroy_qp(id);
  if (id->srq != nullptr) rdma_destroy_srq(id);
  rdma_destroy_id(id);
}

SOFTVERBS_EXPORT int rdma_get_request(rdma_cm_id* listen, rdma_cm_id** id) {
  CmId* listening = CmId::From(listen);
  if (listening == nullptr || !listening->sync) return Result(EINVAL);
  if (listen->event != nullptr) rdma_ack_cm_event(std::exchange(listen->event, nullptr));
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(listen->channel, &event) != 0) return -1;
  int error = softverbs::cm::CheckRequest(*event);
  if (error == 0 && listening->endpoint_qp) {
    ibv_qp_init_attr attr = *listening->endpoint_qp;
    if (rdma_create_qp(event->id, listen->pd, &attr) != 0) error = errno;
  }
  if (error != 0) {
    listen->event = event;
    return Result(error);
  }
  *id = event->id;
  (*id)->event = event;
  return 0;
}
