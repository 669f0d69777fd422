#include "softverbs/cm/event_channel.h"

#include <errno.h>

#include <utility>

#include "softverbs/base/export.h"
#include "softverbs/cm/state.h"
#include "softverbs/nic/loop.h"

namespace softverbs::cm {

std::shared_ptr<EventChannel> EventChannel::Create() {
  if (!Loop::Start()) return nullptr;
  std::shared_ptr<EventChannel> channel(new EventChannel);
  if (channel->queue_.fd() < 0) {
    errno = EMFILE;
    return nullptr;
  }
  channel->fd = channel->queue_.fd();
  const LockGuard lock(state_mutex);
  State::Get().channels.emplace(channel.get(), channel);
  return channel;
}

std::shared_ptr<EventChannel> EventChannel::Find(rdma_event_channel* handle) {
  const LockGuard lock(state_mutex);
  const auto& channels = State::Get().channels;
  const auto found = channels.find(handle);
  return found == channels.end() ? nullptr : found->second;
}

void EventChannel::Forget(rdma_event_channel* handle) {
  const std::shared_ptr<EventChannel> last = Find(handle);  // dies after the lock is released
  const LockGuard lock(state_mutex);
  State::Get().channels.erase(handle);
}

void EventChannel::Push(std::unique_ptr<QueuedEvent> event) { queue_.Push(std::move(event)); }

std::unique_ptr<QueuedEvent> EventChannel::Pop() {
  auto event = queue_.Pop();
  return event ? std::move(*event) : nullptr;
}

std::vector<std::unique_ptr<QueuedEvent>> EventChannel::Take(const CmId* account) {
  std::vector<std::unique_ptr<QueuedEvent>> taken;
  queue_.Purge([&](std::unique_ptr<QueuedEvent>& event) {
    if (event->account != account) return false;
    taken.push_back(std::move(event));
    return true;
  });
  return taken;
}

std::unique_ptr<QueuedEvent> EventChannel::TakeRequest(const rdma_cm_id* child) {
  std::unique_ptr<QueuedEvent> taken;
  queue_.Purge([&](std::unique_ptr<QueuedEvent>& event) {
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST || event->id != child) return false;
    taken = std::move(event);
    return true;
  });
  return taken;
}

}  // namespace softverbs::cm

using softverbs::cm::EventChannel;

SOFTVERBS_EXPORT rdma_event_channel* rdma_create_event_channel(void) {
  return EventChannel::Create().get();
}

SOFTVERBS_EXPORT void rdma_destroy_event_channel(rdma_event_channel* channel) {
  EventChannel::Forget(channel);
}

SOFTVERBS_EXPORT const char* rdma_event_str(rdma_cm_event_type event) {
  static constexpr const char* kNames[] = {
      "RDMA_CM_EVENT_ADDR_RESOLVED",
      "RDMA_CM_EVENT_ADDR_ERROR",
      "RDMA_CM_EVENT_ROUTE_RESOLVED",
      "RDMA_CM_EVENT_ROUTE_ERROR",
      "RDMA_CM_EVENT_CONNECT_REQUEST",
      "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",
      "RDMA_CM_EVENT_UNREACHABLE",
      "RDMA_CM_EVENT_REJECTED",
      "RDMA_CM_EVENT_ESTABLISHED",
      "RDMA_CM_EVENT_DISCONNECTED",
      "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN",
      "RDMA_CM_EVENT_MULTICAST_ERROR",
      "RDMA_CM_EVENT_ADDR_CHANGE",
      "RDMA_CM_EVENT_TIMEWAIT_EXIT",
      "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
      "RDMA_CM_EVENT_ADDRINFO_ERROR",
      "RDMA_CM_EVENT_USER",
  };
  const auto index = static_cast<size_t>(event);
  return index < std::size(kNames) ? kNames[index] : "UNKNOWN EVENT";
}
