#ifndef GANNET_SERVER_MAIN_CONTROL_LOCK_RAIL_H_
#define GANNET_SERVER_MAIN_CONTROL_LOCK_RAIL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "server/main/control/server_memory.h"
#include "server/main/control/server_workers.h"
#include "server/sessions/locks/lock_rail_life.h"
#include "server/sessions/locks/lock_service.h"
#include "server/sessions/locks/loopback_lock_cas.h"

namespace gannet {

// Sees that the lock rail is dead, and has another rail serve locks (docs/rails.md#locks).
//
// 1. A rail serves locks in memory of its own. The words of a dead rail stay mapped until the
//    process ends, and have no other use: a dead device need not obey, so a late swap may hit them.
//    They are deregistered once it has obeyed.
// 2. The words move when the death is seen, before the workers are told. So once all know, nobody
//    compares an old word any more, and a worker may serve the new ones as soon as it hears where
//    they are: no other worker takes a write under an old lock.
//
// Owner thread only: the one that polls the server. Never blocks: the loopback queue pairs of a new
// lock rail connect all at once, between Polls, and are given up with the first that does not.
class LockRail {
 public:
  // `first` are the words that the first rail serves. `silence_ns`: after so much silence a client
  // gives its connection up. The workers outlive it.
  LockRail(const ServerWorkers& workers, LockMemory first, int64_t silence_ns);

  void Poll(BootTime now);
  // When Poll must be called at the latest.
  BootTime due() const { return due_; }

  LockRailState state() const { return life_.state(); }

 private:
  static constexpr int64_t kLookNs = 100 * kNsPerMs;
  // While it changes.
  static constexpr int64_t kStepNs = 5 * kNsPerMs;
  // After a rail could not serve.
  static constexpr int64_t kRetryNs = kNsPerSecond;

  // The rail that is to serve, while the workers' queue pairs connect.
  struct Next {
    uint32_t rail = 0;
    LockPlace place;
    std::vector<std::unique_ptr<LoopbackLockCas>> made;
  };
  // Words that a rail serves, or served.
  struct Words {
    LockMemory memory;
    uint64_t lost_by = 0;  // the message that told of their rail's death; 0: they are in use
  };

  bool IsUp(uint32_t rail) const;
  // Returns whether its device may swap by some port: its own one, or one by which it has alternate
  // paths.
  bool MaySwap(uint32_t rail) const;
  bool SwapsWork() const;
  void LookDead(BootTime now);
  absl::Status End();
  void LookKnown(BootTime now);
  void LookServe(BootTime now);
  // Begins to connect the workers' queue pairs on that rail.
  absl::Status BeginServe(uint32_t rail);
  void LookConnected(BootTime now);
  void GiveUpNext(const absl::Status& why);
  void Serve(BootTime now);
  // Of dead rails whose devices obeyed.
  void Deregister();
  // Whether it holds of each worker's LockRailProgress.
  template <class F>
  bool All(F holds) const {
    return std::ranges::all_of(
        workers_.all(), [&](const auto& worker) { return holds(worker->counters().lock_rail); });
  }

  const ServerWorkers& workers_;
  ServerContext& context_;
  LockRailLife life_;
  uint32_t rail_ = 0;
  uint64_t message_ = 0;      // the last one that the workers were sent
  std::vector<Words> words_;  // the last ones are in use
  std::optional<Next> next_;
  uint32_t tried_ = 0;  // rails that could not serve, in this round
  BootTime due_;
  BootTime died_at_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_LOCK_RAIL_H_
