#ifndef GANNET_SERVER_RPC_WORKER_H_
#define GANNET_SERVER_RPC_WORKER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/layout/lock_word.h"
#include "common/rdma/completion.h"
#include "server/locks/lock_cas.h"
#include "server/locks/lock_janitor.h"
#include "server/rpc/buffer_pool.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/inbox.h"
#include "server/rpc/node.h"
#include "server/rpc/receive_buffers.h"
#include "server/rpc/received.h"
#include "server/rpc/replacing_buffers.h"
#include "server/rpc/send_batch.h"
#include "server/rpc/server_connection.h"
#include "server/rpc/waiting_replies.h"
#include "server/rpc/worker_counters.h"
#include "server/session/session_table.h"

namespace gannet {

// Serves a share of the sessions: their connections, requests, heartbeats and locks. All its
// connections use one completion queue and one shared receive queue, so neither polling nor memory
// grows with them.
//
// A state machine: Poll does what can be done at the given time and returns. It starts no thread
// and never sleeps. Thread safety: one thread, except for inbox() and counters().
//
// Invariants:
//   1. The completion queue cannot overrun: each connection reserves its share before it is
//      accepted.
//   2. A request is answered once. Requests may be answered in any order. A connection with more
//      unanswered requests than its credits is closed, because it takes receives from the others.
//   3. Memory that the device may still write or read becomes free only after the completion of
//      that work, or its flush, was polled.
//   4. A dead connection's queue pair is in the error state and flushed before its locks are
//      broken, before its session may use the same index again, and before it is destroyed.
class Worker {
 public:
  struct Options {
    uint32_t index = 0;
    uint32_t workers = 1;
    uint16_t credits = kCreditsDefault;
    uint32_t connections_max = 2048;
    uint32_t receives = 1024;           // at most; as many as the connections need
    uint32_t reply_buffers = 512;       // at most
    uint32_t lock_requests_max = 1024;  // locks by RPC that wait for a compare-and-swap
    // Buffers for values that are too long for a message, but whose items are not large. They bound
    // the GETs of such values by RPC, and the PUTs that overwrite an item in a full heap, that run
    // at once.
    uint32_t staging_buffers = 4;
    uint32_t replacing_buffers = 2;
    int64_t session_grace_ns = 30'000'000'000;
    // A peer that is silent for so long is dead. The grant tells clients. At most 65,535 ms.
    int64_t silence_ns_max = int64_t{kSilenceMsDefault} * kNsPerMs;
  };

  // `node` outlives the worker. Blocks while the loopback queue pair connects. Returns the device's
  // error (ResourceExhausted, FailedPrecondition) if it fails.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(const Options& options, const Node* node);
  // REQUIRES: closed(), or never polled.
  ~Worker();

  enum class Activity : uint8_t {
    kNone,
    kHousekeeping,  // call Poll again soon
    kRequests,      // clients will send more soon: poll without sleeping
  };
  Activity Poll(const Now& now);

  // To sleep: Poll until it returns kNone; call Arm; Poll once more, which must return kNone again;
  // wait for either descriptor or the deadline; call Woken.
  absl::Status Arm();
  int completion_fd() const { return cq_->fd(); }
  // The latest monotonic time at which Poll must be called.
  int64_t deadline_ns() const;
  void Woken();

  // Returns true if the inbox said to close, and no connection is left.
  bool closed() const { return closing_ && connections_.empty(); }
  // Returns true if the device lost the queues, so that nothing can be served any more.
  bool failed() const { return failed_; }

  // Returns true if clients wait for answers that wait for the disk. They send little before then.
  bool waits_for_disk() const { return !waiting_replies_.empty(); }

  uint32_t index() const { return options_.index; }
  // For tests: the number of taken buffers and waiting requests. If it is not 0 while nothing is
  // under way, something leaks.
  size_t busy() const;

  Inbox& inbox() { return *inbox_; }
  const WorkerCounters& counters() const { return counters_; }

 private:
  struct LockRequest {
    uint32_t connection;
    RequestHeader header;
    size_t index;                      // of the lock word
    uint32_t tries = kForcedTriesMax;  // left, for a forced unlock
  };

