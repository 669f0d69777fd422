#ifndef GANNET_SERVER_RPC_WORKER_H_
#define GANNET_SERVER_RPC_WORKER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rdma/completion.h"
#include "server/locks/lock_cas.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/buffer_pool.h"
#include "server/rpc/connection_closer.h"
#include "server/rpc/connection_table.h"
#include "server/rpc/held_replies.h"
#include "server/rpc/inbox.h"
#include "server/rpc/index_growth.h"
#include "server/rpc/lock_requests.h"
#include "server/rpc/lock_words.h"
#include "server/rpc/long_values.h"
#include "server/rpc/observation.h"
#include "server/rpc/receive_buffers.h"
#include "server/rpc/replacing_buffers.h"
#include "server/rpc/replies.h"
#include "server/rpc/requests.h"
#include "server/rpc/shared_by_workers.h"
#include "server/rpc/silence.h"
#include "server/rpc/slow_requests.h"
#include "server/rpc/worker_counters.h"
#include "server/rpc/worker_timers.h"
#include "server/session/session_table.h"

namespace gannet {

// Serves a share of the sessions: their connections, requests, heartbeats and locks. All its
// connections use one completion queue and one shared receive queue, so neither polling nor memory
// grows with them. It only puts its parts together and calls them in turn.
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

