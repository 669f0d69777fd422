#ifndef GANNET_CLIENT_SESSION_CLIENT_SESSION_H_
#define GANNET_CLIENT_SESSION_CLIENT_SESSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "client/lookup/clock.h"
#include "client/lookup/index_view.h"
#include "client/session/fixed_ring.h"
#include "client/session/link.h"
#include "client/session/liveness.h"
#include "client/session/request_queue.h"
#include "client/session/request_watch.h"
#include "client/session/request_window.h"
#include "client/session/send_chain.h"
#include "client/session/server_time_bound.h"
#include "client/session/session_memory.h"
#include "client/session/watched_time.h"
#include "common/protocol/connect.h"
#include "common/protocol/message.h"
#include "common/rdma/address.h"

namespace gannet {

// How a session came back after its connections broke.
enum class Comeback : uint8_t {
  kFirst,           // it is the first connection
  kResumed,         // the server remembers the session: unanswered requests were sent again
  kNewSession,      // same server run, but it forgot the session: their outcome is unknown
  kNewIncarnation,  // another server run, with other memory: as above, and no location holds
};

// What a descriptor of a session tells.
enum class FdKind : uint8_t { kConnection, kCompletions };

// What a ClientSession tells its owner; always from within its Poll.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  // About to post a READ of `op` as the first of its chain.
  virtual void OnDoorbell(uint32_t op) = 0;
  // About to post what came by QueueOrdered; `doorbell`: it is the first of its chain. False:
  // nobody wants it any more, do not post.
  virtual bool OnPostOrdered(uint32_t op, InFlightWork::Kind kind, bool doorbell) = 0;
  // These are done, messages among them; `signaled`: with a completion that is the last one's.
  virtual void OnWorksDone(uint32_t session, std::span<const InFlightWork::Work> works,
                           bool signaled) = 0;
  // A credit is free for `op`'s request: encode it, with the entry's number, to `out` and return
  // its bytes.
  static constexpr uint32_t kNotNow = 0;              // there is no buffer to lend
  static constexpr uint32_t kNotWanted = UINT32_MAX;  // nobody waits for it any more
  virtual uint32_t OnEncode(uint32_t op, RequestWindow::Entry* entry, std::span<std::byte> out) = 0;
  // A request was put into a chain, as its first if `doorbell`.
  virtual void OnRequestPosted(uint32_t op, bool doorbell) = 0;
  // ... and has a completion of its own.
  virtual void OnRequestSignaled(uint32_t op) = 0;
  // An answer that `entry->op` waits for. The owner may take entry->reply; what it leaves is
  // returned to its pool.
  virtual void OnReply(RequestWindow::Entry* entry, const ReplyView& reply) = 0;
  // The connections are gone and flushed: no memory of READs and compare-and-swaps is touched any
  // more, and none of them will be reported. Locks are lost. Unanswered requests stay. Also called
  // each time when an attempt to connect failed and the session is down().
  virtual void OnLost(uint32_t session) = 0;
  // Connected, and the server says what it is called; empty: it has no name. If the answer is not
  // OK, the connection is given up for that reason. Otherwise OnReady follows.
  virtual absl::Status OnNamed(uint32_t session, std::string_view name) = 0;
  // Connected again. Unless kFirst or kResumed, OnAbandoned was called before for each unanswered
  // request.
  virtual void OnReady(uint32_t session, Comeback comeback) = 0;
  // The answer to the request of `op` will never be known.
  virtual void OnAbandoned(uint32_t op) = 0;
};

// A READ or compare-and-swap to be posted in the order in which it came.
struct QueuedWork {
  uint32_t op;
  InFlightWork::Kind kind;
  bool of_locks;  // offset is in the lock words' region
  uint32_t bytes;
  uint32_t lkey;
  std::byte* local;
  uint64_t offset;
  uint64_t expected;
  uint64_t desired;
};

