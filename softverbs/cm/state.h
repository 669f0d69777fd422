#ifndef GANNET_SOFTVERBS_CM_STATE_H_
#define GANNET_SOFTVERBS_CM_STATE_H_

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace softverbs::cm {

class CmId;
class EventChannel;

// The connection manager's state for the process.
//
// One mutex guards all of it, and every CmId, Link and Listener. Connections are made and broken
// rarely, and with one lock there is no lock order to get wrong between an id, its listener, its
// channel and the loop thread.
//
// Never held while: waiting for an event or an acknowledgement, calling ibv_*, or waiting for the
// loop thread (Loop::Remove, Loop::Cancel), whose handlers take it.
struct State {
  std::mutex mutex;
  std::unordered_map<uint64_t, CmId*> ids;  // by handle; those not yet destroyed
  uint64_t last_handle = 0;
  std::unordered_map<rdma_event_channel*, std::shared_ptr<EventChannel>> channels;

  // Never destroyed, because the loop thread outlives static destructors. A forked child gets a new
  // one.
  static State& Get();
};

using Lock = std::unique_lock<std::mutex>;

inline Lock LockState() { return Lock(State::Get().mutex); }

}  // namespace softverbs::cm

#endif  // GANNET_SOFTVERBS_CM_STATE_H_
