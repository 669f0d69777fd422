#include "softverbs/cm/advance_qp.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

#include "softverbs/base/export.h"

namespace softverbs::cm {
namespace {

// Exponents of 4.096 us * 2^n. 19 = 2.1 s is what the kernel computes for RoCE.
constexpr uint8_t kDefaultAckTimeout = 19;

int FillInit(const CmId* id, ibv_qp_attr* attr) SV_REQUIRES(state_mutex) {
  attr->qp_access_flags = 0;
  if (id->Connecting()) {
    attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (id->agreed.remote_reads && id->agreed.responder_resources > 0) {
      attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
  }
  attr->pkey_index = 0;
  attr->port_num = id->port_num;
  return IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
}

int FillReadyToReceive(const CmId* id, ibv_mtu mtu, ibv_qp_attr* attr) SV_REQUIRES(state_mutex) {
  attr->ah_attr = {};
  attr->ah_attr.is_global = 1;
  attr->ah_attr.port_num = id->port_num;
  attr->ah_attr.grh.dgid = id->remote.ToGid();
  attr->ah_attr.grh.hop_limit = kHopLimit;
  attr->path_mtu = mtu;
  attr->dest_qp_num = id->agreed.remote_qp_num;
  attr->rq_psn = id->agreed.local_psn;
  attr->max_dest_rd_atomic = id->agreed.responder_resources;
  attr->min_rnr_timer = 0;  // the kernel's default: 655 ms
  return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int FillReadyToSend(const CmId* id, ibv_qp_attr* attr) SV_REQUIRES(state_mutex) {
  attr->sq_psn = id->agreed.remote_psn;
  attr->timeout = id->ack_timeout.value_or(kDefaultAckTimeout);
  attr->retry_cnt = id->agreed.retry_count;
  attr->rnr_retry = id->agreed.rnr_retry_count;
  attr->max_rd_atomic = id->agreed.initiator_depth;
  return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC;
}

int FillDatagram(const CmId* id, ibv_qp_attr* attr) {
  switch (attr->qp_state) {
    case IBV_QPS_INIT:
      attr->pkey_index = 0;
      attr->port_num = id->port_num;
      attr->qkey = RDMA_UDP_QKEY;
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    case IBV_QPS_RTR:
      return IBV_QP_STATE;
    case IBV_QPS_RTS:
      attr->sq_psn = 0;
      return IBV_QP_STATE | IBV_QP_SQ_PSN;
    default:
      return 0;
  }
}

ibv_mtu PathMtu(const CmId* id) {
  ibv_port_attr port = {};
  return ibv_query_port(id->verbs, id->port_num, &port) == 0 ? port.active_mtu : IBV_MTU_1024;
}

// Fills in *attr for attr->qp_state and returns the mask, or 0 if the id cannot go to that state.
int FillAttributes(CmId* id, ibv_qp_attr* attr) {
  if (id->IsDatagram()) return FillDatagram(id, attr);
  const ibv_mtu mtu = PathMtu(id);
  const LockGuard lock(state_mutex);
  const bool peer_known = id->Connecting() && id->state != IdState::kRequestSent;
  switch (attr->qp_state) {
    case IBV_QPS_INIT:
      return FillInit(id, attr);
    case IBV_QPS_RTR:
      return peer_known ? FillReadyToReceive(id, mtu, attr) : 0;
    case IBV_QPS_RTS:
      return peer_known ? FillReadyToSend(id, attr) : 0;
    default:
      return 0;
  }
}

int Move(CmId* id, ibv_qp* qp, ibv_qp_state to) {
  ibv_qp_attr attr = {};
  attr.qp_state = to;
  const int mask = FillAttributes(id, &attr);
  return mask == 0 ? EINVAL : ibv_modify_qp(qp, &attr, mask);
}

}  // namespace

int Prepare(CmId* id, ibv_qp* qp) {
  int error = Move(id, qp, IBV_QPS_INIT);
  if (!id->IsDatagram()) return error;
  if (error == 0) error = Move(id, qp, IBV_QPS_RTR);
  return error == 0 ? Move(id, qp, IBV_QPS_RTS) : error;
}

int ToReadyToSend(CmId* id) {
  if (id->qp == nullptr) return 0;
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (const int error = Move(id, id->qp, state)) return error;
  }
  return 0;
}

int ToError(CmId* id) {
  if (id->qp == nullptr) return 0;
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(id->qp, &attr, IBV_QP_STATE);
}

}  // namespace softverbs::cm

SOFTVERBS_EXPORT int rdma_init_qp_attr(rdma_cm_id* handle, ibv_qp_attr* qp_attr,
                                       int* qp_attr_mask) {
  using softverbs::cm::CmId;
  CmId* id = CmId::From(handle);
  if (id == nullptr || id->verbs == nullptr) return softverbs::cm::Result(EINVAL);
  const int mask = softverbs::cm::FillAttributes(id, qp_attr);
  if (mask == 0) return softverbs::cm::Result(EINVAL);
  *qp_attr_mask = mask;
  return 0;
}
