#ifndef GANNET_SERVER_MAIN_CONTROL_WORKER_TURNS_H_
#define GANNET_SERVER_MAIN_CONTROL_WORKER_TURNS_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/short_turns.h"

namespace gannet {

// Decides how long a worker's turns on its core are, if the scheduler lets it choose.
//
// 1. A worker that sleeps between requests asks for short turns. So it gets a core as soon as a
//    request comes, before threads that compute.
// 2. A worker that found requests for kBusyNs without a sleep does not get the CPU time that it
//    needs: more clients wait for it than it can answer. If there are very many, it asks for long
//    turns. That does not enlarge its share of the core, but it does more with it. A longer turn
//    fills the core's caches once for more requests. And a client that waits for many answers gets
//    them together, instead of being woken for each. With fewer clients short turns are better,
//    because the worker gets a core sooner.
//
// One owner thread.
class WorkerTurns {
 public:
  static constexpr int64_t kBusyNs = 4 * kNsPerMs;
  static constexpr int64_t kLongTurnNs = 3 * kNsPerMs;
  static constexpr uint64_t kVeryMany = 48;

  // `ask` is AskForTurns, except in tests.
  using Ask = void (*)(int64_t turn_ns);

  explicit WorkerTurns(Ask ask) : ask_(ask) { ask_(kShortestTurnNs); }

  // Call it before each Poll. `clients`: how many the worker has.
  void Awake(BootTime now, uint64_t clients) {
    if (awake_since_ == BootTime()) awake_since_ = now;
    if (long_ || clients < kVeryMany || now - awake_since_ < kBusyNs) return;
    long_ = true;
    ask_(kLongTurnNs);
  }
  // Call it before the worker sleeps.
  void Sleeps() {
    awake_since_ = BootTime();
    if (!long_) return;
    long_ = false;
    ask_(kShortestTurnNs);
  }

 private:
  const Ask ask_;
  BootTime awake_since_;  // as given at the last Awake since it slept; BootTime(): not yet
  bool long_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_WORKER_TURNS_H_
