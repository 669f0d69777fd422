#ifndef GANNET_COMMON_BASE_SHORT_TURNS_H_
#define GANNET_COMMON_BASE_SHORT_TURNS_H_

#include <sched.h>

#include <cstdint>

#include "common/base/clock.h"

namespace gannet {

// Asks the scheduler for turns of this length for the calling thread, by sched_setattr(2). A thread
// with shorter turns than others gets the core sooner when it is woken, and loses less of its share
// when it yields. Kernels before 6.12 ignore this for ordinary threads.
void AskForTurns(int64_t turn_ns);
inline constexpr int64_t kShortestTurnNs = 100 * kNsPerUs;  // shorter ones are not given

// For a thread that never waits, because all that it asks for is there at once: lets the others on
// its core have a turn every kTurnNs. The scheduler itself looks only at ticks, which are 4 ms
// apart or more, so with eight such threads on a core each would pause for 32 ms. One owner thread.
class Turn {
 public:
  static constexpr int64_t kTurnNs = kNsPerMs;

  // Call it often, at moments when a pause does the least harm.
  void Look(int64_t now_ns) {
    if (now_ns < over_ns_) return;
    if (over_ns_ != 0) sched_yield();
    over_ns_ = now_ns + kTurnNs;
  }

 private:
  int64_t over_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_SHORT_TURNS_H_
