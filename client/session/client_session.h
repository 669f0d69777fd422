#ifndef GANNET_CLIENT_SESSION_CLIENT_SESSION_H_
#define GANNET_CLIENT_SESSION_CLIENT_SESSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/session/client_connection.h"
#include "client/session/client_news.h"
#include "client/session/connect_attempts.h"
#include "client/session/fixed_ring.h"
#include "client/session/index_watch.h"
#include "client/session/ordered_work.h"
#include "client/session/primary_lease_watch.h"
#include "client/session/request_watch.h"
#include "client/session/request_window.h"
#include "client/session/send_chain.h"
#include "client/session/server_time_bound.h"
#include "client/session/session_memory.h"
#include "client/session/session_owner.h"
#include "client/session/session_terms.h"
#include "client/session/watched_time.h"
#include "common/auth/auth_file.h"
#include "common/base/client_clock.h"
#include "common/protocol/message.h"
#include "common/rdma/address.h"

namespace gannet {

// What a descriptor of a session tells.
enum class FdKind : uint8_t { kConnection, kCompletions };

// A session with one server: its connections, credits and heartbeats, and how it comes back after a
// break. A state machine: Poll does everything, nothing blocks, no thread is started.
//
//   down --back-off--> connecting --grant--> ready --break or silence--> draining --flushed--> down
//
// A server is silent if nothing is heard from it (liveness.h), or if it answers heartbeats but no
// requests (request_watch.h). The session is unreachable() after all addresses of its server were
// tried in vain, until it is ready again. It goes on trying; meanwhile operations should not wait
// for it.
//
// 1. Nothing is posted unless the session is ready.
// 2. For everything posted, either it is reported (OnWorksDone, OnReply), or OnLost is called after
//    its connection was flushed. Only then may its memory be reused.
// 3. If one connection breaks, all of the session's are closed: locks belong to the first one, and
//    the server treats a session as a whole.
// 4. Nothing is reported that came after a primary's lease (primary_lease_watch.h).
// 5. Requests and compare-and-swaps go over the first connection, READs over all. But a queue pair
//    completes its work in the order in which it was posted. So a READ behind a request is done
//    only when the server's device acknowledged the request, which a software device does when it
//    gets a core. So a session that is found to have READs behind an unanswered request makes one
//    connection more, and from then on posts no READs to the first.
//
// The owner calls it in this order:
//
//   QueueRead ... -> Poll -> (it may send) -> SendOrdered ... -> SendRequest ... -> Flush
//
// One owner thread.
class ClientSession {
 public:
  struct Options {
    uint32_t number = 0;   // among the owner's sessions
    std::string endpoint;  // as the user wrote it
    std::vector<SocketAddress> addresses;
    bool group = false;                 // they are those of a group's members
    std::shared_ptr<NameLookup> names;  // that the addresses are of; null: of none
    std::string device;                 // "auto", "soft" or a name
    uint32_t ops = 0;                   // operations whose buffers it has
    uint32_t connections_max = 1;  // for READs: as many as are needed for reads_wanted, at most
    uint32_t reads_wanted = 0;     // in flight
    int64_t connect_timeout_ns = 0;
    bool reconnect = true;
    bool nic_locks = true;     // false: as if the local device had no atomics
    bool server_clock = true;  // false: as if nothing were known of the server's clock
    uint32_t signal_every = SendChain::kMax;  // work requests, beside the last of a chain
    const ClientClock* clock = ClientClock::Real();
    std::shared_ptr<MemoryDomains> domains = MemoryDomains::Create();  // shared with other sessions
    // Its first key is this client's; null: none. Shared. Read again with each first connection.
    std::shared_ptr<AuthFile> auth_file;
    std::function<void(bool error, const std::string&)> log;
  };
  static constexpr uint32_t kConnectionsMax = SessionMemory::kConnectionsMax;

  // `owner` outlives the session.
  ClientSession(Options options, SessionOwner* owner);
  // Tells the server the last counts, which takes at most kLastReportNsMax. Then closes and drains;
  // waits at most kDrainNsMax. Reports nothing to the owner.
  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  // Posts the READs that were queued, takes completions, and does what is due. Returns true if the
  // owner may send now, and must then call Flush.
  bool Poll(int64_t now_ns);

  bool ready() const { return phase_ == Phase::kReady; }
  bool was_ready() const { return attempts_.was_connected(); }
  // The session is not ready and will never be again, since reconnect is off.
  bool dead() const {
    return phase_ == Phase::kDown && attempts_.next_ns() == ConnectAttempts::kNever;
  }
  const SocketAddress& address() const { return attempts_.address(); }
  bool unreachable() const { return attempts_.unreachable(); }
  // Operations should not wait for it. REQUIRES: not ready.
  bool down() const { return unreachable() || dead(); }
  // Its descriptors tell when to go on: it connects, drains, or makes one connection more.
  bool in_motion() const {
    if (ready()) return connections_.back().phase == ClientConnection::Phase::kConnecting;
    return phase_ != Phase::kDown;
  }
  // The server said that it is still preparing its memory, or the group has no primary yet.
  bool starting() const { return !ready() && attempts_.starting(); }
  // Why it is not ready. OK: it is ready, or was not tried yet.
  const absl::Status& status() const { return attempts_.status(); }
  const std::string& endpoint() const { return options_.endpoint; }
  // How long Poll may be put off after `now_ns` if no descriptor becomes readable: until something
  // is due. 0: there is something to post or to read now. If nobody waits, a dead server may be
  // noticed later.
  int64_t IdleNs(int64_t now_ns, bool somebody_waits) const;
  // Sets what heartbeats tell of the client's list of servers (Router::set_hash()). Forgotten if
  // there was no connection yet, but OnNamed comes with each connection.
  void SetServerSet(uint64_t hash);