  Worker(const Options& options, const Node* node);
  absl::Status CreateQueues();
  absl::Status CreateLocks();

  // worker.cc: one Poll.
  bool TakeInbox();
  bool ServeWhatCame();
  void RunTimers();
  // Serves every message that waits in the completion queue.
  void ServeAllThatWaits();
  void Tick();
  void TickBy(int64_t due_ns);
  // Gives all peers `gap_ns` more time, because the worker was stalled for so long.
  void Forgive(int64_t gap_ns);
  void CheckSilence();
  // Closes a connection whose peer is alive, but takes no replies.
  void CheckTaking(ServerConnection* connection);
  int64_t NextTickNs() const;
  void PublishCounters();
  // Returns the bytes of the maps of connections.
  size_t MapBytes() const;

  // worker_connections.cc: from a connection request to the destroyed queue pair.
  void OnArrival(Arrival arrival);
  void OnNotice(const Notice& notice);
  // Keeps the arrival until the queue pair that it replaces is flushed.
  void Wait(Arrival arrival);
  // Ends the wait of the arrival that replaces `connection`.
  void EndWait(const ServerConnection& connection);
  void GiveUp(Arrival arrival);
  // Makes a new session if `session` is null.
  void Accept(Arrival arrival, Session* session);
  // Adds the connection to the maps. Makes a new session if `session` is null.
  ServerConnection* Add(const Arrival& arrival, Session* session, std::unique_ptr<Connection> rdma);
  void Reject(Arrival arrival, RejectCode code, std::string_view reason);
  ConnectionOptions OptionsForConnection() const;
  Grant GrantFor(const ServerConnection& connection, bool resumed) const;
  PeerRights RightsOf(const Session& session) const;
  ServerConnection* Find(uint32_t connection_id);
  // Returns the connection that a completion belongs to, or nullptr if it is gone. A queue pair
  // number is not reused before the last completion of the old queue pair was polled (invariant 4).
  ServerConnection* FindOwner(const ibv_wc& completion) {
    ServerConnection* recent = recent_[completion.qp_num % kRecent];
    if (recent != nullptr && recent->qp_number == completion.qp_num) [[likely]]
      return recent;
    return FindOwnerInMap(completion);
  }
  ServerConnection* FindOwnerInMap(const ibv_wc& completion);
  ServerConnection* FindQueuePair(const Session* session, uint16_t qp_index);
  void CloseConnection(ServerConnection* connection, std::string_view why);
  void CloseAll();
  void FinishClosing();
  void Destroy(ServerConnection* connection);

