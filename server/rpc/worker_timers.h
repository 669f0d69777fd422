#ifndef GANNET_SERVER_RPC_WORKER_TIMERS_H_
#define GANNET_SERVER_RPC_WORKER_TIMERS_H_

#include <algorithm>
#include <cstdint>

namespace gannet {

// When a worker runs its timers: its Tick, and what ends leases. Owner thread only.
class WorkerTimers {
 public:
  int64_t due_ns() const { return due_ns_; }
  int64_t tick_due_ns() const { return tick_due_ns_; }

  // The timers run then at the latest.
  void RunBy(int64_t due_ns) { due_ns_ = std::min(due_ns_, due_ns); }
  // The Tick runs then at the latest.
  void TickBy(int64_t due_ns) {
    tick_due_ns_ = std::min(tick_due_ns_, due_ns);
    RunBy(tick_due_ns_);
  }
  // The Tick has run. The next one is then.
  void SetTick(int64_t due_ns) { tick_due_ns_ = due_ns; }
  // The timers have run. Besides the Tick, a lease ends then.
  void Rearm(int64_t lease_end_ns) { due_ns_ = std::min(tick_due_ns_, lease_end_ns); }

 private:
  int64_t due_ns_ = 0;  // at most tick_due_ns_ unless a Tick just ran
  int64_t tick_due_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WORKER_TIMERS_H_