  // These four: REQUIRES was_ready().
  const SessionTerms& terms() const { return terms_; }
  const Grant& grant() const { return terms_.grant; }
  const IndexView& view() const { return terms_.view; }
  // Of the newest index that it knows of.
  uint64_t index_slots() const {
    return (view().next.homes != 0 ? view().next : view().index).slots();
  }
  // A lookup found a home that was migrated to an index that the view does not have. Asks for it.
  void WantIndex() {
    index_watch_.Want();
    LookAtConnections();
  }
  SessionMemory& memory() const { return *memory_; }
  const ServerTimeBound& server_time() const { return server_time_; }
  // READs that were done anew because they came after the primary's lease.
  uint64_t reads_disbelieved() const { return lease_.disbelieved(); }
  // What to tell the server of the items that were READ. Heartbeats carry it.
  TouchLog& touches() { return news_.touches(); }
  // What to tell the server of this client's operations. Heartbeats carry it, too.
  UsageLog& usage() { return news_.usage(); }

  // Adds a READ to the chain that is being built, or queues it if the chain has no room.
  // REQUIRES: ready.
  void QueueRead(const QueuedRead& read) {
    if (!chain_.TakesRead()) [[unlikely]] {
      if (!reads_.empty() || !OpenReads(read.op)) return reads_.Push(read);
    }
    chain_.AddRead(read);
  }

  // Adds a READ of consecutive bytes, from `offset` on, that go into several pieces of memory, to
  // the chain that is being built. Returns false if there is no room now. REQUIRES: ready; at most
  // memory().pieces_max() pieces.
  bool TryReadInto(uint32_t op, uint64_t offset, std::span<const LocalPiece> pieces);

  // Returns whether there is room for SendOrdered.
  bool CanSend() const { return ready() && connections_[0].work.room() > 0; }
  // Returns whether there is room and a credit for SendRequest.
  bool CanSendRequest() const { return CanSend() && window_.CanSend(); }
  // REQUIRES: CanSend().
  void SendOrdered(const OrderedWork& work);
  // Posts a READ of memory other than the region: `read.offset` bytes behind `address`. REQUIRES:
  // CanSend().
  void SendReadOf(uint64_t address, uint32_t rkey, const QueuedRead& read);
  // Numbers, encodes and sends a request, and returns its number. `entry` says who waits for the
  // answer, and what is lent to the server. REQUIRES: CanSendRequest().
  uint64_t SendRequest(RequestView request, RequestWindow::Entry entry, int64_t now_ns);
  // Posts what is in the chain. If `may_wait`, a chain of few READs may wait for the READs of
  // operations that begin before the next Poll.
  void Flush(bool may_wait);
  // From now on nobody waits for the answer to this request of `op`. Returns the request, or
  // nullptr if it was answered.
  const RequestWindow::Entry* IgnoreAnswer(uint64_t sequence, uint32_t op);

  // For tests: what is queued, unanswered or lent. 0 unless something is under way or leaks.
  uint32_t busy() const;

  // To sleep: Arm, Poll once more, wait until a descriptor is readable or IdleNs is over. Calls
  // use(descriptor, kind) for each:
  //   kConnection: one for each connection, readable while the connection manager has an event;
  //   kCompletions: readable from an event of the armed completion queue until TakeEvents.
  template <class F>
  void ForEachFd(F use) const {
    for (const ClientConnection& it : connections_) use(it.connector->fd(), FdKind::kConnection);
    if (memory_ != nullptr) use(memory_->completions->fd(), FdKind::kCompletions);
  }
  // Changes whenever the set of descriptors changes.
  uint64_t fds_version() const { return fds_version_; }
  // Returns true if a request, a heartbeat or a READ is unanswered, or a connection is being made
  // or closed.
  bool ExpectsCompletions() const;
  void Arm();
  void TakeEvents() { memory_->completions->TakeEvents(); }
  // Makes the next Poll look at the connections, even if the last one did so a moment ago.
  void LookAtConnections() { next_control_ns_ = 0; }
  // Whether the last Poll found completions of READs, compare-and-swaps or requests.
  bool progressed() const { return ready() && completed_ > 0; }
  // Breaks the connections, as a failure would.
  void Break(absl::Status why);

