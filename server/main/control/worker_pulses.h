#ifndef GANNET_SERVER_MAIN_CONTROL_WORKER_PULSES_H_
#define GANNET_SERVER_MAIN_CONTROL_WORKER_PULSES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/boot_time.h"

namespace gannet {

// When each worker last began to look at its requests. It lets another thread tell a worker that
// hangs from one that sleeps because nothing comes.
//
// Thread safety: each worker writes its own pulse, any thread reads them. All atomics are relaxed,
// because a pulse says nothing about other memory.
class WorkerPulses {
 public:
  explicit WorkerPulses(size_t workers) : pulses_(workers) {}

  void Turn(size_t worker, BootTime now) {
    pulses_[worker].at.store(now, std::memory_order_relaxed);
  }
  // The worker sleeps until something comes, or has ended. Nothing is expected of it until its next
  // turn. This is also the state before its first turn.
  void Rest(size_t worker) { pulses_[worker].at.store(kResting, std::memory_order_relaxed); }

  // Returns true if each worker rests, or had a turn within the last `within_ns`.
  bool AllBeat(BootTime now, int64_t within_ns) const {
    for (const Pulse& pulse : pulses_) {
      if (pulse.at.load(std::memory_order_relaxed) < now - within_ns) return false;
    }
    return true;
  }

 private:
  static constexpr BootTime kResting = BootTime::Never();

  // A cache line each, because every worker writes its own at each of its turns.
  struct alignas(64) Pulse {
    std::atomic<BootTime> at{kResting};
  };
  std::vector<Pulse> pulses_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_WORKER_PULSES_H_
