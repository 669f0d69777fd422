#ifndef GANNET_CLIENT_SESSION_FIRST_CONNECTION_H_
#define GANNET_CLIENT_SESSION_FIRST_CONNECTION_H_

#include <cstdint>
#include <memory>

#include "client/session/client_connections.h"
#include "client/session/connect_attempts.h"
#include "client/session/connection_maker.h"
#include "client/session/session_memory.h"
#include "client/session/session_options.h"
#include "client/session/session_owner.h"
#include "client/session/session_reports.h"
#include "client/session/session_terms.h"
#include "common/protocol/connect.h"
#include "common/rdma/connector.h"

namespace gannet {

// Makes the first of a session's connections, which brings the session's terms. One attempt after
// the other: each has an address, and ends with a grant or with a failure. ConnectAttempts decides
// when the next one begins, and at which address. One owner thread.
class FirstConnection {
 public:
  struct Dependencies {  // outlive this
    const SessionOptions* options;
    SessionReports* reports;
    SessionTerms* terms;  // filled in when the connection is made
    std::unique_ptr<SessionMemory>* memory;
    ClientConnections* connections;
  };

  // How far an attempt is.
  enum class Step : uint8_t {
    kUnderWay,
    kFailed,  // attempts() know why. What there is of the connection is to be drained
    kMade,    // the connection is open, and the session has its terms
  };

  explicit FirstConnection(const Dependencies& given);

  // Begins an attempt. REQUIRES: there is no connection.
  Step Begin(int64_t now_ns);
  // Goes on with it. REQUIRES: the last Step was kUnderWay.
  Step Poll(int64_t now_ns);

  // These two are of the last connection that was made. How the session came back with it:
  Comeback comeback() const { return comeback_; }
  // Returns whether the server knows the session, and so the requests that it did not answer.
  bool resumed() const { return resumed_; }

  // The next connection begins a new session, although the server may know this one.
  void ForgetSession() { maker_.set_token(0); }

  ConnectAttempts& attempts() { return attempts_; }
  const ConnectAttempts& attempts() const { return attempts_; }
  // Makes the connections that join this one, too.
  ConnectionMaker& maker() { return maker_; }

 private:
  Step OnClosed(const Connector& connector);
  Step OnEstablished(int64_t now_ns);
  Step Fail(ConnectAttempts::Failure failure);
  void AdoptGrant(const Grant& grant, int64_t now_ns);
  Comeback HowItCameBack(const Grant& grant) const;

  const Dependencies given_;
  ConnectAttempts attempts_;
  ConnectionMaker maker_;
  Comeback comeback_ = Comeback::kFirst;
  bool resumed_ = false;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_FIRST_CONNECTION_H_
