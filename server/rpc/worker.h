#ifndef GANNET_SERVER_RPC_WORKER_H_
#define GANNET_SERVER_RPC_WORKER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/boot_time.h"
#include "common/protocol/rails_reply.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/connection_closer.h"
#include "server/rpc/connection_paths.h"
#include "server/rpc/held_replies.h"
#include "server/rpc/inbox.h"
#include "server/rpc/index_growth.h"
#include "server/rpc/lock_rail_changes.h"
#include "server/rpc/lock_requests.h"
#include "server/rpc/lock_words.h"
#include "server/rpc/long_values.h"
#include "server/rpc/now.h"
#include "server/rpc/observation.h"
#include "server/rpc/replies.h"
#include "server/rpc/requests.h"
#include "server/rpc/server_context.h"
#include "server/rpc/silence.h"
#include "server/rpc/tier_gets.h"
#include "server/rpc/worker_context.h"
#include "server/rpc/worker_counters.h"
#include "server/sessions/session/session_copies.h"

namespace gannet {

// Serves a share of the sessions: their connections, requests, heartbeats and locks. All its
// connections of a rail use one completion queue and one shared receive queue, so neither polling
// nor memory grows with them. It only puts its parts together and calls them in turn.
//
// A state machine: Poll does what can be done at the given time and returns. It starts no thread
// and never sleeps. Thread safety: one thread, except for inbox() and counters().
//
// Invariants:
//   1. A completion queue cannot overrun: each connection reserves its share before it is
//      accepted.
//   2. A request is answered once. Requests may be answered in any order. A connection with more
//      unanswered requests than its credits is closed, because it takes receives from the others.
//   3. Memory that the device may still write or read becomes free only after the completion of
//      that work, or its flush, was polled.
//   4. A dead connection's queue pair is in the error state and flushed before its locks are
//      broken, before its session may use the same index again, and before it is destroyed.
class Worker {
 public:
  using Options = WorkerOptions;

  // Makes the worker of this index. `server` outlives it. Blocks while the loopback queue pair
  // connects. The errors are those of WorkerQueues::Create.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(ServerContext& server,
                                                        const Options& options, uint32_t index);
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
  std::span<const int> fds() const { return fds_; }
  static constexpr size_t kFdsMax = 2 + kRailsMax;
  // The latest time at which Poll must be called.
  BootTime deadline() const;
  void Woken();
  void StayAwake() { EndWait(/*slept=*/false); }

  // Returns true if the inbox said to close, and no connection is left.
  bool closed() const { return acceptor_.closing() && context_.connections.empty(); }
  // Returns true if the devices lost all queues, so that nothing can be served any more.
  bool failed() const { return failed_; }

  // Returns true if clients wait for answers that wait for the disk. They send little before then.
  bool waits_for_disk() const {
    const GroupStream* const group = context_.server.group;
    return (group == nullptr || group->waits_for_disk()) && holds_replies();
  }
  // Returns true if clients wait for answers whose writes are not safe yet.
  bool holds_replies() const { return !held_replies_.empty(); }

  uint32_t index() const { return context_.index; }
  // For tests: the number of taken buffers and waiting requests. If it is not 0 while nothing is
  // under way, something leaks.
  size_t busy() const;

  Inbox& inbox() { return *context_.inbox; }
  const WorkerCounters& counters() const { return context_.counters; }
  // A Poll has begun by this map of partitions, or a later one, so nothing is decided by an older
  // one any more: GroupPartitions::revision. Any thread. Acquire: whoever sees it sees what the
  // worker decided before, and recorded.
  uint64_t map_revision() const { return map_revision_.load(std::memory_order_acquire); }
  // It knows of this announcement of keys that are to be leased: none of its fast paths is under
  // way that began before. Any thread. Acquire: whoever sees it sees what they wrote.
  uint64_t announcement() const { return announcement_.load(std::memory_order_acquire); }

 private:
  Worker(ServerContext& server, const Options& options, uint32_t index, WorkerQueues made);

  int& writes_fd() { return fds_.front(); }
  void EndWait(bool slept);
  // The steps of a Poll.
  bool TakeInbox();
  void AdoptSessions(std::span<const SessionCopy> copies);
  bool ServeWhatCame();
  bool ServeRailsInTurn();
  void FinishClosing();
  void RunTimers();
  // Serves every message that waits in the completion queues.
  void ServeAllThatWaits();
  void Tick();
  void PostReceives();
  void PublishCounters();
  static constexpr size_t kFew = 4;  // at most so many completions in a Poll without load

  void NoteMap() {
    const GroupStanding* const standing = context_.server.standing;
    if (standing == nullptr) return;
    // What is read of the partitions behind this load is of this map or a later one. The store is a
    // release, as what this worker did by an older map is before it.
    const uint64_t revision = standing->partitions().revision();
    if (lock_words_.map_revision() != revision) lock_words_.NoteMap(revision);
    map_revision_.store(revision, std::memory_order_release);
  }

  WorkerContext context_;
  const bool several_rails_ = context_.rails.size() > 1;

  // The parts. They call each other only once all are made.
  Requests requests_{context_,   closer_,        held_replies_, long_values_,
                     tier_gets_, lock_requests_, index_growth_, observation_};
  HeldReplies held_replies_{context_, requests_.replies()};
  LockWords lock_words_{context_};
  LockRequests lock_requests_{context_, lock_words_, requests_.replies()};
  LongValues long_values_{context_, requests_.replies(), held_replies_, lock_words_, tier_gets_};
  TierGets tier_gets_{context_, requests_.replies(), long_values_};
  ConnectionCloser closer_{context_, requests_.replies(), long_values_, tier_gets_, lock_words_};
  LockRailChanges lock_rail_changes_{context_, lock_words_, closer_};
  Silence silence_{context_, closer_};
  ConnectionPaths paths_{context_};
  Acceptor acceptor_{context_, closer_, silence_};
  IndexGrowth index_growth_{context_, requests_.replies()};
  Observation observation_{context_, lock_words_};
  bool failed_ = false;
  std::atomic<uint64_t> map_revision_{0};
  std::atomic<uint64_t> announcement_{0};
  bool loaded_ = false;     // the last Poll with completions had more than kFew
  bool more_wait_ = false;  // this Poll left completions in the queue, perhaps
  uint32_t next_rail_ = 0;  // which the next Poll begins with
  // What to sleep on: of the writes that it waits for, between Arm and Woken or StayAwake; of the
  // inbox; of each completion queue.
  std::vector<int> fds_{-1};
  static constexpr size_t kFirstRailFd = 2;
  size_t lost_rails_ = 0;  // whose connections were closed
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WORKER_H_
