// DREQ and DREP: an established connection ends, by either side or because the peer died.

#include <errno.h>
#include <rdma/rdma_cma.h>

#include "softverbs/base/export.h"
#include "softverbs/cm/advance_qp.h"
#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/steps.h"

namespace softverbs::cm {
namespace {

void OnTimeWaitOver(CmId* id) SV_REQUIRES(state_mutex) {
  if (id->state != IdState::kTimeWait) return;
  id->state = IdState::kClosed;
  id->PushEvent(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

void EnterTimeWait(CmId* id) SV_REQUIRES(state_mutex) {
  id->state = IdState::kTimeWait;
  id->RunLater(kTimeWaitNs, OnTimeWaitOver);
}

void Disconnected(CmId* id, int status) SV_REQUIRES(state_mutex) {
  id->PushEvent(RDMA_CM_EVENT_DISCONNECTED, status);
  EnterTimeWait(id);
}

// Called if the peer's application neither disconnected nor destroyed its id in all this time.
void OnDisconnectTimeout(CmId* id) SV_REQUIRES(state_mutex) {
  if (id->state == IdState::kDisconnectSent) Disconnected(id, -ETIMEDOUT);
}

// REQUIRES: mutex held.
int Disconnect(CmId* id) SV_REQUIRES(state_mutex) {
  if (!id->Connecting()) return EINVAL;
  if (id->state == IdState::kEstablished) {
    id->Send(MakeMessage(MessageKind::kDisconnectRequest));
    id->state = IdState::kDisconnectSent;
    id->RunLater(kAnswerTimeoutNs, OnDisconnectTimeout);
  } else if (id->state == IdState::kDisconnectReceived) {
    id->Send(MakeMessage(MessageKind::kDisconnectReply));
    EnterTimeWait(id);
  }
  // In all other states there is nothing to send, and the kernel does not call that an error.
  return 0;
}

}  // namespace

void OnDisconnectRequest(CmId* id) {
  if (id->state == IdState::kEstablished) {
    id->state = IdState::kDisconnectReceived;
    id->PushEvent(RDMA_CM_EVENT_DISCONNECTED, 0);
  } else if (id->state == IdState::kDisconnectSent) {  // both at once
    id->Send(MakeMessage(MessageKind::kDisconnectReply));
    Disconnected(id, 0);
  }
}

void OnDisconnectReply(CmId* id) {
  if (id->state == IdState::kDisconnectSent) Disconnected(id, 0);
}

void OnConnectionLost(CmId* id) {
  if (id->state == IdState::kEstablished || id->state == IdState::kDisconnectSent) {
    Disconnected(id, 0);
  }
}

}  // namespace softverbs::cm

SOFTVERBS_EXPORT int rdma_disconnect(rdma_cm_id* handle) {
  using softverbs::cm::CmId;
  using softverbs::cm::Result;
  CmId* id = CmId::From(handle);
  if (id == nullptr || id->verbs == nullptr) return Result(EINVAL);
  if (id->IsDatagram()) return Result(softverbs::cm::ToError(id));  // there is nobody to tell
  // The side that disconnects stops its own queue pair. The peer's goes on until its application
  // acts.
  if (const int error = softverbs::cm::ToError(id)) return Result(error);
  {
    const softverbs::LockGuard lock(softverbs::cm::state_mutex);
    if (const int error = softverbs::cm::Disconnect(id)) return Result(error);
  }
  return softverbs::cm::Complete(id);
}