// A session with one server: its queue pairs, credits, heartbeats, and how it comes back after a
// break. A state machine: Poll(now) does everything, nothing blocks, no thread is started.
//
//   down --backoff--> connecting --grant--> ready --break or silence--> draining --flushed--> down
//
// A session is unreachable() when all addresses of its server were tried and failed, until it is
// ready again. It goes on trying, with a back-off; meanwhile nobody should wait for it.
//
// Silence is that of a server of which nothing is heard (liveness.h), or which answers heartbeats
// but no requests (request_watch.h).
//
// 1. Nothing is posted unless ready. Work queued at other times is dropped by OnLost or kept by the
//    owner; requests wait.
// 2. What was posted is reported (OnWorkDone, OnReply) or OnLost comes after its queue pair was
//    flushed: only then may its memory be reused.
// 3. One queue pair breaking ends all of the session's: locks hang on the first, and the server
//    treats a session as a whole.
// 4. Requests and compare-and-swaps go over the first queue pair, READs over all.
//
// One owner thread.
class ClientSession {
 public:
  struct Options {
    uint32_t number = 0;   // among the owner's sessions
    std::string endpoint;  // as the user wrote it
    std::vector<SocketAddress> addresses;
    std::string device;            // "auto", "soft" or a name
    uint32_t ops = 0;              // operations whose buffers it has
    uint32_t queue_pairs_max = 1;  // as many as READs in flight need, at most so many
    uint32_t reads_wanted = 0;     // in flight
    int64_t connect_timeout_ns = 0;
    bool reconnect = true;
    bool nic_locks = true;                    // where both devices can
    bool server_clock = true;                 // to be learned; otherwise nothing is known of it
    uint32_t signal_every = SendChain::kMax;  // work requests, beside the last that go together
    const Clock* clock = Clock::Real();
    std::function<void(bool error, const std::string&)> log;
  };
  static constexpr uint32_t kQueuePairsMax = SessionMemory::kQueuePairsMax;

  // `owner` outlives the session.
  ClientSession(Options options, SessionOwner* owner);
  // Closes and drains; waits at most kDrainNsMax. Reports nothing.
  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  void Poll(int64_t now_ns);

  bool ready() const { return phase_ == Phase::kReady; }
  bool was_ready() const { return was_ready_; }
  // Not ready and will not be again: reconnect is off.
  bool dead() const { return phase_ == Phase::kDown && retry_ns_ == kNever; }
  // Not ready, and every address of the server was tried in vain since it was.
  bool unreachable() const { return unreachable_; }
  // Operations are not to wait for it. REQUIRES: not ready.
  bool down() const { return unreachable_ || dead(); }
  // On the way to be ready, or down; its descriptors say when to go on. Or it is ready, and another
  // queue pair is on the way.
  bool in_motion() const {
    if (phase_ == Phase::kReady) return links_.back().phase == Link::Phase::kConnecting;
    return phase_ != Phase::kDown;
  }
  // The server said at the last attempt that it is still preparing its memory.
  bool starting() const { return !ready() && refused_with_ == RejectCode::kStarting; }
  // Why it is not ready; OK: it is ready, or was not tried yet.
  const absl::Status& status() const { return status_; }
  // How long Poll may be put off after `now_ns`, if no descriptor becomes readable: until something
  // is due. 0: there is something to post or to read now. Where nobody waits, a dead server need
  // not be noticed at once.
  int64_t IdleNs(int64_t now_ns, bool somebody_waits) const;
  // What the client's heartbeats tell of its list of servers: Router::set_hash(). Forgotten if
  // there was no connection yet; OnNamed comes with each.
  void SetServerSet(uint64_t hash);
  const std::string& endpoint() const { return options_.endpoint; }

