#ifndef GANNET_TESTS_SIMULATION_HEALTH_H_
#define GANNET_TESTS_SIMULATION_HEALTH_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/clock.h"

namespace gannet::simulation {

// The stalls and faults of one participant. They excuse lost connections and late answers.
class Health {
 public:
  // A longer gap between two Polls excuses a lost connection. The bound is the silence after which
  // a peer is dead (kSilenceMs), less the time between two heartbeats and some slack.
  static constexpr int64_t kServerGapNsMax = 1'300 * kNsPerMs;
  static constexpr int64_t kClientGapNsMax = 1'150 * kNsPerMs;
  // A longer gap excuses a late answer.
  static constexpr int64_t kCalmGapNs = 20 * kNsPerMs;

  // Call it if something may break connections made before `now_ns` and delay answers.
  void Excuse(int64_t now_ns) { excused_ns_ = calm_ns_ = now_ns; }
  // Call it if something may break connections made before `now_ns`, but delays no answer.
  void ExcuseBreaks(int64_t now_ns) { excused_ns_ = now_ns; }
  // Call it if something may delay answers.
  void Disturb(int64_t now_ns) { calm_ns_ = now_ns; }
  void SetBreaking(bool breaking, int64_t now_ns) {
    breaking_ = breaking;
    Excuse(now_ns);
  }
  void OnPoll(int64_t last_ns, int64_t now_ns, int64_t gap_ns_max) {
    if (now_ns - last_ns > kCalmGapNs) Disturb(now_ns);
    if (now_ns - last_ns > gap_ns_max) Excuse(now_ns);
  }

  // Connections made before this time have an excuse.
  int64_t excused_ns(int64_t now_ns) const { return breaking_ ? now_ns + 1 : excused_ns_; }
  // Since this time nothing was wrong.
  int64_t calm_ns(int64_t now_ns) const { return breaking_ ? now_ns + 1 : calm_ns_; }

 private:
  int64_t excused_ns_ = 0;
  int64_t calm_ns_ = 0;
  bool breaking_ = false;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_HEALTH_H_
