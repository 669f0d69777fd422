#ifndef GANNET_TESTS_SIMULATION_HEALTH_H_
#define GANNET_TESTS_SIMULATION_HEALTH_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/clock.h"

namespace gannet::simulation {

// Who stood still for how long, and what else was wrong: what a client may blame for a lost
// connection or a late answer.
class Health {
 public:
  // Longer gaps between two Polls excuse a lost connection: the silence after which a peer is dead,
  // less the time between two heartbeats and some room.
  static constexpr int64_t kServerGapNsMax = 1'300 * kNsPerMs;
  static constexpr int64_t kClientGapNsMax = 800 * kNsPerMs;
  // Longer gaps excuse an answer that comes late.
  static constexpr int64_t kCalmGapNs = 20 * kNsPerMs;

  // Something happened that may break connections made before `now_ns`.
  void Excuse(int64_t now_ns) { excused_ns_ = calm_ns_ = now_ns; }
  // The same, but answers come in time.
  void ExcuseBreaks(int64_t now_ns) { excused_ns_ = now_ns; }
  // Something happened that may delay answers.
  void Disturb(int64_t now_ns) { calm_ns_ = now_ns; }
  void SetBreaking(bool breaking, int64_t now_ns) {
    breaking_ = breaking;
    Excuse(now_ns);
  }
  void OnPoll(int64_t last_ns, int64_t now_ns, int64_t gap_ns_max) {
    if (now_ns - last_ns > kCalmGapNs) Disturb(now_ns);
    if (now_ns - last_ns > gap_ns_max) Excuse(now_ns);
  }

  // Connections that were made before this time have an excuse.
  int64_t excused_ns(int64_t now_ns) const { return breaking_ ? now_ns + 1 : excused_ns_; }
  // Nothing was wrong since.
  int64_t calm_ns(int64_t now_ns) const { return breaking_ ? now_ns + 1 : calm_ns_; }

 private:
  int64_t excused_ns_ = 0;
  int64_t calm_ns_ = 0;
  bool breaking_ = false;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_HEALTH_H_
