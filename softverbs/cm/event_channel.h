#ifndef SOFTVERBS_CM_EVENT_CHANNEL_H_
#define SOFTVERBS_CM_EVENT_CHANNEL_H_

#include <rdma/rdma_cma.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "softverbs/cm/wire.h"
#include "softverbs/nic/event_queue.h"

namespace softverbs::cm {

class CmId;

// Events of rdma_cm_event_type that came after version 44 of rdma-core.
inline constexpr int kAddrinfoResolved = 16;
inline constexpr int kUserEvent = 18;

// An event, including the part to which the application gets a pointer. It belongs to its queue,
// and then to the application until rdma_ack_cm_event.
struct QueuedEvent : rdma_cm_event {
  // The id whose rdma_destroy_id waits for this event: the id that it is about, and for a
  // connection request the listener.
  CmId* account = nullptr;
  std::array<uint8_t, kPrivateDataMax> data = {};
};

// An rdma_event_channel: a queue of events, readable through its descriptor. The application's
// handle, the ids that report to it and the threads that wait on it share it. So to destroy a
// channel under a waiting thread is a bug of the application, but no crash. Thread safe. Lock
// order: State::mutex, then the queue's own.
class EventChannel : public rdma_event_channel {
 public:
  // Returns null with errno EMFILE or ENFILE if there is no descriptor left. Create enters the
  // channel into the table that Find reads; Forget takes it out.
  static std::shared_ptr<EventChannel> Create();
  static std::shared_ptr<EventChannel> Find(rdma_event_channel* handle);
  static void Forget(rdma_event_channel* handle);

  // Queues `event`, which CmId::QueueEvent counted. REQUIRES: State::mutex is held.
  void Push(std::unique_ptr<QueuedEvent> event);
  // Returns the oldest event. Waits for one unless the descriptor is non-blocking. On failure
  // returns null and sets errno (EAGAIN, EINTR).
  std::unique_ptr<QueuedEvent> Pop();
  // Takes out every queued event on `account`, oldest first. They stay counted.
  std::vector<std::unique_ptr<QueuedEvent>> Take(const CmId* account);
  // Takes out the connection request that would introduce `child`, if it is still queued.
  std::unique_ptr<QueuedEvent> TakeRequest(const rdma_cm_id* child);

 private:
  EventChannel() = default;

  EventQueue<std::unique_ptr<QueuedEvent>> queue_;
};

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_EVENT_CHANNEL_H_
