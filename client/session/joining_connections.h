#ifndef GANNET_CLIENT_SESSION_JOINING_CONNECTIONS_H_
#define GANNET_CLIENT_SESSION_JOINING_CONNECTIONS_H_

#include <cstdint>

#include "client/session/client_connections.h"
#include "client/session/connect_attempts.h"
#include "client/session/connection_maker.h"
#include "client/session/session_options.h"
#include "client/session/session_sends.h"
#include "client/session/session_terms.h"
#include "client/session/watched_time.h"

namespace gannet {

// Makes a session's further connections, one after the other: as many as the READs wanted in flight
// need, and one more if they are kept apart from requests. The session does without one that fails.
// One owner thread.
class JoiningConnections {
 public:
  struct Dependencies {  // outlive this
    const SessionOptions* options;
    const SessionTerms* terms;
    const ConnectAttempts* attempts;
    ClientConnections* connections;
    ConnectionMaker* maker;
    const SessionSends* sends;
    const WatchedTime* watched;
  };

  explicit JoiningConnections(const Dependencies& given) : given_(given) {}

  // REQUIRES of all: the first connection is ready.
  //
  // Goes on with the connection that is being made, or begins the next.
  void Poll(int64_t now_ns);
  // Returns whether the next connection should be begun.
  bool Wanted() const;
  bool BeingMade() const {
    return given_.connections->last().phase == ClientConnection::Phase::kConnecting;
  }
  // Makes no more.
  void Stop() { stopped_ = true; }

 private:
  void PollLast(int64_t now_ns);

  const Dependencies given_;
  bool stopped_ = false;  // also if one could not even be started
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_JOINING_CONNECTIONS_H_
