// SIDR, service id resolution. rdma_connect of a datagram id asks which queue pair the datagrams
// for a port go to (request.cc), and rdma_accept answers. Nothing more passes between the two.

#include "softverbs/cm/service.h"

#include <errno.h>

#include <utility>

#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/param.h"
#include "softverbs/cm/steps.h"

namespace softverbs::cm {

int AcceptService(CmId* id, const rdma_conn_param* param) {
  if (id->qp == nullptr && param == nullptr) return EINVAL;
  Message reply = MakeMessage(MessageKind::kServiceReply);
  reply.qp_num = (id->qp != nullptr ? id->qp->qp_num : param->qp_num) & kQueuePairMask;
  reply.qkey = RDMA_UDP_QKEY;
  size_t used = 0;
  if (param != nullptr && !AppendData(param->private_data, param->private_data_len,
                                      kServiceReplyDataMax, &used, &reply)) {
    return EINVAL;
  }
  const LockGuard lock(state_mutex);
  if (id->state != IdState::kRequestReceived) return EINVAL;
  id->state = IdState::kResolved;
  id->Send(reply);  // best effort: the peer may be gone
  return 0;
}

void OnServiceReply(CmId* id, const Message& reply) {
  if (!id->IsDatagram() || id->state != IdState::kRequestSent) return;
  id->state = IdState::kResolved;
  auto event = id->NewEvent(RDMA_CM_EVENT_ESTABLISHED, 0);
  ShowService(reply, kServiceReplyDataMax, event.get());
  event->param.ud.ah_attr = AddressHandle(id, id->remote);
  id->QueueEvent(std::move(event));
}

}  // namespace softverbs::cm
