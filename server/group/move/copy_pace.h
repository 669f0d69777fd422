#ifndef GANNET_SERVER_GROUP_MOVE_COPY_PACE_H_
#define GANNET_SERVER_GROUP_MOVE_COPY_PACE_H_

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"

namespace gannet {

// Says when a copy goes on, so that it leaves the most of the cores to those who serve clients. A
// copy can wait; a client's call cannot. If the machine has cores to spare, it does not pause.
//
//   if (now >= pace.due_ns()) {
//     const int64_t began = clock();
//     ...                               // a step, of less than a millisecond
//     pace.OnWorked(began, clock(), /*cores_are_scarce=*/...);
//   }
//
// One thread.
class CopyPace {
 public:
  // It works for this share of the time while others want the cores.
  static constexpr int64_t kShareWhenScarce = 3;
  // A step that took long has probably waited for a core. Sessions need to be polled meanwhile.
  static constexpr int64_t kPauseNsMax = 10 * kNsPerMs;

  // When to do the next step.
  int64_t due_ns() const { return due_ns_; }
  // A step began and ended at these times. `cores_are_scarce`: others want the cores.
  void OnWorked(int64_t began_ns, int64_t ended_ns, bool cores_are_scarce) {
    due_ns_ = ended_ns;
    if (!cores_are_scarce) return;
    due_ns_ += std::min((ended_ns - began_ns) * (kShareWhenScarce - 1), kPauseNsMax);
  }

 private:
  int64_t due_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_COPY_PACE_H_
