#ifndef GANNET_SERVER_RPC_WORKER_TIMERS_H_
#define GANNET_SERVER_RPC_WORKER_TIMERS_H_

#include <algorithm>
#include <cstdint>

#include "common/base/boot_time.h"

namespace gannet {

// When a worker runs its timers: its Tick, what ends leases, and what ends long waits. Owner thread
// only.
class WorkerTimers {
 public:
  BootTime due() const { return due_; }
  BootTime tick_due() const { return tick_due_; }

  // The timers run then at the latest.
  void RunBy(BootTime due) { due_ = std::min(due_, due); }
  // The Tick runs then at the latest.
  void TickBy(BootTime due) {
    tick_due_ = std::min(tick_due_, due);
    RunBy(tick_due_);
  }
  // The Tick has run. The next one is then.
  void SetTick(BootTime due) { tick_due_ = due; }
  // The timers have run. Besides the Tick, a lease or a wait ends then.
  void Rearm(BootTime due) { due_ = std::min(tick_due_, due); }

 private:
  BootTime due_;  // at most tick_due_ unless a Tick just ran
  BootTime tick_due_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WORKER_TIMERS_H_
