#ifndef GANNET_CLIENT_SESSION_CLIENT_SESSION_H_
#define GANNET_CLIENT_SESSION_CLIENT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/session/client_connections.h"
#include "client/session/client_news.h"
#include "client/session/connect_attempts.h"
#include "client/session/first_connection.h"
#include "client/session/joining_connections.h"
#include "client/session/primary_lease_watch.h"
#include "client/session/server_rails.h"
#include "client/session/session_completions.h"
#include "client/session/session_heartbeats.h"
#include "client/session/session_memory.h"
#include "client/session/session_options.h"
#include "client/session/session_owner.h"
#include "client/session/session_phase.h"
#include "client/session/session_rails.h"
#include "client/session/session_reports.h"
#include "client/session/session_requests.h"
#include "client/session/session_sends.h"
#include "client/session/session_terms.h"
#include "client/session/session_waits.h"
#include "client/session/watched_time.h"
#include "common/base/check.h"
#include "common/base/data_path_checks.h"
#include "common/protocol/connect.h"

namespace gannet {

// A session with one server: its connections, credits and heartbeats, and how it comes back after a
// break. A state machine: Poll does everything, nothing blocks, no thread is started.
//
//   down --back-off--> connecting --grant--> ready --break or silence--> draining --flushed--> down
//
// The session decides in which of these phases it is. What is done meanwhile is done by its parts,
// and whoever wants something of a part asks the session for it:
//
//   FirstConnection     connects: one attempt after the other, until there is a grant
//   ConnectAttempts     when to connect, to which address, and why there is no connection
//   JoiningConnections  the connections beside the first one
//   SessionSends        what is posted
//   SessionCompletions  what has completed
//   SessionRequests     requests, their credits and answers
//   SessionHeartbeats   heartbeats, and what they tell both sides
//   SessionWaits        what the session waits for, and how its owner sleeps meanwhile
//   SessionRails        connections that break alone, if the server has several rails
//   ClientNews          what heartbeats tell the server of READs
//
// A server is silent if nothing is heard from it (liveness.h), or if it answers heartbeats but no
// requests (request_watch.h). The session is unreachable() after all addresses of its server were
// tried in vain, until it is ready again. It goes on trying; meanwhile operations should not wait
// for it.
//
// 1. Nothing is posted unless the session is ready.
// 2. For everything posted, either it is reported (OnWorksDone, OnReply), or OnLost is called after
//    its connection was flushed. Only then may its memory be reused.
// 3. If the first connection breaks, all of the session's are closed: locks belong to it. So they
//    are if another one breaks, unless the server has several rails (docs/rails.md).
// 4. Nothing is reported that came after a primary's lease (primary_lease_watch.h).
//
// The owner calls it in this order:
//
//   QueueRead ... -> Poll -> (it may send) -> SendOrdered ... -> requests().Send ... -> Flush
//
// where QueueRead and SendOrdered are those of sends().
//
// One owner thread.
class ClientSession final : private ConnectionsOwner {
 public:
  using Options = SessionOptions;
  static constexpr uint32_t kConnectionsMax = SessionMemory::kConnectionsMax;

  // `owner` outlives the session.
  ClientSession(Options options, SessionOwner* owner);
  // Ends as BeginEnd and PollEnd do, and waits for it: at most kLastReportNsMax and kDrainNsMax.
  ~ClientSession();
  // Begins to end: tells the server the last counts, then closes and drains. Reports nothing to the
  // owner. From now on call nothing but PollEnd. REQUIRES: nobody waits for anything.
  void BeginEnd(int64_t now_ns);
  // Returns whether it has ended, so that the destructor does not wait. REQUIRES: BeginEnd.
  bool PollEnd(int64_t now_ns);
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  // Posts the READs that were queued, takes completions, and does what is due. Returns true if the
  // owner may send now, and must then call Flush.
  bool Poll(int64_t now_ns);

  bool ready() const { return phase_.ready(); }
  // The session is not ready and will never be again, since reconnect is off.
  bool dead() const {
    return phase_.value() == Phase::kDown && attempts().next_ns() == ConnectAttempts::kNever;
  }
  // Operations should not wait for it. Never so while it is ready.
  bool down() const { return attempts().unreachable() || dead(); }
  // Whether it was ready, at which address, and why it is not ready.
  const ConnectAttempts& attempts() const { return first_.attempts(); }
  const std::string& endpoint() const { return options_.endpoint; }
  // Sets what heartbeats tell of the client's list of servers (Router::set_hash()). Forgotten if
  // there was no connection yet, but OnNamed comes with each connection.
  void SetServerSet(uint64_t hash);

