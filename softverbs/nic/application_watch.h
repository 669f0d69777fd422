#ifndef SOFTVERBS_NIC_APPLICATION_WATCH_H_
#define SOFTVERBS_NIC_APPLICATION_WATCH_H_

#include <cstdint>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/thread_watch.h"
#include "softverbs/nic/patience.h"

namespace softverbs {

// Looks from outside whether the application takes part: whether its thread polls, comes when it is
// rung, or would if it had a core. Says when to look. Not thread safe.
class ApplicationWatch {
 public:
  // The calling thread polls.
  void Polls() { thread_.WatchThisThread(); }
  // The calling thread begins or ends a wait.
  void Waits() {
    ++waits_;
    thread_.WatchThisThread();
  }

  // Returns the time until the first look. An application that waited since the last Begin is
  // expected to come back by itself.
  int64_t Begin() {
    const bool waits = waits_ != waits_at_begin_;
    waits_at_begin_ = waits_;
    return patience_.Begin(waits);
  }
  // Returns now. The next look is at what the application does from here on. `polls`: how often it
  // has polled so far.
  int64_t Mark(uint32_t polls) {
    marked_polls_ = polls;
    marked_waits_ = waits_;
    marked_ns_ = MonotonicNs();
    marked_cpu_ns_ = thread_.CpuNs();
    return marked_ns_;
  }
  // Returns whether it began or ended a wait since Mark.
  bool Came() const { return waits_ != marked_waits_; }
  // Returns what an application does that did not come. `waits`: it waits on its bell, and was
  // rung. Call once for each Mark.
  Patience::Found Look(uint32_t polls, bool waits);
  // Returns the time until the next look, or 0 to take over.
  int64_t Next(Patience::Found found, bool waits) { return patience_.Next(found, waits); }

 private:
  ThreadWatch thread_;  // that last began to poll or to wait
  Patience patience_;
  uint32_t waits_ = 0;  // begins and ends
  uint32_t waits_at_begin_ = 0;
  uint32_t ran_without_polls_ = 0;  // looks in a row that found that
  // At the last Mark.
  uint32_t marked_polls_ = 0;
  uint32_t marked_waits_ = 0;
  int64_t marked_ns_ = 0;
  int64_t marked_cpu_ns_ = 0;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_APPLICATION_WATCH_H_