  // `shared` outlives the worker. Blocks while the loopback queue pair connects. Returns the
  // device's error (ResourceExhausted, FailedPrecondition) if it fails.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(const Options& options,
                                                        const SharedByWorkers* shared);
  // REQUIRES: closed(), or never polled.
  ~Worker();

  enum class Activity : uint8_t {
    kNone,
    kHousekeeping,  // call Poll again soon
    kRequests,      // clients will send more soon: poll without sleeping
  };
  Activity Poll(const Now& now);

  // To sleep: Poll until it returns kNone; call Arm; Poll once more. If that returns kNone again,
  // wait for one of fds() (-1: none) or the deadline, and call Woken; otherwise call StayAwake.
  absl::Status Arm();
  std::array<int, 3> fds() const { return {made_.cq->fd(), made_.inbox->fd(), writes_fd_}; }
  // The latest monotonic time at which Poll must be called.
  int64_t deadline_ns() const;
  void Woken();
  void StayAwake() { EndWait(/*slept=*/false); }

  // Returns true if the inbox said to close, and no connection is left.
  bool closed() const { return acceptor_.closing() && connections_.empty(); }
  // Returns true if the device lost the queues, so that nothing can be served any more.
  bool failed() const { return failed_ || acceptor_.failed(); }

  // Returns true if clients wait for answers that wait for the disk. They send little before then.
  bool waits_for_disk() const {
    return (shared_->group == nullptr || shared_->group->waits_for_disk()) && holds_replies();
  }
  // Returns true if clients wait for answers whose writes are not safe yet.
  bool holds_replies() const { return !held_replies_.empty(); }

  uint32_t index() const { return options_.index; }
  // For tests: the number of taken buffers and waiting requests. If it is not 0 while nothing is
  // under way, something leaks.
  size_t busy() const;

  Inbox& inbox() { return *made_.inbox; }
  const WorkerCounters& counters() const { return counters_; }
  // A Poll has begun by this map of partitions, or a later one, so nothing is decided by an older
  // one any more: GroupPartitions::revision. Any thread. Acquire: whoever sees it sees what the
  // worker decided before, and recorded.
  uint64_t map_revision() const { return map_revision_.load(std::memory_order_acquire); }

 private:
  // What the device or the system may refuse to make.
  struct Made {
    uint32_t send_places = 0;  // of each connection's send queue
    std::unique_ptr<Inbox> inbox;
    std::unique_ptr<CompletionQueue> cq;
    std::unique_ptr<ReceiveBuffers> receives;
    BufferPool replies;
    BufferPool staging;
    ReplacingBuffers replacing;
    std::unique_ptr<LockCas> cas;
  };
  static absl::StatusOr<Made> Make(const Options& options, const SharedByWorkers& shared);
  static absl::StatusOr<std::unique_ptr<LockCas>> MakeCas(const SharedByWorkers& shared);

  Worker(const Options& options, const SharedByWorkers* shared, Made made);

  void EndWait(bool slept);
  // The steps of a Poll.
  bool TakeInbox();
  void AdoptSessions(std::span<const SessionCopy> copies);
  bool ServeWhatCame();
  void FinishClosing();
  void RunTimers();
  // Serves every message that waits in the completion queue.
  void ServeAllThatWaits();
  void Tick();
  void PublishCounters();
  static constexpr size_t kFew = 4;  // at most so many completions in a Poll without load

  void NoteMap() {
    if (shared_->standing == nullptr) return;
    // What is read of the partitions behind this load is of this map or a later one. The store is a
    // release, as what this worker did by an older map is before it.
    map_revision_.store(shared_->standing->partitions().revision(), std::memory_order_release);
  }

  const Options options_;
  const SharedByWorkers* const shared_;
  Made made_;
  const uint32_t unanswered_max_;  // of a connection

  // What the parts share.
  Now now_;  // of this Poll
  WorkerCounters counters_;
  WorkerTimers timers_;
  SessionTable sessions_;
  ConnectionTable connections_;

  // The parts. Requests owns the replies, and calls all others only later.
  SlowRequests slow_requests_{shared_->slow_log, shared_->connection_ids, &now_};
  Requests requests_{
      {.store = shared_->store,
       .writes = shared_->writes,
       .changes = shared_->changes,
       .cq = made_.cq.get(),
       .receives = made_.receives.get(),
       .connections = &connections_,
       .closer = &closer_,
       .held_replies = &held_replies_,
       .long_values = &long_values_,
       .lock_words = &lock_words_,
       .lock_requests = &lock_requests_,
       .index_growth = &index_growth_,
       .observation = &observation_,
       .slow_requests = &slow_requests_,
       .log = shared_->log,
       .connection_ids = shared_->connection_ids,
       .server_sets = shared_->server_sets,
       .session_stream = shared_->session_stream,
       .counters = &counters_,
       .now = &now_,
       .stats = shared_->stats,
       .unanswered_max = unanswered_max_,
       .standing = shared_->standing},
      std::move(made_.replies),
      [this](ServerConnection* connection, const char* why) { closer_.Close(connection, why); }};
  HeldReplies held_replies_{{.writes = shared_->writes,
                             .changes = shared_->changes,
                             .sessions = &sessions_,
                             .connections = &connections_,
                             .replies = &requests_.replies(),
                             .group = shared_->group,
                             .session_stream = shared_->session_stream,
                             .wants_sync = shared_->wants_sync}};
  LockWords lock_words_{{.worker = options_.index,
                         .hash_seed = shared_->grant.hash_seed,
                         .words = shared_->lock_words,
                         .leases = shared_->leases,
                         .connection_ids = shared_->connection_ids,
                         .log = shared_->log,
                         .counters = &counters_,
                         .timers = &timers_,
                         .now = &now_},
                        std::move(made_.cas)};
  LockRequests lock_requests_{{.words = &lock_words_,
                               .connections = &connections_,
                               .replies = &requests_.replies(),
                               .standing = shared_->standing,
                               .requests_max = options_.lock_requests_max}};
  LongValues long_values_{{.store = shared_->store,
                           .writes = shared_->writes,
                           .changes = shared_->changes,
                           .connections = &connections_,
                           .replies = &requests_.replies(),
                           .held_replies = &held_replies_,
                           .slow_requests = &slow_requests_,
                           .now = &now_,
                           .region_lkey = shared_->region_lkey,
                           .standing = shared_->standing},
                          std::move(made_.staging),
                          std::move(made_.replacing)};
  ConnectionCloser closer_{{.connections = &connections_,
                            .sessions = &sessions_,
                            .connection_ids = shared_->connection_ids,
                            .server_sets = shared_->server_sets,
                            .cq = made_.cq.get(),
                            .send_places = made_.send_places,
                            .replies = &requests_.replies(),
                            .long_values = &long_values_,
                            .lock_words = &lock_words_,
                            .log = shared_->log,
                            .timers = &timers_,
                            .now = &now_}};
  Silence silence_{{.connections = &connections_,
                    .sessions = &sessions_,
                    .closer = &closer_,
                    .now = &now_,
                    .silence_ns_max = options_.silence_ns_max}};
  Acceptor acceptor_{{.device = &shared_->device,
                      .pd = shared_->pd,
                      .listener = shared_->listener,
                      .store = shared_->store,
                      .connection_ids = shared_->connection_ids,
                      .log = shared_->log,
                      .grant = &shared_->grant,
                      .cq = made_.cq.get(),
                      .receives = made_.receives.get(),
                      .connections = &connections_,
                      .sessions = &sessions_,
                      .closer = &closer_,
                      .silence = &silence_,
                      .counters = &counters_,
                      .timers = &timers_,
                      .now = &now_,
                      .standing = shared_->standing,
                      .lease_now_ns = &shared_->lease_now_ns},
                     {.connections_max = options_.connections_max,
                      .send_places = made_.send_places,
                      .unanswered_max = unanswered_max_,
                      .silence_ns_max = options_.silence_ns_max}};
  IndexGrowth index_growth_{{.store = shared_->store,
                             .connections = &connections_,
                             .replies = &requests_.replies(),
                             .counters = &counters_,
                             .now = &now_,
                             .standing = shared_->standing,
                             .lease_now_ns = &shared_->lease_now_ns}};
  Observation observation_{{.worker = options_.index,
                            .store = shared_->store,
                            .connections = &connections_,
                            .connection_ids = shared_->connection_ids,
                            .board = shared_->board,
                            .slow_log = shared_->slow_log,
                            .heats = shared_->heats,
                            .storage = shared_->storage,
                            .counters = &counters_,
                            .now = &now_,
                            .standing = shared_->standing}};
  bool failed_ = false;
  std::atomic<uint64_t> map_revision_{0};
  bool loaded_ = false;     // the last Poll with completions had more than kFew
  bool more_wait_ = false;  // this Poll left completions in the queue, perhaps
  int writes_fd_ = -1;      // of the writes that it waits for, between Arm and Woken or StayAwake
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WORKER_H_
