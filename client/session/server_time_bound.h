#ifndef GANNET_CLIENT_SESSION_SERVER_TIME_BOUND_H_
#define GANNET_CLIENT_SESSION_SERVER_TIME_BOUND_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "common/base/clock.h"
#include "common/base/server_time.h"

namespace gannet {

// What a client knows of its server's clock: a time that this clock has not passed yet, and one
// that it has reached. Items expire by the server's clock alone. So an item whose expiry is later
// than the upper bound is alive, and one whose expiry the lower bound has reached is over. For any
// other item only the server can tell.
//
//   The server told T in answer to a question of local time t, and the answer came at local time u:
//     T + (now - u) - drift  <=  clock(now)  <=  T + (now - t) + drift
//
// Local times come from a ClientClock. If `t` is taken too early, the bound is only later. The
// client's wall clock is not used. Both clocks go on while their machines are suspended, so the
// bounds stay right.
//
// One owner thread.
class ServerTimeBound {
 public:
  // Two clocks with bad crystals, both slewed by NTP (at most 500 ppm each), differ by less than
  // 2 ms a second.
  static constexpr int64_t kDriftShift = 9;

  // Call it for a new connection: nothing is known of the clock of another server.
  void Forget() { *this = ServerTimeBound(); }
  // Takes note that the server's clock was `time` at some moment between `asked_ns` and
  // `now_ns`. Keeps the better one of the old and the new value of each bound. REQUIRES: `now_ns`
  // was read after the answer came.
  void OnTold(ServerTime time, int64_t asked_ns, int64_t now_ns) {
    ServerTimeBound told;
    told.time_ms_ = std::min(time.ms(), kNever);
    told.asked_ns_ = asked_ns;
    told.least_ms_ = time.ms() < kNever ? time.ms() : 0;
    told.heard_ns_ = now_ns;
    if (told.Upper(now_ns) <= Upper(now_ns)) {
      time_ms_ = told.time_ms_;
      asked_ns_ = told.asked_ns_;
    }
    if (told.Lower(now_ns) >= Lower(now_ns)) {
      least_ms_ = told.least_ms_;
      heard_ns_ = told.heard_ns_;
    }
  }

  // Returns a time that the server's clock has not passed.
  ServerTime Upper(int64_t now_ns) const {
    const int64_t passed_ns = std::clamp<int64_t>(now_ns - asked_ns_, 0, INT64_MAX / 2);
    const int64_t bound_ns = passed_ns + (passed_ns >> kDriftShift);
    // Both times were cut to whole milliseconds.
    return ServerTime::FromMs(time_ms_ + static_cast<uint64_t>(bound_ns / kNsPerMs) + 2);
  }
  // Returns a time that the server's clock has reached.
  ServerTime Lower(int64_t now_ns) const {
    if (least_ms_ == 0) return {};
    const int64_t passed_ns = std::clamp(now_ns - heard_ns_, -kPassedNsMax, kPassedNsMax);
    const int64_t bound_ns = passed_ns - (std::abs(passed_ns) >> kDriftShift);
    // Rounded down, for times before the answer too.
    const int64_t bound_ms = bound_ns / kNsPerMs - (bound_ns < 0);
    const auto lower_ms = static_cast<int64_t>(least_ms_) + bound_ms;
    return ServerTime::FromMs(static_cast<uint64_t>(std::max<int64_t>(lower_ms, 0)));
  }
  bool SurelyPast(ServerTime time, int64_t now_ns) const { return Lower(now_ns) >= time; }
  bool SurelyBefore(ServerTime time, int64_t now_ns) const { return Upper(now_ns) <= time; }
  // Returns a local time: at each time before it, the server's clock has surely not come to `time`,
  // that is, Upper is before that. ServerTime(): there is none.
  int64_t SurelyBeforeUntilNs(ServerTime time) const {
    constexpr uint64_t kMsMax = uint64_t{1} << 40;  // no overflow
    if (time.ms() <= time_ms_ + 2) return INT64_MIN / 2;
    const uint64_t bound_ms = std::min(time.ms() - 2 - time_ms_, kMsMax);
    const auto bound_ns = static_cast<int64_t>(bound_ms) * kNsPerMs;
    // If passed < bound - bound / 513 - 1, then passed + passed / 512 < bound.
    return asked_ns_ + bound_ns - bound_ns / ((1 << kDriftShift) + 1) - 1;
  }
  // Returns how long it is at least until `time`. 0: perhaps that has passed.
  uint64_t LeftMs(ServerTime time, int64_t now_ns) const {
    const ServerTime upper = Upper(now_ns);
    return time > upper ? time - upper : 0;
  }

 private:
  // Later than any expiry, and far from overflow.
  static constexpr uint64_t kNever = 1ull << 62;

  static constexpr int64_t kPassedNsMax = INT64_MAX / 4;

  uint64_t time_ms_ = kNever;  // for the upper bound
  int64_t asked_ns_ = 0;
  uint64_t least_ms_ = 0;  // for the lower bound
  int64_t heard_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SERVER_TIME_BOUND_H_
