#ifndef GANNET_CLIENT_SESSION_LIVENESS_H_
#define GANNET_CLIENT_SESSION_LIVENESS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "client/session/watched_time.h"
#include "common/base/clock.h"
#include "common/protocol/heartbeats.h"
#include "common/protocol/limits.h"

namespace gannet {

// Decides when to send a heartbeat over one connection, and when the server counts as dead. Only
// answers of the server's CPU show that it is alive: RDMA READs succeed even if the server process
// is stopped.
//
// 1. A message goes out at least every tenth of the silence that the server granted. So a client
//    may stand still for nearly as long as that, whenever it begins. A heartbeat that keeps this
//    goes out at a multiple of an eighth of that time, by the machine's clock. So the idle clients
//    of a machine wake up together, and one wake-up of the server serves several: to wake an idle
//    core takes more time than what it then does.
// 2. A heartbeat goes out at least every kHeartbeatNsMax, whatever else is sent, because only
//    replies to heartbeats tell the server's clock.
// 3. The server is dead if an answer is outstanding and nothing at all was heard for the granted
//    silence, counted in watched time (watched_time.h).
//
// One owner thread.
class Liveness {
 public:
  static constexpr int64_t kHeartbeatNsMax = 2 * kNsPerSecond;
  // The most unanswered heartbeats. Each needs a receive buffer, and the server counts them.
  static constexpr uint32_t kHeartbeatsMax = kHeartbeatsUnansweredMax;

  static constexpr int64_t HeartbeatNs(int64_t silence_ns) {
    return silence_ns / kMessagesPerSilence;
  }
  static constexpr int64_t TogetherNs(int64_t silence_ns) { return HeartbeatNs(silence_ns) / 8; }
  // If Polls are further apart than this, a dead server is noticed later.
  static constexpr int64_t WatchStepNs(int64_t silence_ns) { return silence_ns / 6; }

  void Restart(int64_t now_ns, const WatchedTime& watched, int64_t silence_ns) {
    *this = Liveness();
    silence_ns_ = silence_ns;
    sent_ns_ = heartbeat_ns_ = now_ns;
    quiet_since_ns_ = watched.ns();
  }
  // Call it when a message was sent that will be answered.
  void OnSent(int64_t now_ns, const WatchedTime& watched) {
    sent_ns_ = now_ns;
    if (outstanding_++ == 0) quiet_since_ns_ = watched.ns();
  }
  void OnHeard(const WatchedTime& watched) {
    quiet_since_ns_ = watched.ns();
    if (outstanding_ > 0) --outstanding_;
  }
  // Call it after OnSent if the message is a heartbeat.
  void OnHeartbeatSent(int64_t now_ns) {
    heartbeat_ns_ = now_ns;
    asked_ns_[heartbeats_++ % kHeartbeatsMax] = now_ns;
  }
  // Call it after OnHeard if the answer is a heartbeat's. Returns when that heartbeat was sent, or
  // an earlier time: the server answers them in order. nullopt: no heartbeat is unanswered.
  std::optional<int64_t> OnHeartbeatAnswered() {
    if (answered_ == heartbeats_) return std::nullopt;
    return asked_ns_[answered_++ % kHeartbeatsMax];
  }

  bool awaits_answer() const { return outstanding_ > 0; }
  bool MayAsk() const { return heartbeats_ - answered_ < kHeartbeatsMax; }
  uint32_t heartbeats_sent() const { return heartbeats_; }
  uint32_t heartbeats_answered() const { return answered_; }
  bool HeartbeatDue(int64_t now_ns) const {
    if (!MayAsk()) return false;
    const int64_t earliest_ns = HeartbeatNs(silence_ns_) - TogetherNs(silence_ns_);
    if (now_ns - sent_ns_ < earliest_ns && now_ns - heartbeat_ns_ < kHeartbeatNsMax) return false;
    return now_ns >= HeartbeatDueNs();
  }
  // Returns how long Poll may be put off after `now_ns`: until a heartbeat is due. If an answer is
  // outstanding and somebody waits, at most one step of watched time.
  int64_t IdleNs(int64_t now_ns, bool somebody_waits) const {
    int64_t idle_ns = INT64_MAX;
    if (heartbeats_ - answered_ < kHeartbeatsMax) {
      idle_ns = HeartbeatDueNs() - now_ns;
    }
    if (somebody_waits && outstanding_ > 0) idle_ns = std::min(idle_ns, WatchStepNs(silence_ns_));
    return std::max<int64_t>(idle_ns, 0);
  }
  // `grace_ns` is added to the silence if answers may lie unread in the completion queue.
  bool PeerDead(const WatchedTime& watched, int64_t grace_ns = 0) const {
    return outstanding_ > 0 && watched.ns() - quiet_since_ns_ > silence_ns_ + grace_ns;
  }

 private:
  int64_t HeartbeatDueNs() const {
    const int64_t latest_ns = sent_ns_ + HeartbeatNs(silence_ns_);
    const int64_t together_ns = std::max<int64_t>(TogetherNs(silence_ns_), 1);
    return std::min(latest_ns - latest_ns % together_ns, heartbeat_ns_ + kHeartbeatNsMax);
  }

  int64_t silence_ns_ = 0;
  int64_t sent_ns_ = 0;
  int64_t heartbeat_ns_ = 0;    // the last one sent
  int64_t quiet_since_ns_ = 0;  // watched time: last heard, or since when an answer is outstanding
  uint32_t outstanding_ = 0;    // answers
  uint32_t heartbeats_ = 0;     // sent
  uint32_t answered_ = 0;       // heartbeats
  std::array<int64_t, kHeartbeatsMax> asked_ns_{};
};

// How long to wait before the next attempt to reconnect. Doubles up to a second. Up to a quarter is
// taken off at random, so that not all clients of a server that came back connect at once.
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
