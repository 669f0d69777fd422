#ifndef GANNET_CLIENT_SESSION_SESSION_HEARTBEATS_H_
#define GANNET_CLIENT_SESSION_SESSION_HEARTBEATS_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "client/session/client_connections.h"
#include "client/session/client_news.h"
#include "client/session/index_watch.h"
#include "client/session/primary_lease_watch.h"
#include "client/session/server_time_bound.h"
#include "client/session/session_memory.h"
#include "client/session/session_options.h"
#include "client/session/session_phase.h"
#include "client/session/session_reports.h"
#include "client/session/session_sends.h"
#include "client/session/session_terms.h"
#include "common/protocol/message.h"

namespace gannet {

// A session's heartbeats: when they go out, what they tell the server, and what the answers tell of
// its clock, its index and its lease. One owner thread.
class SessionHeartbeats {
 public:
  struct Dependencies {  // outlive this
    const SessionOptions* options;
    const SessionPhase* phase;
    SessionReports* reports;
    SessionTerms* terms;
    const std::unique_ptr<SessionMemory>* memory;
    ClientConnections* connections;
    PrimaryLeaseWatch* lease;
    ClientNews* news;
    SessionSends* sends;
  };

  explicit SessionHeartbeats(const Dependencies& given) : given_(given) {}

  // The first connection was made, and the session's terms are known.
  void Restart(int64_t now_ns);

  // Sends one on each connection that had nothing else to send, or had no heartbeat for long.
  void SendDue(int64_t now_ns);
  // Asks for the primary's lease, if it is time to. Call it before the completions are taken: what
  // is posted next comes under the lease that is asked for now. `busy`: operations are under way.
  void AskForLease(int64_t now_ns, bool busy);
  // A reply came that may be a heartbeat's.
  void OnReply(ClientConnection& connection, const ReplyView& reply, int64_t now_ns);

  // A lookup found a home that was migrated to an index that the terms do not have. The next
  // heartbeat asks for it.
  void WantIndex() { index_watch_.Want(); }
  // READs went from a connection that broke to others.
  void OnReadsMoved() { index_watch_.OnReadsMoved(); }
  const ServerTimeBound& server_time() const { return server_time_; }
  // See ClientSession.
  void SetMapRevision(uint64_t revision);
  // The server's leases are for those who have a later map.
  bool map_is_old() const { return leases_from_ > map_revision_; }

 private:
  // The server's clock was there at some moment since `asked_ns`.
  void LearnTime(uint64_t time_ms, int64_t asked_ns);
  void OnLease(const ReplyHeader& reply, int64_t asked_ns, int64_t now_ns);
  void Send(ClientConnection& connection, int64_t now_ns);
  void SendNews(int64_t now_ns);
  void LookAtIndex();
  void AdoptIndex(std::string_view news);

  const Dependencies given_;
  IndexWatch index_watch_;
  ServerTimeBound server_time_;
  uint64_t map_revision_ = 0;  // the owner's
  uint64_t leases_from_ = 0;   // as the server told last: the first map for which it has leases
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_HEARTBEATS_H_
