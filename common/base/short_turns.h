#ifndef GANNET_COMMON_BASE_SHORT_TURNS_H_
#define GANNET_COMMON_BASE_SHORT_TURNS_H_

#include <cstdint>

#include "common/base/clock.h"

namespace gannet {

// Asks the scheduler for turns of this length for the calling thread, by sched_setattr(2). A thread
// with shorter turns than others gets the core sooner when it is woken, and loses less of its share
// when it yields. Kernels before 6.12 ignore this for ordinary threads.
void AskForTurns(int64_t turn_ns);
inline constexpr int64_t kShortestTurnNs = 100 * kNsPerUs;  // the kernel gives no shorter ones

// Says when a busy thread should yield, so that the others on its core have a turn every kTurnNs.
// It is for threads that never wait, because everything that they ask for is there at once. The
// scheduler itself looks only at ticks, which are 4 ms apart or more. So with eight such threads on
// a core each would pause for 32 ms. One owner thread.
class Turn {
 public:
  static constexpr int64_t kTurnNs = kNsPerMs;
  // A thread that runs asks more often than this.
  static constexpr int64_t kPauseNs = kTurnNs / 4;

  // Returns true if the turn is over: yield now. A long pause between two calls means that others
  // had their turn, so it begins a new one. Call it often, at moments when a pause does the least
  // harm.
  bool Over(int64_t now_ns) {
    const bool paused = now_ns - asked_ns_ >= kPauseNs;
    asked_ns_ = now_ns;
    if (paused) began_ns_ = now_ns;
    if (now_ns - began_ns_ < kTurnNs) return false;
    began_ns_ = now_ns;
    return true;
  }

 private:
  int64_t began_ns_ = 0;
  int64_t asked_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_SHORT_TURNS_H_
