#ifndef GANNET_CLIENT_SESSION_SESSION_RAILS_H_
#define GANNET_CLIENT_SESSION_SESSION_RAILS_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "client/session/client_connections.h"
#include "client/session/connect_attempts.h"
#include "client/session/server_rails.h"
#include "client/session/session_completions.h"
#include "client/session/session_heartbeats.h"
#include "client/session/session_options.h"
#include "client/session/session_phase.h"
#include "client/session/session_requests.h"
#include "client/session/session_sends.h"
#include "client/session/session_waits.h"
#include "common/protocol/rails_reply.h"
#include "common/rdma/alternate_paths.h"

namespace gannet {

// What becomes of a session's connections if its server has several rails: one that breaks is given
// up alone, and its READs and requests go by others when it is flushed. Not so the first one, which
// has the locks, and whose grant has the session's terms. One owner thread.
class SessionRails final : public OneConnectionOwner {
 public:
  struct Dependencies {  // outlive this
    const SessionOptions* options;
    SessionPhase* phase;
    ConnectAttempts* attempts;
    ServerRails* rails;
    ClientConnections* connections;
    SessionSends* sends;
    SessionRequests* requests;
    SessionHeartbeats* heartbeats;
    const SessionCompletions* completions;
    SessionWaits* waits;
  };

  explicit SessionRails(const Dependencies& given) : given_(given), rails_(*given.rails) {}

  // The first connection was made. `asked`: the server will tell its rails.
  void Restart(const SocketAddress& address, bool asked) {
    rails_.Restart(address, asked);
    if (!asked) given_.attempts->LearnRails({});
  }
  // The server told, perhaps again.
  void Learn(const RailsReply& told);
  // Looks at the connections that were given up. May break the others. REQUIRES: ready.
  void Poll(int64_t now_ns);
  bool GiveUpOne(ClientConnection& connection, const absl::Status& why) override;

  // How a rail is used.
  struct Use {
    bool connected = false;
    uint64_t works = 0;  // that were posted since the first connection was made
    uint64_t moves = 0;  // of its connections to their alternate paths and back
    bool armed = true;   // if connected: all its connections have an alternate path
  };
  Use UseOf(uint32_t rail) const;
  const ServerRails& all() const { return rails_; }

 private:
  static constexpr int64_t kDrainNsMax = 2 * kNsPerSecond;
  static constexpr int64_t kLookAtPathsNs = kNsPerSecond / 4;

  void LookAtPaths(int64_t now_ns);
  bool HasPaths(ibv_context* verbs);

  const Dependencies given_;
  ServerRails& rails_;
  // Alternate paths, of the connections through each device that has them.
  AlternatePaths paths_;
  std::map<ibv_context*, bool> have_paths_;
  int64_t paths_due_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_RAILS_H_
