// rdma_migrate_id: makes an id report to another channel.

#include <errno.h>
#include <rdma/rdma_cma.h>

#include <utility>

#include "softverbs/base/export.h"
#include "softverbs/cm/cm_id.h"

namespace softverbs::cm {
namespace {

// Moves the id and its queued events, and waits until those already delivered are acknowledged. So
// when it returns, no thread works on an event of the old channel.
void Move(CmId* id, std::shared_ptr<EventChannel> to) {
  const LockGuard lock(state_mutex);
  const std::shared_ptr<EventChannel> from = std::exchange(id->events, std::move(to));
  id->channel = id->events.get();
  auto moved = from->Take(id);
  const int queued = static_cast<int>(moved.size());
  const int delivered = id->outstanding - queued;
  for (auto& event : moved) {
    id->outstanding--;  // QueueEvent counts it again
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      auto* child = static_cast<CmId*>(event->id);  // not known to the application yet
      child->events = id->events;
      child->channel = id->channel;
    }
    id->QueueEvent(std::move(event));
  }
  const uint64_t awaited = id->acknowledged_count + delivered;
  while (id->acknowledged_count < awaited) state_mutex.Wait(id->acknowledged);
}

}  // namespace
}  // namespace softverbs::cm

SOFTVERBS_EXPORT int rdma_migrate_id(rdma_cm_id* handle, rdma_event_channel* channel) {
  using softverbs::cm::CmId;
  using softverbs::cm::EventChannel;
  using softverbs::cm::Result;
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  const bool sync = channel == nullptr;
  if (id->sync && sync) return Result(EINVAL);
  auto to = sync ? EventChannel::Create() : EventChannel::Find(channel);
  if (to == nullptr) return sync ? -1 : Result(EBADF);
  rdma_event_channel* own = id->sync ? id->channel : nullptr;
  if (own != nullptr && id->event != nullptr) {
    rdma_ack_cm_event(std::exchange(id->event, nullptr));
  }
  softverbs::cm::Move(id, std::move(to));
  id->sync = sync;
  if (own != nullptr) EventChannel::Forget(own);
  return 0;
}