  // What the server granted. Before it was ready it is nothing: no value is short enough to be
  // eager, and hashes have no seed, so keys are hashed again when the session is ready.
  const SessionTerms& terms() const { return terms_; }
  // These two: REQUIRES attempts().was_connected().
  const Grant& grant() const {
    GANNET_CHECK_DATA_PATH(attempts().was_connected(), "nothing was granted yet");
    return terms_.grant;
  }
  SessionMemory& memory() const { return *memory_; }
  // What the server tells in answers to heartbeats.
  const SessionHeartbeats& heartbeats() const { return heartbeats_; }
  // A lookup found a home that was migrated to an index that the view does not have. Asks for it.
  void WantIndex() {
    heartbeats_.WantIndex();
    waits_.LookAtConnections();
  }
  // What is known of the primary's lease.
  PrimaryLeaseWatch& lease() { return lease_; }
  const PrimaryLeaseWatch& lease() const { return lease_; }
  // Returns whether what was READ is believed if its completion was taken before now: the server is
  // in no group, or has a lease for this client's map.
  bool BelievesNow() const {
    return !lease_.on() || lease_.ValidAt(options_.clock.get().MonotonicNs());
  }
  // What to tell the server of the items that were READ and of this client's operations. Heartbeats
  // carry it.
  ClientNews& news() { return news_; }

  // READs, compare-and-swaps and requests for the server.
  SessionSends& sends() { return sends_; }
  SessionRequests& requests() { return requests_; }
  // Posts what is in the chain. If `may_wait`, a chain of few READs may wait for the READs of
  // operations that begin before the next Poll.
  void Flush(bool may_wait) { sends_.Flush(may_wait, completions_.completed()); }

  // What it waits for, and how to sleep meanwhile.
  SessionWaits& waits() { return waits_; }
  // Returns whether the server is in a group, and can be asked for its cluster's map now.
  bool CanAskForMap() const { return ready() && grant().history != 0; }
  // Asks for the piece of the map (partition_map.h) that begins at `position`, in the next Poll in
  // which there is a credit. OnMapReply brings it, unless the connection is lost. REQUIRES:
  // CanAskForMap().
  void AskForMap(uint64_t position) {
    GANNET_CHECK(CanAskForMap(), "the server cannot be asked for the map");
    requests_.AskForMap(position);
    waits_.LookAtConnections();
  }
  // The owner goes by the map of this revision from now on. 0: it has none, or one that was never
  // changed. Leases for later maps are none.
  void SetMapRevision(uint64_t revision) {
    heartbeats_.SetMapRevision(revision);
    waits_.LookAtConnections();
  }
  // The session has another number among its owner's from now on.
  void SetNumber(uint32_t number) { reports_.SetNumber(number); }
  // How its first connection is made, and the session with it.
  FirstConnection& first() { return first_; }
  // How it uses the server's rails.
  const SessionRails& rails() const { return rails_; }
  // Breaks the connections, as a failure would.
  void Break(absl::Status why) { phase_.Break(std::move(why)); }

 private:
  using Phase = SessionPhase::Value;
  static constexpr int64_t kDrainNsMax = 2 * kNsPerSecond;
  static constexpr int64_t kLastReportNsMax = 200 * kNsPerMs;
  static constexpr uint32_t kLooksAtStillClock = 10'000;

  // A phase each, and what begins the next one.
  void PollConnecting(int64_t now_ns);
  void BecomeReady(int64_t now_ns);
  void PollReady(int64_t now_ns);
  void PollControl(int64_t now_ns);
  void CheckSilence(int64_t now_ns);
  void GiveUp(absl::Status why) override;
  void BeginDrain();
  void PollDraining(int64_t now_ns);

  const Options options_;
  SessionPhase phase_{this, &rails_};
  SessionReports reports_;
  int64_t drain_until_ns_ = 0;
  int64_t tell_until_ns_ = 0;  // the last counts, from BeginEnd on

  // What several parts know.
  SessionTerms terms_;
  PrimaryLeaseWatch lease_;
  WatchedTime watched_;
  ClientNews news_;
  std::unique_ptr<SessionMemory> memory_;  // before connections_, whose queue pairs use it
  ClientConnections connections_;
  ServerRails server_rails_;
  FirstConnection first_;
  SessionSends sends_;
  SessionRequests requests_;
  SessionHeartbeats heartbeats_;
  SessionCompletions completions_;
  JoiningConnections joining_;
  SessionWaits waits_;
  SessionRails rails_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_CLIENT_SESSION_H_
