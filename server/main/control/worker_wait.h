#ifndef GANNET_SERVER_MAIN_CONTROL_WORKER_WAIT_H_
#define GANNET_SERVER_MAIN_CONTROL_WORKER_WAIT_H_

#include <cstdint>
#include <utility>

#include "common/base/boot_time.h"
#include "server/main/control/core_demand.h"

namespace gannet {

// Decides whether a worker that has nothing to do polls on or sleeps.
//
// 1. It polls for `poll_ns` after the last request. Who wrote something often writes again soon,
//    and a request that a polling worker finds costs nobody a wake-up.
// 2. While cores are scarce it sleeps at once. A sleeping thread gets its core as soon as a request
//    comes, before threads that compute. A polling one has used up its share by then, and keeps a
//    core from the clients.
// 3. If polling found nothing kInVain times in a row, only one wait in kTryEvery polls.
//
// One owner thread.
class WorkerWait {
 public:
  static constexpr uint32_t kInVain = 8;
  static constexpr uint32_t kTryEvery = 16;

  WorkerWait(int64_t poll_ns, CoreDemand cores) : poll_ns_(poll_ns), cores_(std::move(cores)) {}

  // Call it after a Poll that served requests.
  void Came() {
    if (until_ > BootTime()) in_vain_ = 0;
    until_ = BootTime();
    last_empty_ = BootTime();
    waiting_ = false;
  }
  // Call it after a Poll that found nothing. Returns true if the worker should poll again at once,
  // and false if it should sleep.
  bool Polls(BootTime now) {
    if (last_empty_ > BootTime()) cores_.NotePause(now - last_empty_, now);
    last_empty_ = BootTime();
    if (!waiting_) Begin(now);
    if (until_ == BootTime()) return false;
    if (cores_.Scarce(now)) return Sleeps();
    if (now >= until_) {
      if (in_vain_ < kInVain) ++in_vain_;
      return Sleeps();
    }
    last_empty_ = now;
    return true;
  }

 private:
  void Begin(BootTime now) {
    waiting_ = true;
    const bool tries = in_vain_ < kInVain || ++waits_ % kTryEvery == 0;
    until_ = tries ? now + poll_ns_ : BootTime();
  }
  bool Sleeps() {
    until_ = BootTime();
    return false;
  }

  const int64_t poll_ns_;
  CoreDemand cores_;
  bool waiting_ = false;
  BootTime
      until_;  // the end of this wait's polling; BootTime(): it does not poll, or no longer does
  // The time of the last Poll, if it found nothing and this one follows at once.
  BootTime last_empty_;
  uint32_t in_vain_ = 0;
  uint32_t waits_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_WORKER_WAIT_H_
