#ifndef GANNET_SERVER_CONTROL_CORE_DEMAND_H_
#define GANNET_SERVER_CONTROL_CORE_DEMAND_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/base/clock.h"

namespace gannet {

// Says whether more threads of this machine want to run than it has cores. A thread that polls then
// keeps a core from one that would use it, perhaps from the very one whose request it waits for.
//
// 1. It looks at the number of runnable threads from time to time, while it is asked. One look may
//    meet threads that run for a moment only, so that two in a row must say the same.
// 2. A thread that polls and finds that it did not run for a while was preempted. If it loses more
//    than an eighth of its polling time so, the cores are scarce, whatever the number says: that
//    counts the whole machine, and not this thread's share. Less than an eighth is what a host
//    takes from its virtual machines now and then; to sleep because of that would cost each request
//    a wake-up.
//
// One owner thread.
class CoreDemand {
 public:
  // Threads of the machine that run or could run now, the caller included. None: unknown.
  using Runnable = std::function<std::optional<uint32_t>()>;

  static constexpr int64_t kLookNs = 2 * kNsPerMs;
  // A thread that polls in turns of less than a microsecond and did not run for so long.
  static constexpr int64_t kPreemptedNs = 50 * kNsPerUs;
  // Polling is wrong where preemptions take more than this part of it.
  static constexpr int64_t kLostShare = 8;
  // Of polling; what was before counts half.
  static constexpr int64_t kRememberedNs = 64 * kNsPerMs;
  // So long a preemption counts at first, and at most: each one soon after the last counts twice as
  // long, as polling again was wrong.
  static constexpr int64_t kPreemptionCountsNs = 10 * kNsPerMs;
  static constexpr int64_t kPreemptionCountsNsMax = 640 * kNsPerMs;

  CoreDemand(uint32_t cores, Runnable runnable) : cores_(cores), runnable_(std::move(runnable)) {}

  bool Scarce(int64_t now_ns) {
    if (now_ns >= look_ns_) Look(now_ns);
    return looks_scarce_ || now_ns < preempted_until_ns_;
  }

  // Between two Polls of which the first found nothing, so much time went by.
  void NotePause(int64_t pause_ns, int64_t now_ns) {
    if (pause_ns < kPreemptedNs) [[likely]] {
      polled_ns_ += pause_ns;
      return;
    }
    lost_ns_ += pause_ns;
    if (lost_ns_ > polled_ns_ / kLostShare) return NotePreemption(now_ns);
    if (polled_ns_ > kRememberedNs) polled_ns_ /= 2, lost_ns_ /= 2;
  }

 private:
  void Look(int64_t now_ns) {
    look_ns_ = now_ns + kLookNs;
    const std::optional<uint32_t> runnable = runnable_();
    const bool more = runnable.has_value() && *runnable > cores_;
    looks_scarce_ = more == last_look_ ? more : looks_scarce_;
    last_look_ = more;
  }

  void NotePreemption(int64_t now_ns) {
    const bool again = now_ns - preempted_until_ns_ < preemption_counts_ns_;
    preemption_counts_ns_ =
        again ? std::min(2 * preemption_counts_ns_, kPreemptionCountsNsMax) : kPreemptionCountsNs;
    preempted_until_ns_ = now_ns + preemption_counts_ns_;
    polled_ns_ = lost_ns_ = 0;
  }

  uint32_t cores_;
  Runnable runnable_;
  int64_t look_ns_ = 0;
  bool last_look_ = false;
  bool looks_scarce_ = false;
  int64_t preempted_until_ns_ = 0;
  int64_t preemption_counts_ns_ = 0;
  int64_t polled_ns_ = 0;  // by turns that were not interrupted
  int64_t lost_ns_ = 0;    // to preemptions meanwhile
};

// Of this machine and thread.
CoreDemand::Runnable RunnableThreadsOfKernel();
// That this thread may run on.
uint32_t CoresOfThread();

}  // namespace gannet

#endif  // GANNET_SERVER_CONTROL_CORE_DEMAND_H_