 private:
  enum class Phase : uint8_t { kDown, kConnecting, kReady, kDraining };
  static constexpr int64_t kControlNs = 2 * kNsPerMs;  // how often the control path is looked at
  static constexpr int64_t kDrainNsMax = 2 * kNsPerSecond;
  static constexpr int64_t kLastReportNsMax = 200 * kNsPerMs;
  static constexpr uint32_t kLooksAtStillClock = 10'000;
  static constexpr int64_t kDrainLookNs = 10 * kNsPerMs;  // how often draining is looked at
  static constexpr uint32_t kSendWrs = 512;
  static constexpr uint32_t kReadsPerPost = 16;  // if so many are to be posted

  // client_session.cc
  void PollControl(int64_t now_ns);
  void CheckSilence(int64_t now_ns);
  int64_t ReadyIdleNs(int64_t now_ns, bool somebody_waits) const;
  void TellLast();
  void BeginDrain();
  void PollDraining(int64_t now_ns);
  void DestroyConnections();
  void Log(bool error, const std::string& line) const;
  // session_connect.cc
  void BeginConnect(int64_t now_ns);
  absl::Status StartConnection(int64_t now_ns);
  void PollConnecting(int64_t now_ns);
  absl::Status ConfigureConnection(ClientConnection& connection);
  absl::Status MakeMemory(ibv_context* verbs);
  void OnConnectFailed(const Connector& connector);
  void FailAttempt(ConnectAttempts::Failure failure);
  void TakeKey();
  absl::StatusOr<Grant> TakeGrant(const ClientConnection& connection) const;
  void OnFirstEstablished(int64_t now_ns);
  void AdoptGrant(const Grant& grant, int64_t now_ns);
  Comeback HowItCameBack(const Grant& grant) const;
  void ResendUnanswered(int64_t now_ns);
  void AbandonUnanswered(std::vector<uint32_t>* abandoned);
  void PollJoining(int64_t now_ns);
  void PollLastJoining(int64_t now_ns);
  bool WantsConnection() const;
  // session_lease.cc
  [[gnu::noinline]] void TakeUnderLease(std::span<const ibv_wc> completions, int64_t now_ns);
  bool HeldUntilBelieved(const ibv_wc& completion) const;
  void LookAtLease(int64_t now_ns);
  bool HasWork() const;
  // session_datapath.cc
  template <bool kUnderLease>
  void PollCompletions(int64_t now_ns);
  void OnCompletion(const ibv_wc& completion, int64_t now_ns);
  void OnSendCompletion(ClientConnection& connection, uint32_t position, const ibv_wc& completion);
  void OnReceiveCompletion(ClientConnection& connection, uint32_t receive, const ibv_wc& completion,
                           int64_t now_ns);
  void OnMessage(ClientConnection& connection, std::span<const std::byte> message, int64_t now_ns);
  void OnHeartbeatReply(ClientConnection& connection, const ReplyView& reply, int64_t now_ns);
  void AdoptIndex(std::string_view news);
  void LookAtIndex();
  ClientConnection* FindConnection(uint32_t id);
  bool OpenReads(uint32_t op);
  bool OthersWillJoin() const;
  bool OpenChain(ClientConnection& connection);
  void AddRequest(RequestWindow::Entry& entry, int64_t now_ns);
  void AddMessage(ClientConnection& connection, std::byte* data, uint32_t bytes, int64_t now_ns);
  void PostChain();
  void SendHeartbeats(int64_t now_ns);
  void SendNews(int64_t now_ns);

  Options options_;
  SessionOwner* owner_;
  Phase phase_ = Phase::kDown;
  ConnectAttempts attempts_;
  std::optional<AuthKey> key_;  // of the first connection and those that join it
  uint64_t token_ = 0;          // of the session to resume; 0: make a new one
  int64_t next_control_ns_ = 0;
  int64_t drain_until_ns_ = 0;
  bool closing_ = false;      // being destroyed
  bool report_lost_ = false;  // was ready on the connections that are being drained

  SessionTerms terms_;
  int64_t asked_ns_ = 0;  // when the connection that brings the next grant was asked for
  PrimaryLeaseWatch lease_;
  ServerTimeBound server_time_;
  WatchedTime watched_;
  RequestWatch request_watch_;
  IndexWatch index_watch_;

  ClientNews news_;

  RequestWindow window_;
  FixedRing<QueuedRead> reads_;                        // found no room in the chain
  SendChain chain_;                                    // being built
  RequestWindow::Entry* chain_end_request_ = nullptr;  // if the chain's last is an unsignaled one
  uint32_t next_read_connection_ = 0;
  bool mixes_ = false;    // READs were seen to wait for a request
  bool may_join_ = true;  // false: a further connection could not even be started
  size_t completed_ = 0;  // work requests, in this Poll
  bool all_read_ = true;  // of the completions, in this Poll

  std::unique_ptr<SessionMemory> memory_;      // before connections_, whose queue pairs use it
  std::vector<ClientConnection> connections_;  // never moved: the chain points to one
  uint32_t next_connection_id_ = 1;
  uint64_t fds_version_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_CLIENT_SESSION_H_
