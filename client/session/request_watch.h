#ifndef GANNET_CLIENT_SESSION_REQUEST_WATCH_H_
#define GANNET_CLIENT_SESSION_REQUEST_WATCH_H_

#include <cstdint>

#include "client/session/request_window.h"
#include "client/session/watched_time.h"

namespace gannet {

// Notices a server that is stuck: it answers heartbeats but no requests. Its connection is of no
// use, and the credits never come back. A new connection resumes the session.
//
// A slow server must not be taken for a stuck one. A server is not stuck as long as it answers any
// request, and a caller who allows a minute gets a minute. So the server is stuck if requests are
// unanswered, and none was answered for the granted silence plus the longest timeout of the
// unanswered ones, in watched time. One owner thread.
class RequestWatch {
 public:
  void Restart(const WatchedTime& watched) { quiet_since_ns_ = watched.ns(); }
  // Call it before the request is added to the window.
  void OnSend(const RequestWindow& window, const WatchedTime& watched) {
    if (window.empty()) quiet_since_ns_ = watched.ns();
  }
  void OnAnswer(const WatchedTime& watched) { quiet_since_ns_ = watched.ns(); }

  bool Stuck(const RequestWindow& window, const WatchedTime& watched, int64_t silence_ns) const {
    const int64_t quiet_ns = watched.ns() - quiet_since_ns_;
    return !window.empty() && quiet_ns > silence_ns &&
           quiet_ns - silence_ns > window.LongestTimeoutNs();
  }

 private:
  int64_t quiet_since_ns_ = 0;  // watched time
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_REQUEST_WATCH_H_
