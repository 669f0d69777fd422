#ifndef SOFTVERBS_CM_STATE_H_
#define SOFTVERBS_CM_STATE_H_

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "softverbs/base/mutex.h"

namespace softverbs::cm {

class CmId;
class EventChannel;

// The mutex of the State that the process has now. It has a name of its own because a forked child
// gets another State, and the compiler's check of locks (thread_annotations.h) needs one name.
class SV_CAPABILITY StateMutex {
 public:
  void lock() SV_ACQUIRE();
  void unlock() SV_RELEASE();
  // Releases the mutex, waits for a notification, and takes it again.
  void Wait(Condition& condition) SV_REQUIRES(this);
  // For lambdas, which the compiler does not know to run under their caller's lock. Checks nothing.
  void AssertHeld() const SV_ASSERT_HELD() {}
};
inline StateMutex state_mutex;

// The connection manager's state for the process.
//
// One mutex guards all of it, and every CmId, PeerSocket and ListeningSocket. Connections are made
// and broken rarely, and with one lock there is no lock order to get wrong between an id, its
// listener, its channel and the loop thread.
//
// Never held while: waiting for an event or an acknowledgement, calling ibv_*, or waiting for the
// loop thread (Loop::Remove, Loop::Cancel), whose handlers take it.
struct State {
  Mutex mutex;
  // By handle; those not yet destroyed.
  std::unordered_map<uint64_t, CmId*> ids SV_GUARDED_BY(state_mutex);
  uint64_t last_handle SV_GUARDED_BY(state_mutex) = 0;
  std::unordered_map<rdma_event_channel*, std::shared_ptr<EventChannel>> channels
      SV_GUARDED_BY(state_mutex);

  // Never destroyed, because the loop thread outlives static destructors. A forked child gets a new
  // one.
  static State& Get();
};

// The check knows this mutex by the name state_mutex.
inline void StateMutex::lock() SV_UNCHECKED { State::Get().mutex.lock(); }
inline void StateMutex::unlock() SV_UNCHECKED { State::Get().mutex.unlock(); }
inline void StateMutex::Wait(Condition& condition) SV_UNCHECKED {
  condition.Wait(State::Get().mutex);
}

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_STATE_H_
