#ifndef GANNET_SERVER_SESSIONS_LOCKS_LOCK_RAIL_LIFE_H_
#define GANNET_SERVER_SESSIONS_LOCKS_LOCK_RAIL_LIFE_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "common/base/checked_state.h"
#include "common/base/clock.h"

namespace gannet {

enum class LockRailState : uint8_t { kServes, kEnds, kWaits };
constexpr bool MayFollow(LockRailState from, LockRailState to) {
  using enum LockRailState;
  return to == (from == kServes ? kEnds : from == kEnds ? kWaits : kServes);
}

// Decides when the lock rail is dead, and when another one may serve locks.
//
//   serves --dead--> ends --all workers know--> waits --nobody has its locks--> serves
//
// 1. It is dead if its port is down for kDownNsMax, or if the server's own swaps fail. By then the
//    heartbeats of its clients have failed, too, and with their connections they lost their locks.
// 2. Nobody has its locks once the last lease is over, a silence (--silence_ms) has passed since
//    all workers know, and the connections of that rail are gone, and those of its locks' holders.
//    A lease began when its swap was posted, or later (server/rpc/lock_words.h). So a client whose
//    completion comes late has no longer one. A client that hears nothing for a silence gives its
//    connection up, and its locks.
//
// Owner thread only.
class LockRailLife {
 public:
  static constexpr int64_t kDownNsMax = 2 * kNsPerSecond;

  // What is seen of the lock rail's device.
  struct Seen {
    bool port_up = true;
    bool swaps = true;  // no swap of a worker has failed
  };

  explicit LockRailLife(int64_t silence_ns) : silence_ns_(silence_ns) {}

  LockRailState state() const { return state_.now(); }
  // Returns whether it is dead. REQUIRES: it serves.
  bool LookDead(const Seen& seen, BootTime now);
  // The workers are told that it is dead. REQUIRES: it serves.
  void End();
  // All workers know, so no lock and no lease is given any more. REQUIRES: it ends.
  void OnAllKnow(BootTime last_lease, BootTime now);
  // Returns whether another rail may serve. `gone`: the connections of 2. are. REQUIRES: it waits.
  bool MayServe(bool gone, BootTime now) const;
  // When no lock of the dead rail is believed any more. REQUIRES: it waits.
  BootTime free_at() const { return free_at_; }
  // Another rail serves. REQUIRES: it waits.
  void Serve();

 private:
  const int64_t silence_ns_;
  CheckedState<LockRailState> state_{LockRailState::kServes};
  BootTime down_since_ = BootTime::Never();
  BootTime free_at_;  // no lock of the dead rail is believed any more
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_LOCKS_LOCK_RAIL_LIFE_H_
