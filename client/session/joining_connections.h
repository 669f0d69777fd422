#ifndef GANNET_CLIENT_SESSION_JOINING_CONNECTIONS_H_
#define GANNET_CLIENT_SESSION_JOINING_CONNECTIONS_H_

#include <cstdint>
#include <string>

#include "client/session/client_connections.h"
#include "client/session/connection_maker.h"
#include "client/session/server_rails.h"
#include "client/session/session_options.h"
#include "client/session/session_sends.h"
#include "client/session/session_terms.h"
#include "client/session/watched_time.h"

namespace gannet {

// Makes a session's further connections, one after the other: as many as the READs wanted in flight
// need, and one more if they are kept apart from requests. If the server has several rails, one by
// each at least, and as many by each.
//
// With one rail the session does without a connection that fails, until the next first connection.
// With several it is made anew, at the place of the one that is over.
//
// One owner thread.
class JoiningConnections {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  struct Dependencies {  // outlive this
    const SessionOptions* options;
    const SessionTerms* terms;
    ServerRails* rails;
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
  // When the next connection is to be begun; kNever: none is wanted.
  int64_t DueNs() const { return NextWanted().due_ns; }
  bool BeingMade() const { return FindBeingMade() != nullptr; }
  // Makes no more.
  void Stop() { stopped_ = true; }

 private:
  struct Wanted {
    int64_t due_ns = kNever;
    uint32_t rail = 0;
  };
  Wanted NextWanted() const;
  uint32_t WantedByEach() const;
  ClientConnection* FindBeingMade() const;
  // A place for one connection more; nullptr: behind the last.
  ClientConnection* FindPlace() const;
  void GoOn(ClientConnection& connection, int64_t now_ns);
  void OnFailed(uint32_t rail, int64_t now_ns, const std::string& why);

  const Dependencies given_;
  bool stopped_ = false;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_JOINING_CONNECTIONS_H_