  // worker_datapath.cc: from a completion to a posted reply.
  // Polls and serves at most `most` completions, and returns how many there were.
  size_t PollCompletions(size_t most);
  bool OnCompletion(const ibv_wc& completion, Received* received);
  void OnOtherCompletion(const ibv_wc& completion);
  void ServeRecorded(std::span<const Received> received);
  void NoteUpdates(std::span<const Received> received);
  template <bool kRecorded>
  bool ServeUpdate(const Received& request);
  void CountUpdates() {
    served_ |= updates_ > 0;
    counters_.by_opcode[static_cast<size_t>(Opcode::kPut)].Add(updates_);
    counters_.rpcs.Add(std::exchange(updates_, 0));
  }
  // Returns true if one more request would exceed the connection's credits.
  bool TooManyUnanswered(const ServerConnection& connection) const;
  void OnSendDone(const ibv_wc& completion, uint32_t position);
  void Release(ServerConnection* connection, Resource resource, bool ok);
  void OnMessage(ServerConnection* connection, std::span<const std::byte> message);
  bool RefuseWrite(ServerConnection* connection, std::span<const std::byte> message);
  void OnRequest(ServerConnection* connection, const RequestView& request);
  bool Admit(ServerConnection* connection, const RequestHeader& header);
  // Handles a request that was not admitted: a duplicate, or a violation of the protocol. Returns
  // true if it must be executed after all.
  bool AdmitAgain(ServerConnection* connection, const RequestHeader& header,
                  Session::Admission admission, ReplyHeader recorded);
  void CloseExecutorOf(const ServerConnection* asking, uint64_t sequence);
  // For GET, STATS and LIST LOCKS, whose replies have values.
  void ExecuteWithValue(ServerConnection* connection, const RequestView& request);
  ReplyHeader ExecuteInto(std::span<std::byte> value_out, const RequestView& request);
  void ReplyWithValue(ServerConnection* connection, const ReplyHeader& reply);
  void OnServerSet(ServerConnection* connection, uint64_t server_set);
  // worker_observation.cc: what people see.
  bool TakeNews(Session* session, const RequestView& heartbeat);
  void TakeLastNews(Session* session, std::span<const std::byte> message);
  void TakeReport(Session* session, const ClientReportView& report);
  void PublishClients();
  ClientEntry EntryOf(const ServerConnection& connection) const;
  ReplyHeader ListForPeople(const RequestHeader& header, std::span<std::byte> value_out) const;
  void OnTimedRequest(ServerConnection* connection, const RequestView& request);
  void NoteIfSlow(const ServerConnection& connection, const RequestHeader& header,
                  std::string_view key, int64_t ns);
  // worker_index.cc
  void OnHeartbeat(ServerConnection* connection, const RequestHeader& request);
  void TellIndexGeneration();
  // Refuses a write under a lock that the session does not hold.
  void RefuseLock(ServerConnection* connection, const RequestView& request);
  // Records the answer to an admitted request.
  void Record(Session* session, const ReplyHeader& reply);
  // Sends a reply of only a header. Records nothing.
  void Reply(ServerConnection* connection, const ReplyHeader& reply);
  void Refuse(ServerConnection* connection, const RequestHeader& header, RequestError error);
  // Begin and answer an admitted request that takes several completions.
  void BeginLong(ServerConnection* connection, const RequestHeader& header);
  void AnswerLong(ServerConnection* connection, const ReplyHeader& reply);

  // worker_writes.cc: requests that change something, and replies that wait for the disk.
  void ExecuteWrite(ServerConnection* connection, const RequestView& request);
  // Ticket 0: replies at once.
  void ReplyOrWait(ServerConnection* connection, const ReplyHeader& reply, uint64_t ticket);
  void ServeWaitingReplies();
  // Returns false if no reply to this request waits.
  bool RedirectWaiting(ServerConnection* connection, uint64_t sequence);

  // worker_large.cc: values too long for a message.
  void BeginLargePut(ServerConnection* connection, const RequestView& request);
  // Posts READs of values, as many as may be in flight.
  void PostReads(ServerConnection* connection);
  // Returns the PUT that is to be READ next, or nullptr if there is none now.
  LargePut* NextToRead(ServerConnection* connection);
  void PostPiece(ServerConnection* connection, LargePut* put);
  // Finds the memory for the value of a PUT.
  enum class Sink : uint8_t { kFound, kWait, kNone };
  Sink FindSink(ServerConnection* connection, LargePut* put);
  void GiveSink(const LargePut& put);
  // Lets this connection's PUTs go on later.
  void WaitForSink(const ServerConnection& connection);
  // Continues PUTs that waited for a buffer, or for the disk.
  void ServeReplacing();
  Writes::Decided Commit(const ServerConnection& connection, const LargePut& put);
  void OnRead(ServerConnection* connection, uint32_t bytes, bool ok);
  void BeginLargeGet(ServerConnection* connection, const RequestView& request);
  // Serves one GET of each connection, in turn.
  void ServeLargeGets();
  void ServeNextLargeGet(ServerConnection* connection);
  // Returns true if the staging buffer is in use.
  bool ServeLargeGet(ServerConnection* connection, const LargeGet& get, uint32_t staging);

  // worker_locks.cc: locks by RPC.
  void BeginLock(ServerConnection* connection, const RequestView& request);
  // Returns whether the word names a connection of the same session.
  bool OwnsLock(const ServerConnection& connection, LockWord word);
  void ServeLocks();
  // Returns false if cas_ has no free place.
  bool StartLock(const LockRequest& request);
  void OnLockDone(const LockRequest& request, bool ok, uint64_t old);

