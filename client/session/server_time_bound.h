#ifndef GANNET_CLIENT_SESSION_SERVER_TIME_BOUND_H_
#define GANNET_CLIENT_SESSION_SERVER_TIME_BOUND_H_

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"

namespace gannet {

// What a client knows of its server's clock: a time that this clock has not passed yet. Items
// expire by the server's clock alone. So an item whose expiry is later than the bound is alive; for
// any other item only the server can tell.
//
//   The server told T in answer to a question of local time t:  clock(now) <= T + (now - t) + drift
//
// Local times come from a ClientClock. If one is taken too early, the bound is only later. The
// client's wall clock is not used. A ClientClock goes on while its machine is suspended, so the
// bound stays right.
//
// One owner thread.
class ServerTimeBound {
 public:
  // Two clocks with bad crystals, both slewed by NTP (at most 500 ppm each), differ by less than
  // 2 ms a second.
  static constexpr int64_t kDriftShift = 9;

  // Call it for a new connection: nothing is known of the clock of another server.
  void Forget() { *this = ServerTimeBound(); }
  // Takes note that the server's clock was `time_ms` at some moment after `asked_ns`. Keeps the
  // better one of the old bound and the new one.
  void OnTold(uint64_t time_ms, int64_t asked_ns, int64_t now_ns) {
    ServerTimeBound told;
    told.time_ms_ = std::min(time_ms, kNever);
    told.asked_ns_ = asked_ns;
    if (told.UpperMs(now_ns) <= UpperMs(now_ns)) *this = told;
  }

  // Returns a time that the server's clock has not passed.
  uint64_t UpperMs(int64_t now_ns) const {
    const int64_t passed_ns = std::clamp<int64_t>(now_ns - asked_ns_, 0, INT64_MAX / 2);
    const int64_t bound_ns = passed_ns + (passed_ns >> kDriftShift);
    // Both times were cut to whole milliseconds.
    return time_ms_ + static_cast<uint64_t>(bound_ns / kNsPerMs) + 2;
  }
  bool SurelyBefore(uint64_t expiry_ms, int64_t now_ns) const {
    return UpperMs(now_ns) <= expiry_ms;
  }
  // Returns how long it is at least until `expiry_ms`. 0: perhaps that has passed.
  uint64_t LeftMs(uint64_t expiry_ms, int64_t now_ns) const {
    const uint64_t upper_ms = UpperMs(now_ns);
    return expiry_ms > upper_ms ? expiry_ms - upper_ms : 0;
  }

 private:
  // Later than any expiry, and far from overflow.
  static constexpr uint64_t kNever = 1ull << 62;

  uint64_t time_ms_ = kNever;
  int64_t asked_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SERVER_TIME_BOUND_H_
