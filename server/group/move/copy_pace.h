#ifndef GANNET_SERVER_GROUP_MOVE_COPY_PACE_H_
#define GANNET_SERVER_GROUP_MOVE_COPY_PACE_H_

#include <algorithm>
#include <cstdint>

#include "common/base/boot_time.h"
#include "common/base/clock.h"

namespace gannet {

// Says when a copy goes on, so that it leaves the most of the cores to those who serve clients. A
// copy can wait; a client's call cannot. If the machine has cores to spare, it does not pause.
//
//   if (now >= pace.due()) {
//     const BootTime began = clock.Now();
//     ...                               // a step, of less than a millisecond
//     pace.OnWorked(began, clock.Now(), /*cores_are_scarce=*/...);
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
  BootTime due() const { return due_; }
  // A step began and ended at these times. `cores_are_scarce`: others want the cores.
  void OnWorked(BootTime began, BootTime ended, bool cores_are_scarce) {
    due_ = ended;
    if (!cores_are_scarce) return;
    due_ = due_ + std::min((ended - began) * (kShareWhenScarce - 1), kPauseNsMax);
  }

 private:
  BootTime due_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_COPY_PACE_H_