  // worker_leases.cc: locks that end without their holder's unlock, and the list of locks.
  uint64_t LockWordNow(std::string_view key) const;
  // Returns false if the lock is being broken.
  bool SetLease(const RequestHeader& header, size_t index);
  ReplyHeader ExtendLock(const RequestHeader& header, size_t index);
  void BreakExpired();
  // Returns false if cas_ has no free place.
  bool StartForcedUnlock(const LockRequest& request);
  void OnForcedUnlockDone(LockRequest request, uint64_t word, bool ok, uint64_t old);
  void AnswerForcedUnlock(const LockRequest& request, ReplyStatus status, uint64_t word);
  ReplyHeader ListLocks(const RequestHeader& header, std::span<std::byte> value_out) const;
  LockEntry EntryOf(size_t index, uint64_t word) const;
  void TellBrokenLocks();

  static constexpr size_t kPollMax = 64;  // completions before replies are posted
  static_assert(kPollMax <= SendBatch::kDirectMax);
  static constexpr size_t kFew = 4;  // at most so many completions in a Poll without load
  static constexpr uint32_t kRecent = 1024;
  // To accept a client takes most of a millisecond, in which nobody is served.
  static constexpr size_t kArrivalsPerPoll = 4;
  static constexpr size_t kLargeGetsMax = 1024;
  static constexpr uint32_t kForcedTriesMax = 16;

  // Immutable after Create.
  const Options options_;
  const Node* const node_;
  Store* const store_;             // the node's
  Writes* const writes_;           // the node's
  const uint32_t unanswered_max_;  // of a connection
  uint32_t send_places_ = 0;       // of each connection's send queue

  // Owner thread only from here on. In the order of dependency.
  std::unique_ptr<Inbox> inbox_;
  std::unique_ptr<CompletionQueue> cq_;
  std::unique_ptr<ReceiveBuffers> receives_;
  BufferPool replies_;
  BufferPool staging_;
  ReplacingBuffers replacing_;
  std::unique_ptr<LockCas> cas_;
  std::unique_ptr<LockJanitor> janitor_;
  Dispatcher dispatcher_;
  SessionTable sessions_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<ServerConnection>> connections_;  // by id
  absl::flat_hash_map<uint32_t, ServerConnection*> by_qp_number_;
  // A direct-mapped cache of by_qp_number_, by the low bits of the number. Devices number queue
  // pairs in a row, so a completion's owner is nearly always here.
  std::array<ServerConnection*, kRecent> recent_{};
  SendBatch batch_;

  std::deque<Arrival> arrivals_;           // each Poll looks at a few
  std::vector<Arrival> waiting_arrivals_;  // wait for an old queue pair to be flushed
  std::vector<uint32_t> drained_;          // ids to destroy at the end of this Poll
  std::deque<uint32_t> large_get_turns_;   // ids of connections with large GETs that wait
  size_t large_gets_waiting_ = 0;          // of all connections
  std::deque<uint32_t> replacing_waits_;   // wait for a buffer of replacing_, or for the disk
  std::deque<LockRequest> lock_requests_;  // wait for a place in cas_
  WaitingReplies waiting_replies_;
  // Replies' values are made here first, because only then is it known whether they need a buffer.
  std::array<std::byte, EagerValueBytesMax(0)> value_;
  uint64_t broken_told_ = 0;   // locks_broken as last logged
  uint64_t expired_told_ = 0;  // locks_expired as last logged
  Now now_;
  int64_t timed_until_ns_ = 0;  // the slow log's last look at the clock in this batch; 0 = none
  int64_t timers_due_ns_ = 0;   // the next RunTimers
  int64_t tick_due_ns_ = 0;     // the next Tick, which RunTimers calls
  bool closing_ = false;
  bool failed_ = false;
  bool served_ = false;          // this Poll served a request
  bool loaded_ = false;          // the last Poll with completions had more than kFew
  uint64_t updates_ = 0;         // served by ServeUpdate and not counted yet
  size_t connection_bytes_ = 0;  // the sum of accounted_bytes of connections_
  WorkerCounters counters_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WORKER_H_
