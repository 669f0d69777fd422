#ifndef GANNET_CLIENT_SESSION_REQUEST_WATCH_H_
#define GANNET_CLIENT_SESSION_REQUEST_WATCH_H_

#include <cstdint>

#include "client/session/request_window.h"
#include "client/session/watched_time.h"

namespace gannet {

// Notices a server that answers heartbeats but no requests. Such a connection is of no use, and its
// credits never come back; a new one resumes the session.
//
// A server that is merely slow must not be taken for such a one. So long as it answers any request,
// it is not; and callers who said that they wait for a minute do wait for it. It is stuck when
// requests are unanswered and none was answered for the granted silence *and* the longest timeout
// of those that are unanswered, in watched time. One owner thread.
class RequestWatch {
 public:
  void Restart(const WatchedTime& watched) { quiet_since_ns_ = watched.ns(); }
  // REQUIRES: called before the request is added to the window.
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
  int64_t quiet_since_ns_ = 0;  // watched
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_REQUEST_WATCH_H_
