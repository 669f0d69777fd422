#ifndef GANNET_CLIENT_SESSION_LIVENESS_H_
#define GANNET_CLIENT_SESSION_LIVENESS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "client/session/watched_time.h"
#include "common/base/clock.h"
#include "common/protocol/heartbeats.h"

namespace gannet {

// When to send a heartbeat to the server over one queue pair, and when the server counts as dead.
// Only what needs the server's CPU tells of its life: RDMA READs of a stopped process go on as
// ever.
//
// 1. A message goes out at least every third of the silence that the server granted.
// 2. A heartbeat goes out at least every kHeartbeatNsMax whatever else is sent, as only replies to
//    heartbeats tell the server's clock.
// 3. The server is dead when an answer is outstanding and nothing at all was heard for that
// silence,
//    counted in watched time (watched_time.h).
//
// One owner thread.
class Liveness {
 public:
  static constexpr int64_t kHeartbeatNsMax = 2 * kNsPerSecond;
  // Unanswered ones at most: each needs a receive, and the server counts them.
  static constexpr uint32_t kHeartbeatsMax = kHeartbeatsUnansweredMax;

  static constexpr int64_t HeartbeatNs(int64_t silence_ns) { return silence_ns / 3; }
  // Polls that are further apart than this notice a dead server later.
  static constexpr int64_t WatchStepNs(int64_t silence_ns) { return silence_ns / 6; }

  void Restart(int64_t now_ns, const WatchedTime& watched, int64_t silence_ns) {
    *this = Liveness();
    silence_ns_ = silence_ns;
    sent_ns_ = heartbeat_ns_ = now_ns;
    quiet_since_ns_ = watched.ns();
  }
  // A message that will be answered went out.
  void OnSent(int64_t now_ns, const WatchedTime& watched) {
    sent_ns_ = now_ns;
    if (outstanding_++ == 0) quiet_since_ns_ = watched.ns();
  }
  void OnHeard(const WatchedTime& watched) {
    quiet_since_ns_ = watched.ns();
    if (outstanding_ > 0) --outstanding_;
  }
  // Also OnSent.
  void OnHeartbeatSent(int64_t now_ns) {
    heartbeat_ns_ = now_ns;
    asked_ns_[heartbeats_++ % kHeartbeatsMax] = now_ns;
  }
  // Returns when the heartbeat was sent, or an earlier time: the server answers them in order.
  // nullopt: none is unanswered. Also OnHeard.
  std::optional<int64_t> OnHeartbeatAnswered() {
    if (answered_ == heartbeats_) return std::nullopt;
    return asked_ns_[answered_++ % kHeartbeatsMax];
  }

  bool awaits_answer() const { return outstanding_ > 0; }
  bool HeartbeatDue(int64_t now_ns) const {
    if (heartbeats_ - answered_ == kHeartbeatsMax) return false;
    return now_ns - sent_ns_ >= HeartbeatNs(silence_ns_) ||
           now_ns - heartbeat_ns_ >= kHeartbeatNsMax;
  }
  // How long Poll may be put off after `now_ns`: until a heartbeat is due. While an answer is
  // outstanding, and somebody waits, no longer than time is watched in one step.
  int64_t IdleNs(int64_t now_ns, bool somebody_waits) const {
    int64_t idle_ns = INT64_MAX;
    if (heartbeats_ - answered_ < kHeartbeatsMax) {
      idle_ns =
          std::min(sent_ns_ + HeartbeatNs(silence_ns_), heartbeat_ns_ + kHeartbeatNsMax) - now_ns;
    }
    if (somebody_waits && outstanding_ > 0) idle_ns = std::min(idle_ns, WatchStepNs(silence_ns_));
    return std::max<int64_t>(idle_ns, 0);
  }
  // `grace_ns`: what may lie unread in the completion queue counts as so much more time.
  bool PeerDead(const WatchedTime& watched, int64_t grace_ns = 0) const {
    return outstanding_ > 0 && watched.ns() - quiet_since_ns_ > silence_ns_ + grace_ns;
  }

 private:
  int64_t silence_ns_ = 0;
  int64_t sent_ns_ = 0;
  int64_t heartbeat_ns_ = 0;    // the last one sent
  int64_t quiet_since_ns_ = 0;  // watched: last heard, or since when an answer is waited for
  uint32_t outstanding_ = 0;    // answers
  uint32_t heartbeats_ = 0;     // sent
  uint32_t answered_ = 0;       // of them
  std::array<int64_t, kHeartbeatsMax> asked_ns_{};
};

// How long to wait before the next attempt to reconnect: doubles to a second, with up to a quarter
// taken off, so that the clients of a server that came back do not all knock at once.
class Backoff {
 public:
  static constexpr int64_t kFirstNs = 10 * kNsPerMs;
  static constexpr int64_t kMaxNs = kNsPerSecond;

  int64_t NextNs(uint64_t random) {
    const int64_t delay_ns = delay_ns_;
    delay_ns_ = delay_ns_ * 2 < kMaxNs ? delay_ns_ * 2 : kMaxNs;
    return delay_ns - static_cast<int64_t>(random % static_cast<uint64_t>(delay_ns / 4));
  }
  void Reset() { delay_ns_ = kFirstNs; }

 private:
  int64_t delay_ns_ = kFirstNs;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_LIVENESS_H_
