#ifndef GANNET_SERVER_RPC_WORKER_CONTEXT_H_
#define GANNET_SERVER_RPC_WORKER_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/protocol/connect.h"
#include "common/protocol/limits.h"
#include "common/rdma/completion.h"
#include "server/rpc/buffer_pool.h"
#include "server/rpc/connection_table.h"
#include "server/rpc/inbox.h"
#include "server/rpc/now.h"
#include "server/rpc/receive_buffers.h"
#include "server/rpc/replacing_buffers.h"
#include "server/rpc/server_context.h"
#include "server/rpc/slow_requests.h"
#include "server/rpc/worker_counters.h"
#include "server/rpc/worker_timers.h"
#include "server/sessions/locks/kept_holders.h"
#include "server/sessions/locks/lock_cas.h"
#include "server/sessions/locks/lock_service.h"
#include "server/sessions/session/session_table.h"

namespace gannet {

// How much a worker takes and bears. All workers of a server have the same.
struct WorkerOptions {
  uint16_t credits = kCreditsDefault;
  uint32_t connections_max = 2048;
  uint32_t receives = 1024;           // at most; as many as the connections need
  uint32_t reply_buffers = 512;       // at most
  uint32_t lock_requests_max = 1024;  // locks by RPC that wait for a compare-and-swap
  // Buffers for values that are too long for a message, but whose items are not large. They bound
  // the GETs of such values by RPC, and the PUTs that overwrite an item in a full heap, that run at
  // once.
  uint32_t staging_buffers = 4;
  uint32_t replacing_buffers = 2;
  int64_t session_grace_ns = 30'000'000'000;
  // A peer that is silent for so long is dead. The grant tells clients. At most 65,535 ms.
  int64_t silence_ns_max = int64_t{kSilenceMsDefault} * kNsPerMs;
};

// The queues of a worker on one rail.
struct RailQueues {
  static absl::StatusOr<RailQueues> Create(const Rail& rail, const WorkerOptions& options);

  uint32_t send_places = 0;  // of each connection's send queue
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<ReceiveBuffers> receives;
  bool lost = false;  // the device is gone, or refuses receives: no connection can be served
};

// What a device or the system may refuse to make for a worker: its queues, and the memory that it
// registered.
struct WorkerQueues {
  // Blocks while the loopback queue pair connects. Returns the device's error (ResourceExhausted,
  // FailedPrecondition) if it fails. `server` outlives them.
  static absl::StatusOr<WorkerQueues> Create(const ServerContext& server,
                                             const WorkerOptions& options);

  // In the order of dependency.
  std::unique_ptr<Inbox> inbox;
  std::vector<RailQueues> rails;  // of the server
  BufferPool reply_buffers;
  BufferPool staging;          // for the values of long GETs
  ReplacingBuffers replacing;  // for those of PUTs that overwrite an item in a full heap
  std::unique_ptr<LockCas> cas;
  std::optional<LockPlace> lock_place;  // nullopt: no rail serves locks
};

// What the parts of one worker work in: its queues and registered memory, its connections and their
// sessions, the time, and what it counts. It outlives the parts, and `server` outlives it. Owner
// thread only, except for the inbox and the counters.
struct WorkerContext : WorkerQueues {
  WorkerContext(ServerContext& shared, const WorkerOptions& given, uint32_t number,
                WorkerQueues made);

  ServerContext& server;
  const WorkerOptions options;
  const uint32_t index;                 // of the worker
  const uint32_t unanswered_max;        // requests of a connection, with heartbeats
  SessionStream* const session_stream;  // of the server; null: there is no group

  Now now;  // of this Poll
  WorkerCounters counters;
  WorkerTimers timers;
  SlowRequests slow_requests;
  SessionTable sessions;
  ConnectionTable connections;
  KeptHolders kept_holders;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WORKER_CONTEXT_H_
