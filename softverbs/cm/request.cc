// REQ: rdma_connect sends it, and the listener's side makes a new id from it.

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <memory>
#include <utility>

#include "softverbs/base/devices.h"
#include "softverbs/base/export.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/port_state.h"
#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/listening_socket.h"
#include "softverbs/cm/param.h"
#include "softverbs/cm/peer_socket.h"
#include "softverbs/cm/port_name.h"
#include "softverbs/cm/remote.h"
#include "softverbs/cm/steps.h"
#include "softverbs/fault/faults.h"
#include "softverbs/nic/nic.h"

namespace softverbs::cm {
namespace {

// How long to wait before trying again a listener that has no room or is not there yet.
constexpr int64_t kRetryNs = 2'000'000;
// The same for another host, which told so. It may have many to answer.
constexpr int64_t kRetryHostNs = 20'000'000;
// How often to look for a missing listener: for 100 ms. On a network the way to the peer takes
// longer than here, and some programs depend on that: perftest -R connects before its server
// listens. Looks are counted rather than time: on a busy machine this thread comes late, and so
// does the server.
constexpr int kListenerLooks = 50;

void SendRequest(CmId* id) SV_REQUIRES(state_mutex);

// Connects `fd` to the listener for the id's destination. Returns 0, EAGAIN if it has no room just
// now, ECONNREFUSED if there is none, or another errno.
int ConnectToListener(const CmId* id, int fd) SV_REQUIRES(state_mutex) {
  for (const std::string& name : ListenerNames(id->ps, id->remote)) {
    const UnixName to = ToUnix(name);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0) return 0;
    if (errno != ECONNREFUSED) return errno;
  }
  return ECONNREFUSED;
}

void Unreachable(CmId* id, int error) SV_REQUIRES(state_mutex) {
  id->state = IdState::kClosed;
  id->PushEvent(RDMA_CM_EVENT_UNREACHABLE, -error);
}

void OnAnswerTimeout(CmId* id) SV_REQUIRES(state_mutex) {
  if (id->state == IdState::kRequestSent) Unreachable(id, ETIMEDOUT);
}

void RetryRequest(CmId* id) SV_REQUIRES(state_mutex) {
  if (id->state == IdState::kRequestSent && id->peer == nullptr) SendRequest(id);
}

// Sends the request on a connection that was made for it.
void SendOn(CmId* id, std::shared_ptr<PeerSocket> peer) SV_REQUIRES(state_mutex) {
  id->peer = std::move(peer);
  id->peer->owner = &id->receiver;
  id->peer->GoThrough(PortOf(id->local.ToGid()));
  // If the listener goes right now, that is seen as the end of the socket.
  id->peer->Send(*id->request);
  id->peer->Start();
}

// Goes on after a dial, with its result.
void OnDialed(uint64_t handle, const ibv_gid& host, DialResult result) {
  const LockGuard lock(state_mutex);
  CmId* id = CmId::Lookup(handle);
  if (id == nullptr || id->state != IdState::kRequestSent || id->peer != nullptr) return;
  if (result.error == 0)
    return SendOn(id, std::make_shared<PeerSocket>(std::move(result.socket), host));
  const bool refused = result.error == ECONNREFUSED || result.error == ECONNRESET;
  const bool may_come = refused && id->listener_looks_left-- > 0;
  id->unanswered_dials += result.error == ETIMEDOUT ? 1 : 0;
  if (result.error == EAGAIN) return id->RunLater(kRetryHostNs, RetryRequest);
  if (may_come || result.error == ETIMEDOUT) return id->RunLater(kRetryNs, RetryRequest);
  if (result.error == ECONNREFUSED) return PushRejected(id, RejectReason::kNoListener, nullptr);
  Unreachable(id, result.error);
}

void DialListener(CmId* id, const ibv_gid& host) SV_REQUIRES(state_mutex) {
  const NetOpening opening = Nic::Get()->remote_links().NewOpening(
      NetKind::kService, id->remote.port(), static_cast<uint32_t>(id->ps));
  DialHost(id->local.Unmapped().ToGid(), host, opening, id->unanswered_dials,
           [handle = id->handle, host](DialResult result) {
             OnDialed(handle, host, std::move(result));
           });
}

// Sends the request. Everything that happens from here on is reported as an event. REQUIRES:
// id->port_holder and id->request are there.
void SendRequest(CmId* id) SV_REQUIRES(state_mutex) {
  if (IsPortDown(PortOf(id->local.ToGid()))) return id->RunLater(kRetryHostNs, RetryRequest);
  // The port's holder stays with the id.
  if (SourceForHost(id->remote)) return DialListener(id, id->remote.Unmapped().ToGid());
  const int error = ConnectToListener(id, id->port_holder.get());
  const bool may_come = error == ECONNREFUSED && id->listener_looks_left-- > 0;
  if (error == EAGAIN || may_come) return id->RunLater(kRetryNs, RetryRequest);
  if (error == ECONNREFUSED) return PushRejected(id, RejectReason::kNoListener, nullptr);
  if (error != 0) return Unreachable(id, error);
  if (!PeerSocket::PeerIsTrusted(id->port_holder.get())) return Unreachable(id, EACCES);
  SendOn(id, std::make_shared<PeerSocket>(std::move(id->port_holder)));
}

void AgreeAsRequester(CmId* id, const rdma_conn_param* param) SV_REQUIRES(state_mutex) {
  const DeviceLimits& limits = id->limits;
  const bool depth_given = param != nullptr && param->initiator_depth != RDMA_MAX_INIT_DEPTH;
  const bool resources_given = param != nullptr && param->responder_resources != RDMA_MAX_RESP_RES;
  id->agreed.initiator_depth = depth_given ? param->initiator_depth : limits.initiator_depth;
  id->agreed.responder_resources =
      resources_given ? param->responder_resources : limits.responder_resources;
  id->agreed.remote_reads = id->agreed.responder_resources > 0;
  id->agreed.local_psn = RandomPsn();
}

size_t RequestDataMax(const CmId* id) {
  return id->IsDatagram() ? kServiceRequestDataMax : kRequestDataMax;
}

// Returns 0 or an errno. REQUIRES: mutex held.
int Connect(CmId* id, const rdma_conn_param* param) SV_REQUIRES(state_mutex) {
  if (id->state != IdState::kRouteResolved) return EINVAL;
  if (const int error = CheckParam(id, param)) return error;
  Message request =
      MakeMessage(id->IsDatagram() ? MessageKind::kServiceRequest : MessageKind::kRequest);
  const size_t data_max = RequestDataMax(id);
  size_t used = 0;
  if (!AppendData(id->endpoint_data.data(), id->endpoint_data.size(), data_max, &used, &request) ||
      (param != nullptr &&
       !AppendData(param->private_data, param->private_data_len, data_max, &used, &request))) {
    return EINVAL;
  }
  if (!id->port_holder) id->port_holder = UnnamedSocket();  // a shared port has no holder
  if (!id->port_holder) return errno;
  AgreeAsRequester(id, param);
  FillParam(id, param, &request);
  id->agreed.retry_count = request.retry_count;
  request.source = id->local.ToWire();
  request.destination = id->remote.ToWire();
  request.ece_vendor = id->local_ece.vendor_id;
  request.ece_options = id->local_ece.options;
  id->request = request;
  id->state = IdState::kRequestSent;
  id->listener_looks_left = kListenerLooks;
  id->RunLater(kAnswerTimeoutNs, OnAnswerTimeout);
  if (fault::StrikesNextCall(fault::FaultKind::kRefuseConnect)) {
    PushRejected(id, RejectReason::kNoListener, nullptr);
  } else if (const auto delay_ns = fault::StrikesNextCall(fault::FaultKind::kSlowConnect)) {
    id->RunLater(*delay_ns, RetryRequest);
  } else {
    SendRequest(id);
  }
  return 0;
}

void Reject(const std::shared_ptr<PeerSocket>& peer, RejectReason reason) {
  Message reject = MakeMessage(MessageKind::kReject);
  reject.reason = static_cast<uint32_t>(reason);
  peer->Send(reject);
  peer->Close();  // called from the socket's own handler
}

// A request for a listener whose port is down. It does not arrive, and who sent it repeats it until
// its patience ends. So it is kept here, and looked at again.
class HeldRequest final : public PeerOwner, public std::enable_shared_from_this<HeldRequest> {
 public:
  HeldRequest(std::shared_ptr<PeerSocket> peer, const Message& request)
      : peer_(std::move(peer)), request_(request) {}

