// REP and RTU: the passive side accepts; the active side sets up its queue pair and confirms.

#include <errno.h>
#include <rdma/rdma_cma.h>

#include <algorithm>

#include "softverbs/base/export.h"
#include "softverbs/cm/advance_qp.h"
#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/deliver.h"
#include "softverbs/cm/param.h"
#include "softverbs/cm/service.h"
#include "softverbs/cm/steps.h"

namespace softverbs::cm {
namespace {

void OnReadyTimeout(CmId* id) SV_REQUIRES(state_mutex) {
  if (id->state != IdState::kReplySent) return;
  id->state = IdState::kClosed;
  id->PushEvent(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

// Agrees to what the peer asked for, cut to what the device has, unless the application says
// otherwise.
void AgreeAsResponder(CmId* id, const rdma_conn_param* param) SV_REQUIRES(state_mutex) {
  Agreement& agreed = id->agreed;
  if (param != nullptr && param->initiator_depth != RDMA_MAX_INIT_DEPTH) {
    agreed.initiator_depth = param->initiator_depth;
  } else {
    agreed.initiator_depth = std::min(agreed.initiator_depth, id->limits.initiator_depth);
  }
  if (param != nullptr && param->responder_resources != RDMA_MAX_RESP_RES) {
    agreed.responder_resources = param->responder_resources;
  } else {
    agreed.responder_resources =
        std::min(agreed.responder_resources, id->limits.responder_resources);
  }
}

int SendReply(CmId* id, const rdma_conn_param* param) {
  const LockGuard lock(state_mutex);
  if (id->state != IdState::kRequestReceived) return EINVAL;  // the peer went in the meantime
  Message reply = MakeMessage(MessageKind::kReply);
  FillParam(id, param, &reply);
  size_t used = 0;
  if (param != nullptr &&
      !AppendData(param->private_data, param->private_data_len, kReplyDataMax, &used, &reply)) {
    return EINVAL;
  }
  reply.ece_vendor = id->remote_ece.vendor_id;
  reply.ece_options = id->local_ece.options;
  id->state = IdState::kReplySent;
  id->RunLater(kAnswerTimeoutNs, OnReadyTimeout);
  id->Send(reply);  // a peer that is gone is seen as the end of the socket
  return 0;
}

int Accept(CmId* id, const rdma_conn_param* param) {
  if (id->qp == nullptr && param == nullptr) return EINVAL;
  if (const int error = CheckParam(id, param)) return error;
  {
    const LockGuard lock(state_mutex);
    if (id->state != IdState::kRequestReceived) return EINVAL;
    AgreeAsResponder(id, param);
  }
  if (const int error = ToReadyToSend(id)) return error;
  const int error = SendReply(id, param);
  if (error == 0) return 0;
  // As in the kernel, an accept that fails refuses the connection.
  ToError(id);
  rdma_reject(id, nullptr, 0);
  return error;
}

}  // namespace

void OnReply(CmId* id, const Message& reply) {
  if (id->IsDatagram() || id->state != IdState::kRequestSent) return;
  id->agreed.responder_resources = reply.initiator_depth;
  id->agreed.initiator_depth = reply.responder_resources;
  id->agreed.remote_reads = reply.initiator_depth > 0;
  id->agreed.rnr_retry_count = reply.rnr_retry_count;
  id->agreed.remote_psn = reply.psn;
  id->agreed.remote_qp_num = reply.qp_num;
  id->remote_ece.vendor_id = reply.ece_vendor;
  id->remote_ece.options = reply.ece_options;
  id->state = IdState::kReplyReceived;
  auto event = id->NewEvent(RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
  ShowParam(reply, kReplyDataMax, event.get());
  event->param.conn.retry_count = 0;  // a REP has none
  id->QueueEvent(std::move(event));
}

void OnReadyToUse(CmId* id) {
  if (id->state != IdState::kReplySent) return;
  id->state = IdState::kEstablished;
  id->PushEvent(RDMA_CM_EVENT_ESTABLISHED, 0);
}

int FinishConnect(CmId* id) {
  int error = ToReadyToSend(id);
  if (error == 0) {
    const LockGuard lock(state_mutex);
    if (id->state == IdState::kReplyReceived) {
      id->Send(MakeMessage(MessageKind::kReadyToUse));
      id->state = IdState::kEstablished;
    } else {
      error = EINVAL;
    }
  }
  if (error != 0) ToError(id);
  return error;
}

}  // namespace softverbs::cm

using softverbs::cm::CmId;
using softverbs::cm::Result;

SOFTVERBS_EXPORT int rdma_accept(rdma_cm_id* handle, rdma_conn_param* conn_param) {
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  if (id->IsDatagram()) return Result(softverbs::cm::AcceptService(id, conn_param));
  if (const int error = softverbs::cm::Accept(id, conn_param)) return Result(error);
  return softverbs::cm::Complete(id);
}

SOFTVERBS_EXPORT int rdma_establish(rdma_cm_id* handle) {
  CmId* id = CmId::From(handle);
  if (id == nullptr || id->qp != nullptr) return Result(EINVAL);
  return Result(softverbs::cm::FinishConnect(id));
}

SOFTVERBS_EXPORT int rdma_notify(rdma_cm_id* handle, ibv_event_type event) {
  CmId* id = CmId::From(handle);
  if (id == nullptr || event != IBV_EVENT_COMM_EST) return Result(EINVAL);
  const softverbs::LockGuard lock(softverbs::cm::state_mutex);
  if (!id->Connecting()) return Result(EINVAL);
  // Data came before the RTU, so the connection is established.
  softverbs::cm::OnReadyToUse(id);
  return 0;
}
