#include "softverbs/cm/cm_id.h"

#include <errno.h>

#include <cstdlib>
#include <utility>

#include "softverbs/base/devices.h"
#include "softverbs/base/export.h"
#include "softverbs/base/fork.h"
#include "softverbs/base/log.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/cm/acquired_device.h"
#include "softverbs/cm/listening_socket.h"

namespace softverbs::cm {
namespace {

constexpr uint16_t kDefaultPkey = 0xffff;

Message RejectMessage(RejectReason reason) {
  Message reject = MakeMessage(MessageKind::kReject);
  reject.reason = static_cast<uint32_t>(reason);
  return reject;
}

// Tells the peer what it must hear if the id is destroyed in its present state.
void SayGoodbye(CmId* id) SV_REQUIRES(state_mutex) {
  switch (id->state) {
    case IdState::kRequestSent:
      id->Send(RejectMessage(RejectReason::kTimeout));
      break;
    case IdState::kRequestReceived:
    case IdState::kReplyReceived:
    case IdState::kReplySent:
      id->Send(RejectMessage(RejectReason::kConsumer));
      break;
    case IdState::kEstablished:
      id->Send(MakeMessage(MessageKind::kDisconnectRequest));
      break;
    case IdState::kDisconnectReceived:
      id->Send(MakeMessage(MessageKind::kDisconnectReply));
      break;
    default:
      break;
  }
}

// Takes back the id's queued events. Returns the ids that only its connection requests know.
std::vector<CmId*> PurgeEvents(CmId* id) SV_REQUIRES(state_mutex) {
  std::vector<CmId*> unseen;
  for (const auto& event : id->events->Take(id)) {
    id->outstanding--;
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) continue;
    auto* child = static_cast<CmId*>(event->id);
    child->parent = nullptr;
    unseen.push_back(child);
  }
  return unseen;
}

}  // namespace

CmId::CmId(std::shared_ptr<EventChannel> channel, bool is_sync, void* user_context,
           rdma_port_space port_space, ibv_qp_type type)
    : rdma_cm_id{},
      handle(++State::Get().last_handle),
      fork_generation(ForkGeneration()),
      events(std::move(channel)),
      sync(is_sync) {
  rdma_cm_id::channel = events.get();
  context = user_context;
  ps = port_space;
  qp_type = type;
  State::Get().ids.emplace(handle, this);
}

CmId::~CmId() {
  if (holds_device) ReleaseDevice(device_number);
  free(route.path_rec);
}

CmId* CmId::From(rdma_cm_id* id) {
  auto* cm = static_cast<CmId*>(id);
  if (cm != nullptr && cm->fork_generation == ForkGeneration()) return cm;
  errno = EINVAL;
  return nullptr;
}

CmId* CmId::Lookup(uint64_t handle) {
  const auto& ids = State::Get().ids;
  const auto found = ids.find(handle);
  return found == ids.end() ? nullptr : found->second;
}

std::unique_ptr<QueuedEvent> CmId::NewEvent(rdma_cm_event_type type, int status) {
  auto event = std::make_unique<QueuedEvent>();
  event->account = this;
  event->id = this;
  event->event = type;
  event->status = status;
  return event;
}

void CmId::QueueEvent(std::unique_ptr<QueuedEvent> event) {
  event->account->outstanding++;
  events->Push(std::move(event));
}

void CmId::PushEvent(rdma_cm_event_type type, int status) { QueueEvent(NewEvent(type, status)); }

int CmId::BindDevice() {
  if (holds_device) return 0;
  int port = 0;
  {
    const LockGuard lock(state_mutex);
    port = PortOf(local.ToGid());
    device_number = DeviceOf(port);
  }
  AcquiredDevice device;
  if (const int error = AcquireDevice(device_number, &device)) return error;
  holds_device = true;
  verbs = device.context;
  // A passive endpoint may already have its own domain.
  if (pd == nullptr) pd = device.pd;
  limits = device.limits;
  port_num = PortNumber(port);
  route.addr.addr.ibaddr.pkey = htobe16(kDefaultPkey);
  return 0;
}

bool CmId::Send(const Message& message) { return peer != nullptr && peer->Send(message); }

void CmId::RunLater(int64_t delay_ns, void (*fn)(CmId*)) {
  timers.push_back(Loop::Get().RunAt(MonotonicNs() + delay_ns, [handle = handle, fn] {
    const LockGuard lock(state_mutex);
    if (CmId* id = Lookup(handle)) fn(id);
  }));
}

int CreateId(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space ps,
             ibv_qp_type type) {
  if (ps == RDMA_PS_IPOIB) {
    Report("no port space RDMA_PS_IPOIB: there is no IPoIB on Ethernet");
    return EOPNOTSUPP;
  }
  if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IB) {
    Report("unknown port space 0x%x", static_cast<unsigned>(ps));
    return EINVAL;
  }
  if (type != (ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC)) return EOPNOTSUPP;
  const bool sync = channel == nullptr;
  auto events = sync ? EventChannel::Create() : EventChannel::Find(channel);
  if (events == nullptr) return sync ? errno : EBADF;
  const LockGuard lock(state_mutex);
  *id = new CmId(std::move(events), sync, context, ps, type);
  return 0;
}

int Result(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

int Complete(CmId* id) {
  if (!id->sync) return 0;
  if (id->event != nullptr) rdma_ack_cm_event(std::exchange(id->event, nullptr));
  if (const int failed = rdma_get_cm_event(id->channel, &id->event)) return failed;
  if (id->event->status == 0) return 0;
  if (id->event->event == RDMA_CM_EVENT_REJECTED) return Result(ECONNREFUSED);
  return Result(std::abs(id->event->status));
}

void Shutdown(CmId* id) {
  std::shared_ptr<PeerSocket> peer;
  std::shared_ptr<ListeningSocket> listener;
  std::vector<Loop::Timer> timers;
  {
    const LockGuard lock(state_mutex);
    State::Get().ids.erase(id->handle);
    SayGoodbye(id);
    id->state = IdState::kClosed;
    peer = std::move(id->peer);
    if (peer != nullptr) peer->owner = nullptr;
    listener = id->listener;  // requests may still arrive until it is closed
    timers.swap(id->timers);
  }
  for (const Loop::Timer timer : timers) Loop::Get().Cancel(timer);
  if (listener != nullptr) listener->Close();
  if (peer != nullptr) peer->Close();
  std::vector<CmId*> unseen;
  {
    const LockGuard lock(state_mutex);
    id->listener = nullptr;
    id->port_holder.Reset();
    unseen = PurgeEvents(id);
  }
  for (CmId* child : unseen) DestroyUnseen(child);
}

void DestroyUnseen(CmId* id) {
  Shutdown(id);
  delete id;
}

}  // namespace softverbs::cm

using softverbs::cm::CmId;
using softverbs::cm::EventChannel;
using softverbs::cm::Result;

SOFTVERBS_EXPORT int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                                    rdma_port_space ps) {
  const ibv_qp_type type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
  return Result(softverbs::cm::CreateId(channel, id, context, ps, type));
}

SOFTVERBS_EXPORT int rdma_destroy_id(rdma_cm_id* handle) {
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  softverbs::cm::Shutdown(id);
  if (id->event != nullptr) rdma_ack_cm_event(id->event);
  {
    const softverbs::LockGuard lock(softverbs::cm::state_mutex);
    while (id->outstanding != 0) softverbs::cm::state_mutex.Wait(id->acknowledged);
  }
  if (id->sync) EventChannel::Forget(id->channel);
  delete id;
  return 0;
}
