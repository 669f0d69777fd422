#ifndef GANNET_SERVER_MAIN_CONTROL_CORE_DEMAND_H_
#define GANNET_SERVER_MAIN_CONTROL_CORE_DEMAND_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/base/boot_time.h"
#include "common/base/clock.h"

namespace gannet {

// Says whether more threads of this machine want to run than it has cores. Then a thread that polls
// keeps a core from one that would use it, perhaps from the very one whose request it waits for.
//
// 1. It looks at the number of runnable threads from time to time, while it is asked. One look may
//    meet threads that run for a moment only, so two in a row must say the same.
// 2. A polling thread that finds that it did not run for a while was preempted. If it loses more
//    than an eighth of its polling time so, the cores are scarce, whatever the number says. The
//    number counts the whole machine, and not this thread's share. Less than an eighth is what a
//    host takes from its virtual machines now and then. To sleep because of that would cost each
//    request a wake-up.
//
// One owner thread.
class CoreDemand {
 public:
  // Returns how many threads of the machine run or could run now, the caller included. nullopt:
  // unknown.
  using Runnable = std::function<std::optional<uint32_t>()>;

  static constexpr int64_t kLookNs = 2 * kNsPerMs;
  // A thread that polls in turns of less than a microsecond, and did not run for this long, was
  // preempted.
  static constexpr int64_t kPreemptedNs = 50 * kNsPerUs;
  // Polling is wrong if preemptions take more than one part in this many of it.
  static constexpr int64_t kLostShare = 8;
  // After this much polling, what was before counts half.
  static constexpr int64_t kRememberedNs = 64 * kNsPerMs;
  // How long a preemption counts, at first and at most. If the next one comes soon after, it counts
  // twice as long, because to poll again was wrong.
  static constexpr int64_t kPreemptionCountsNs = 10 * kNsPerMs;
  static constexpr int64_t kPreemptionCountsNsMax = 640 * kNsPerMs;

  CoreDemand(uint32_t cores, Runnable runnable) : cores_(cores), runnable_(std::move(runnable)) {}

  bool Scarce(BootTime now) {
    if (now >= look_at_) Look(now);
    return looks_scarce_ || now < preempted_until_;
  }

  // Notes the time between two Polls, the first of which found nothing.
  void NotePause(int64_t pause_ns, BootTime now) {
    if (pause_ns < kPreemptedNs) [[likely]] {
      polled_ns_ += pause_ns;
      return;
    }
    lost_ns_ += pause_ns;
    if (lost_ns_ > polled_ns_ / kLostShare) return NotePreemption(now);
    if (polled_ns_ > kRememberedNs) polled_ns_ /= 2, lost_ns_ /= 2;
  }

 private:
  void Look(BootTime now) {
    look_at_ = now + kLookNs;
    const std::optional<uint32_t> runnable = runnable_();
    const bool more = runnable.has_value() && *runnable > cores_;
    looks_scarce_ = more == last_look_ ? more : looks_scarce_;
    last_look_ = more;
  }

  void NotePreemption(BootTime now) {
    const bool again = now - preempted_until_ < preemption_counts_ns_;
    preemption_counts_ns_ =
        again ? std::min(2 * preemption_counts_ns_, kPreemptionCountsNsMax) : kPreemptionCountsNs;
    preempted_until_ = now + preemption_counts_ns_;
    polled_ns_ = lost_ns_ = 0;
  }

  uint32_t cores_;
  Runnable runnable_;
  BootTime look_at_;
  bool last_look_ = false;
  bool looks_scarce_ = false;
  BootTime preempted_until_;
  int64_t preemption_counts_ns_ = 0;
  int64_t polled_ns_ = 0;  // by turns that were not interrupted
  int64_t lost_ns_ = 0;    // to preemptions meanwhile
};

// Returns the number for this machine.
CoreDemand::Runnable RunnableThreadsOfKernel();
// Returns how many cores this thread may run on.
uint32_t CoresOfThread();

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_CORE_DEMAND_H_
