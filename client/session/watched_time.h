#ifndef GANNET_CLIENT_SESSION_WATCHED_TIME_H_
#define GANNET_CLIENT_SESSION_WATCHED_TIME_H_

#include <algorithm>
#include <cstdint>

namespace gannet {

// The time during which this process could have heard its server. Between two looks it advances
// with the clock, but at most by `step_max_ns`. A process that stood still for ten seconds could
// not hear anybody, so it must not conclude that the server was silent. One owner thread.
class WatchedTime {
 public:
  // Begins at 0 again.
  void Restart(int64_t now_ns, int64_t step_max_ns) {
    looked_ns_ = now_ns;
    step_max_ns_ = step_max_ns;
    ns_ = 0;
  }
  void Look(int64_t now_ns) {
    ns_ += std::clamp<int64_t>(now_ns - looked_ns_, 0, step_max_ns_);
    looked_ns_ = now_ns;
  }
  int64_t ns() const { return ns_; }
  int64_t step_max_ns() const { return step_max_ns_; }

 private:
  int64_t looked_ns_ = 0;
  int64_t step_max_ns_ = 0;
  int64_t ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_WATCHED_TIME_H_
