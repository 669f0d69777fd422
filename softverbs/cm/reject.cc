// REJ: either side refuses, or goes away before the connection is established.

#include <errno.h>
#include <rdma/rdma_cma.h>

#include <cstring>

#include "softverbs/base/export.h"
#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/listening_socket.h"
#include "softverbs/cm/param.h"
#include "softverbs/cm/peer_socket.h"
#include "softverbs/cm/steps.h"

namespace softverbs::cm {
namespace {

// Drops a request whose sender went before the application saw it, as if it had never come.
bool DropUnseen(CmId* id) SV_REQUIRES(state_mutex) {
  CmId* listening = id->parent;
  if (listening == nullptr || listening->events->TakeRequest(id) == nullptr) return false;
  listening->outstanding--;
  if (listening->listener != nullptr) listening->listener->GivePlaceBack();
  id->parent = nullptr;
  id->peer->owner = nullptr;
  // Destroys it later, because this runs in the handler of the id's own socket, with the mutex
  // held.
  Loop::Get().Post([id] { DestroyUnseen(id); });
  return true;
}

// Returns whether a refusal makes sense in the id's state.
bool Answering(const CmId* id) SV_REQUIRES(state_mutex) {
  switch (id->state) {
    case IdState::kRequestSent:
    case IdState::kRequestReceived:
    case IdState::kReplyReceived:
    case IdState::kReplySent:
      return true;
    default:
      return false;
  }
}

int Reject(CmId* id, RejectReason reason, const void* data, size_t size) {
  Message reject = MakeMessage(MessageKind::kReject);
  reject.reason = static_cast<uint32_t>(reason);
  size_t used = 0;
  const size_t data_max = id->IsDatagram() ? kServiceReplyDataMax : kRejectDataMax;
  if (!AppendData(data, size, data_max, &used, &reject)) return EINVAL;
  const LockGuard lock(state_mutex);
  if (!Answering(id) || id->state == IdState::kRequestSent) return EINVAL;
  id->Send(reject);
  id->state = IdState::kClosed;
  return 0;
}

}  // namespace

namespace {

// A service that cannot be resolved is unreachable. The status is that of a SIDR_REP.
void PushUnresolved(CmId* id, RejectReason reason, const uint8_t* data) SV_REQUIRES(state_mutex) {
  constexpr int kUnsupported = 1;
  constexpr int kRefused = 2;
  const int status = reason == RejectReason::kTimeout      ? -ETIMEDOUT
                     : reason == RejectReason::kNoListener ? kUnsupported
                                                           : kRefused;
  auto event = id->NewEvent(RDMA_CM_EVENT_UNREACHABLE, status);
  if (data != nullptr) std::memcpy(event->data.data(), data, kServiceReplyDataMax);
  event->param.ud.private_data = event->data.data();
  event->param.ud.private_data_len = kServiceReplyDataMax;
  id->QueueEvent(std::move(event));
}

// A peer that asked for a service may go before the answer, without harm to this side.
bool IsAskedForService(const CmId* id) SV_REQUIRES(state_mutex) {
  return id->IsDatagram() && id->state == IdState::kRequestReceived;
}

}  // namespace

void PushRejected(CmId* id, RejectReason reason, const uint8_t* data) {
  id->state = IdState::kClosed;
  if (id->IsDatagram()) return PushUnresolved(id, reason, data);
  auto event = id->NewEvent(RDMA_CM_EVENT_REJECTED, static_cast<int>(reason));
  if (data != nullptr) std::memcpy(event->data.data(), data, kRejectDataMax);
  event->param.conn.private_data = event->data.data();
  event->param.conn.private_data_len = kRejectDataMax;
  id->QueueEvent(std::move(event));
}

void OnReject(CmId* id, const Message& reject) {
  if (!Answering(id) || DropUnseen(id) || IsAskedForService(id)) return;
  PushRejected(id, static_cast<RejectReason>(reject.reason & 0xffff), reject.private_data);
}

void OnPeerGone(CmId* id) {
  if (!Answering(id)) return OnConnectionLost(id);
  if (DropUnseen(id) || IsAskedForService(id)) return;
  // What the kernel reports if a process is killed while it connects or accepts.
  const bool asked = id->state == IdState::kRequestReceived;
  PushRejected(id, asked || id->IsDatagram() ? RejectReason::kTimeout : RejectReason::kConsumer,
               nullptr);
}

}  // namespace softverbs::cm

using softverbs::cm::CmId;
using softverbs::cm::RejectReason;
using softverbs::cm::Result;

SOFTVERBS_EXPORT int rdma_reject(rdma_cm_id* handle, const void* private_data,
                                 uint8_t private_data_len) {
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  return Result(softverbs::cm::Reject(id, RejectReason::kConsumer, private_data, private_data_len));
}

SOFTVERBS_EXPORT int rdma_reject_ece(rdma_cm_id* handle, const void* private_data,
                                     uint8_t private_data_len) {
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  return Result(
      softverbs::cm::Reject(id, RejectReason::kVendorOption, private_data, private_data_len));
}
