// rdma_get_cm_event: what happens to an id when its application hears of an event. As with
// rdma-core, that is more than reading: this fills in public fields and moves the queue pair, on
// the application's thread. And the events that the application writes itself.

#include "softverbs/cm/deliver.h"

#include <endian.h>
#include <errno.h>
#include <rdma/rdma_cma.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "softverbs/base/export.h"
#include "softverbs/cm/acquired_device.h"
#include "softverbs/cm/advance_qp.h"
#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/enter_group.h"
#include "softverbs/cm/listening_socket.h"

namespace softverbs::cm {
namespace {

constexpr uint8_t kExactly = 2;  // selector of a path record's mtu, rate and life time
constexpr uint8_t kPathRate = IBV_RATE_100_GBPS;
constexpr uint8_t kPathLifeTime = 16;  // what the kernel assumes for RoCE

enum class Verdict { kDeliver, kDrop };

// Returns 0 or an errno.
int PublishAddresses(CmId* id) {
  Address local, remote;
  {
    const LockGuard lock(state_mutex);
    local = id->local;
    remote = id->remote;
  }
  local.CopyTo(&id->route.addr.src_storage);
  remote.CopyTo(&id->route.addr.dst_storage);
  id->route.addr.addr.ibaddr.sgid = local.ToGid();
  id->route.addr.addr.ibaddr.dgid = remote.ToGid();
  return id->BindDevice();
}

// Returns 0 or an errno.
int PublishPath(CmId* id) {
  if (id->route.path_rec != nullptr) return 0;
  auto* path = static_cast<ibv_sa_path_rec*>(calloc(1, sizeof(ibv_sa_path_rec)));
  if (path == nullptr) return ENOMEM;
  ibv_port_attr port = {};
  ibv_query_port(id->verbs, id->port_num, &port);
  path->sgid = id->route.addr.addr.ibaddr.sgid;
  path->dgid = id->route.addr.addr.ibaddr.dgid;
  path->pkey = id->route.addr.addr.ibaddr.pkey;
  path->hop_limit = kHopLimit;
  path->reversible = 1;
  path->numb_path = 1;
  path->mtu_selector = kExactly;
  path->mtu = static_cast<uint8_t>(port.active_mtu);
  path->rate_selector = kExactly;
  path->rate = kPathRate;
  path->packet_life_time_selector = kExactly;
  path->packet_life_time = kPathLifeTime;
  id->route.path_rec = path;
  id->route.num_paths = 1;
  return 0;
}

void DeliverAddress(QueuedEvent* event) {
  if (const int error = PublishAddresses(static_cast<CmId*>(event->id))) {
    event->event = RDMA_CM_EVENT_ADDR_ERROR;
    event->status = -error;
  }
}

void DeliverRoute(QueuedEvent* event) {
  auto* id = static_cast<CmId*>(event->id);
  if (const int error = id->verbs == nullptr ? ENODEV : PublishPath(id)) {
    event->event = RDMA_CM_EVENT_ROUTE_ERROR;
    event->status = -error;
  }
}

// Makes the new id known to the application, on the listener's channel. If the listener is
// synchronous, the new id gets a channel of its own.
Verdict DeliverRequest(QueuedEvent* event) {
  auto* id = static_cast<CmId*>(event->id);
  auto* listening = static_cast<CmId*>(event->listen_id);
  {
    const LockGuard lock(state_mutex);
    id->parent = nullptr;
    if (listening->listener != nullptr) listening->listener->GivePlaceBack();
  }
  id->context = listening->context;
  const bool ready = PublishAddresses(id) == 0 && PublishPath(id) == 0 &&
                     (!listening->sync || rdma_migrate_id(id, nullptr) == 0);
  if (ready) return Verdict::kDeliver;
  rdma_destroy_id(id);  // refuses the connection
  return Verdict::kDrop;
}

void DeliverResponse(QueuedEvent* event) {
  auto* id = static_cast<CmId*>(event->id);
  if (id->qp == nullptr) return;  // the application moves its queue pair and calls rdma_establish
  if (FinishConnect(id) == 0) {
    event->event = RDMA_CM_EVENT_ESTABLISHED;
    return;
  }
  event->event = RDMA_CM_EVENT_CONNECT_ERROR;
  event->status = -1;
  const LockGuard lock(state_mutex);
  id->connect_error = true;
}

// Drops the event after a CONNECT_ERROR: the application must not hear twice that a connection
// ended.
Verdict DeliverEnd(QueuedEvent* event) {
  auto* id = static_cast<CmId*>(event->id);
  {
    const LockGuard lock(state_mutex);
    if (id->connect_error) return Verdict::kDrop;
  }
  if (event->event == RDMA_CM_EVENT_REJECTED) ToError(id);
  return Verdict::kDeliver;
}

Verdict Deliver(QueuedEvent* event) {
  switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      DeliverAddress(event);
      return Verdict::kDeliver;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      DeliverRoute(event);
      return Verdict::kDeliver;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      return DeliverRequest(event);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      DeliverResponse(event);
      return Verdict::kDeliver;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
      return EnterGroup(event) ? Verdict::kDeliver : Verdict::kDrop;
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
      return DeliverEnd(event);
    default:
      return Verdict::kDeliver;
  }
}

}  // namespace
}  // namespace softverbs::cm

SOFTVERBS_EXPORT int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  using softverbs::cm::EventChannel;
  using softverbs::cm::Result;
  if (channel == nullptr || event == nullptr) return Result(EINVAL);
  const auto events = EventChannel::Find(channel);
  if (events == nullptr) return Result(EBADF);
  for (;;) {
    std::unique_ptr<softverbs::cm::QueuedEvent> next = events->Pop();
    if (next == nullptr) return -1;
    if (softverbs::cm::Deliver(next.get()) == softverbs::cm::Verdict::kDeliver) {
      *event = next.release();
      return 0;
    }
    rdma_ack_cm_event(next.release());
  }
}

SOFTVERBS_EXPORT int rdma_ack_cm_event(rdma_cm_event* event) {
  if (event == nullptr) return softverbs::cm::Result(EINVAL);
  const std::unique_ptr<softverbs::cm::QueuedEvent> owned(
      static_cast<softverbs::cm::QueuedEvent*>(event));
  const softverbs::LockGuard lock(softverbs::cm::state_mutex);
  owned->account->outstanding--;
  owned->account->acknowledged_count++;
  // Notifies under the lock, because the thread that waits may free the id as soon as it gets the
  // lock.
  owned->account->acknowledged.NotifyAll();
  return 0;
}

// An event of the application, which wakes a thread that waits for one.
SOFTVERBS_EXPORT int rdma_write_cm_event(rdma_cm_id* handle, rdma_cm_event_type type, int status,
                                         uint64_t argument) {
  softverbs::cm::CmId* id = softverbs::cm::CmId::From(handle);
  if (id == nullptr || static_cast<int>(type) != softverbs::cm::kUserEvent) {
    return softverbs::cm::Result(EINVAL);
  }
  auto event = id->NewEvent(type, status);
  std::memcpy(&event->param, &argument, sizeof(argument));
  const softverbs::LockGuard lock(softverbs::cm::state_mutex);
  id->QueueEvent(std::move(event));
  return 0;
}