  // The rest: REQUIRES was_ready().
  const Grant& grant() const { return grant_; }
  const IndexView& view() const { return view_; }
  SessionMemory& memory() const { return *memory_; }
  uint32_t read_depth() const { return read_depth_; }
  uint32_t eager_bytes_max() const { return eager_bytes_max_; }
  // By the NIC where server and local device both can, otherwise by RPC.
  bool lock_by_nic() const { return lock_by_nic_; }
  LockMode lock_mode() const {
    const LockMode mode = static_cast<LockMode>(grant_.lock_mode);
    return mode == LockMode::kNicCas && !lock_by_nic_ ? LockMode::kRpcLoopback : mode;
  }
  RequestWindow& window() { return window_; }
  const ServerTimeBound& server_time() const { return server_time_; }
  int64_t silence_ns() const { return grant_.silence_ms * kNsPerMs; }

  // REQUIRES: ready. Posted by this or the next Poll. Locks and what must follow them in order go
  // to QueueOrdered, which is posted as it came, on the first queue pair. A READ is put into the
  // chain at once where there is room for it.
  void QueueRead(const QueuedRead& read) {
    if (!chain_.TakesRead()) [[unlikely]] {
      if (!reads_.empty() || !OpenReads(read.op)) return reads_.Push(read);
    }
    chain_.AddRead(read);
  }
  void QueueOrdered(const QueuedWork& work) { ordered_.Push(work); }
  // At any time; sent when ready and there is a credit. REQUIRES: it is not queued.
  void QueueRequest(uint32_t op) { requests_.Push(op); }
  // REQUIRES: it is queued, and was not sent yet.
  void CancelRequest(uint32_t op) {
    requests_.Remove(op);
    wants_buffer_ = false;  // of the others it is not known
  }

  // For tests: what is queued, unanswered or lent. 0 when nothing is under way, or something leaks.
  uint32_t busy() const;

  // To sleep: Arm, Poll once more, wait until one of the descriptors is readable or IdleNs is over.
  // connections: each queue pair's own, readable while the connection manager has an event;
  // completions: readable from an event of the armed completion queue until TakeEvents.
  template <class F>
  void ForEachFd(F use) const {
    for (const Link& link : links_) use(link.connector->fd(), FdKind::kConnection);
    if (memory_ != nullptr) use(memory_->completions->fd(), FdKind::kCompletions);
  }
  // Other than before: the descriptors are not the same.
  uint64_t fds_version() const { return fds_version_; }
  // Returns true if a request, a heartbeat or a READ is unanswered, or a connection is being made
  // or closed.
  bool ExpectsCompletions() const;
  void Arm();
  void TakeEvents() { memory_->completions->TakeEvents(); }
  // The next Poll looks at the connections, however short ago the last one did.
  void LookAtConnections() { next_control_ns_ = 0; }
  // Whether completions of READs, compare-and-swaps or requests were found by the last Poll.
  bool progressed() const { return ready() && completed_ > 0; }
  // Requests wait for a buffer that the owner has to give back.
  bool wants_buffer() const { return wants_buffer_; }
  // Breaks the connections, as a failure would.
  void Break(absl::Status why);

 private:
  enum class Phase : uint8_t { kDown, kConnecting, kReady, kDraining };
  static constexpr int64_t kNever = INT64_MAX;
  static constexpr int64_t kControlNs = 2 * kNsPerMs;  // how often the control path is looked at
  static constexpr int64_t kDrainNsMax = 2 * kNsPerSecond;
  static constexpr int64_t kDrainLookNs = 10 * kNsPerMs;  // how often draining is looked at
  static constexpr uint32_t kSendWrs = 512;
  static constexpr uint32_t kReadsPerPost = 16;  // if so many are to be posted

