#ifndef GANNET_CLIENT_SESSION_LIVENESS_H_
#define GANNET_CLIENT_SESSION_LIVENESS_H_

#include <cstdint>

#include "common/base/clock.h"
#include "common/protocol/limits.h"

namespace gannet {

// When to send a heartbeat, and when the server counts as dead. Only what needs the server's CPU
// tells of its life: RDMA READs of a stopped process go on as ever.
//
// Invariants: a message goes out at least every kHeartbeatMs; the peer is dead when an answer is
// outstanding and nothing at all was heard for kPeerSilenceMsMax. One owner thread.
class Liveness {
 public:
  void Restart(int64_t now_ns) {
    last_sent_ns_ = quiet_since_ns_ = now_ns;
    outstanding_ = 0;
  }
  // A message that will be answered went out.
  void OnSent(int64_t now_ns) {
    last_sent_ns_ = now_ns;
    if (outstanding_++ == 0) quiet_since_ns_ = now_ns;
  }
  void OnHeard(int64_t now_ns) {
    quiet_since_ns_ = now_ns;
    if (outstanding_ > 0) --outstanding_;
  }

  bool HeartbeatDue(int64_t now_ns) const {
    return now_ns - last_sent_ns_ >= kHeartbeatMs * kNsPerMs;
  }
  bool PeerDead(int64_t now_ns) const {
    return outstanding_ > 0 && now_ns - quiet_since_ns_ > kPeerSilenceMsMax * kNsPerMs;
  }

 private:
  int64_t last_sent_ns_ = 0;
  int64_t quiet_since_ns_ = 0;  // last heard, or since when an answer is waited for
  uint32_t outstanding_ = 0;    // answers
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