  void Hold(uint64_t listener) SV_REQUIRES(state_mutex) {
    peer_->owner = this;
    Loop::Get().RunAt(MonotonicNs() + kRetryHostNs, [held = shared_from_this(), listener] {
      const LockGuard lock(state_mutex);
      held->LookAgain(listener);
    });
  }
  void OnMessage(std::shared_ptr<PeerSocket>, const Message&) SV_REQUIRES(state_mutex) override {}
  void OnEnd(const std::shared_ptr<PeerSocket>& peer) SV_REQUIRES(state_mutex) override {
    peer->owner = nullptr;
    is_over_ = true;
  }

 private:
  void LookAgain(uint64_t listener) SV_REQUIRES(state_mutex) {
    if (is_over_) return;
    peer_->owner = nullptr;
    CmId* id = CmId::Lookup(listener);
    if (id != nullptr && id->state == IdState::kListening) OnRequest(id, peer_, request_);
  }

  const std::shared_ptr<PeerSocket> peer_;
  const Message request_;
  bool is_over_ SV_GUARDED_BY(state_mutex) = false;
};

}  // namespace

void OnRequest(CmId* listening, std::shared_ptr<PeerSocket> peer, const Message& request) {
  const auto local = Address::From(request.destination);
  const auto remote = Address::From(request.source);
  if (!local || !remote || local->port() != listening->local.port()) {
    return Reject(peer, RejectReason::kNoListener);
  }
  if (IsPortDown(PortOf(local->ToGid()))) {
    return std::make_shared<HeldRequest>(std::move(peer), request)->Hold(listening->handle);
  }
  if (!listening->listener->TakePlace()) return Reject(peer, RejectReason::kConsumer);
  auto* id =
      new CmId(listening->events, /*sync=*/false, nullptr, listening->ps, listening->qp_type);
  id->state = IdState::kRequestReceived;
  id->parent = listening;
  id->local = *local;
  id->remote = *remote;
  id->agreed = {.responder_resources = request.initiator_depth,
                .initiator_depth = request.responder_resources,
                .remote_reads = request.initiator_depth > 0,
                .retry_count = request.retry_count,
                .rnr_retry_count = request.rnr_retry_count,
                .local_psn = RandomPsn(),
                .remote_psn = request.psn,
                .remote_qp_num = request.qp_num};
  id->remote_ece.vendor_id = request.ece_vendor;
  id->remote_ece.options = request.ece_options;
  peer->owner = &id->receiver;
  peer->GoThrough(PortOf(local->ToGid()));
  id->peer = std::move(peer);

  auto event = listening->NewEvent(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
  event->id = id;
  event->listen_id = listening;
  if (listening->IsDatagram()) {
    ShowService(request, kServiceRequestDataMax, event.get());
  } else {
    ShowParam(request, kRequestDataMax, event.get());
  }
  listening->QueueEvent(std::move(event));
}

}  // namespace softverbs::cm

SOFTVERBS_EXPORT int rdma_connect(rdma_cm_id* handle, rdma_conn_param* conn_param) {
  using softverbs::cm::CmId;
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  {
    const softverbs::LockGuard lock(softverbs::cm::state_mutex);
    if (const int error = softverbs::cm::Connect(id, conn_param)) {
      return softverbs::cm::Result(error);
    }
  }
  id->endpoint_data.clear();
  return softverbs::cm::Complete(id);
}
