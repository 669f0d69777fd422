#ifndef GANNET_SERVER_MAIN_CONTROL_STOP_SIGNALS_H_
#define GANNET_SERVER_MAIN_CONTROL_STOP_SIGNALS_H_

#include <atomic>
#include <cstdint>

#include "common/base/clock.h"

namespace gannet {

// Says what a signal that asks the server to stop means. One request often comes as two signals:
// GNU timeout signals its child and then its whole process group, and a terminal and a supervisor
// may both signal. So a repeat shortly after the first means nothing. Only a later one ends the
// process at once.
//
// For signal handlers, on any thread.
class StopSignals {
 public:
  enum class Meaning : uint8_t { kStop, kRepeat, kEndAtOnce };
  static constexpr int64_t kRepeatNs = 2 * kNsPerSecond;

  // `now_ns` is monotonic and not 0.
  Meaning Judge(int64_t now_ns) {
    int64_t first_ns = 0;
    // Relaxed: the time is all that is handed over.
    if (first_ns_.compare_exchange_strong(first_ns, now_ns, std::memory_order_relaxed)) {
      return Meaning::kStop;
    }
    return now_ns - first_ns < kRepeatNs ? Meaning::kRepeat : Meaning::kEndAtOnce;
  }

 private:
  std::atomic<int64_t> first_ns_{0};
  static_assert(std::atomic<int64_t>::is_always_lock_free);
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_STOP_SIGNALS_H_