  // client_session.cc
  void PollControl(int64_t now_ns);
  void CheckSilence();
  void PollDraining(int64_t now_ns);
  void BeginDrain();
  void DestroyLinks();
  void Log(bool error, const std::string& line) const;
  int64_t ReadyIdleNs(int64_t now_ns, bool somebody_waits) const;
  bool DrainsByItself() const;
  // session_connect.cc
  void BeginConnect(int64_t now_ns);
  void PollConnecting(int64_t now_ns);
  void PollJoining(int64_t now_ns);
  bool WantsLink() const;
  absl::Status StartLink(uint32_t index, int64_t now_ns);
  absl::Status ConfigureLink(Link& link);
  absl::Status CheckDevice(const Device& device) const;
  absl::Status MakeMemory(ibv_context* verbs);
  void OnConnectFailed(const Connector& connector);
  void OnFirstEstablished(int64_t now_ns);
  void AdoptGrant(const Grant& grant, int64_t now_ns);
  // `code`: the server's, if it refused.
  void GiveUpAttempt(absl::Status why, RejectCode code = {});
  int64_t NextAttemptNs(int64_t now_ns);
  // session_datapath.cc
  void PollCompletions(int64_t now_ns);
  void OnCompletion(const ibv_wc& completion, int64_t now_ns);
  void OnSendCompletion(Link& link, uint32_t position, const ibv_wc& completion);
  void OnReceiveCompletion(Link& link, uint32_t receive, const ibv_wc& completion, int64_t now_ns);
  void HandleReply(Link& link, std::span<const std::byte> message, int64_t now_ns);
  void OnHeartbeatReply(Link& link, uint64_t time_ms, int64_t now_ns);
  void ReturnLent(const RequestWindow::Entry& entry);
  bool PostReceives(Link& link);
  void Flush(int64_t now_ns);
  void FlushRequests(Link& first, int64_t now_ns);
  void FlushReads();
  bool OpenReads(uint32_t op);
  bool OthersWillJoin() const;
  bool HasSomethingToPost() const;
  void SendHeartbeats(int64_t now_ns);
  void ResendUnanswered(int64_t now_ns);
  Link* LinkOf(uint32_t owner);
  // The chain being built.
  bool OpenChain(Link& link);
  void AddOrdered(Link& link, const QueuedWork& work);
  void AddMessage(Link& link, uint32_t op, std::byte* data, uint32_t bytes, int64_t now_ns);
  void PostChain();

  Options options_;
  SessionOwner* const owner_;
  Phase phase_ = Phase::kDown;
  absl::Status status_;
  int64_t retry_ns_ = 0;  // when down: next attempt
  int64_t next_control_ns_ = 0;
  int64_t drain_until_ns_ = 0;
  uint32_t address_ = 0;  // of options_.addresses: connected to, or to be tried next
  uint32_t tried_ = 0;    // addresses that failed, in this round over all of them
  bool spoke_ = false;    // in this round the server answered, though it did not connect
  bool unreachable_ = false;
  RejectCode refused_with_{};  // at the last attempt; 0: it was not refused by the server
  bool closing_ = false;       // being destroyed
  bool was_ready_ = false;
  uint64_t token_ = 0;        // of the session to resume; 0 = make a new one
  bool report_lost_ = false;  // was ready on the connections that are being drained
  Backoff backoff_;

  Grant grant_{};
  IndexView view_;
  uint32_t read_depth_ = 0;
  uint32_t eager_bytes_max_ = 0;
  bool lock_by_nic_ = false;

  int64_t asked_ns_ = 0;  // when the connection was asked for that brings the next grant
  ServerTimeBound server_time_;
  WatchedTime watched_;
  RequestWatch request_watch_;
  bool all_read_ = true;       // of the completions, in this Poll
  bool wants_buffer_ = false;  // the first request does; as the last Poll found it

  RequestWindow window_;
  FixedRing<QueuedRead> reads_;
  FixedRing<QueuedWork> ordered_;
  RequestQueue requests_;

  SendChain chain_;
  size_t completed_ = 0;                // work requests, in this Poll
  uint32_t chain_end_request_ = kNoOp;  // the op when the chain's last is a request

  uint32_t next_owner_ = 1;
  uint32_t next_read_link_ = 0;
  std::unique_ptr<SessionMemory> memory_;  // before links_, whose queue pairs use it
  std::vector<Link> links_;                // never moved: the chain points to one
  uint64_t fds_version_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_CLIENT_SESSION_H_
