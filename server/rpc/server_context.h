#ifndef GANNET_SERVER_RPC_SERVER_CONTEXT_H_
#define GANNET_SERVER_RPC_SERVER_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/clocks.h"
#include "common/base/random_source.h"
#include "common/layout/lock_word_table.h"
#include "common/protocol/connect.h"
#include "common/rdma/idler.h"
#include "common/rdma/listener.h"
#include "server/group/members/group_stream.h"
#include "server/group/replica/group_standing.h"
#include "server/log/changes/change_stream.h"
#include "server/memory/store/store.h"
#include "server/memory/tier/tier_reads.h"
#include "server/rpc/client_board.h"
#include "server/rpc/now.h"
#include "server/rpc/rail.h"
#include "server/rpc/rail_board.h"
#include "server/rpc/server_control.h"
#include "server/rpc/server_log.h"
#include "server/rpc/slow_log.h"
#include "server/rpc/worker_counters.h"
#include "server/sessions/locks/lock_leases.h"
#include "server/sessions/session/connection_ids.h"
#include "server/sessions/session/server_sets.h"
#include "server/sessions/session/session_stream.h"
#include "server/writes/writes.h"

namespace gannet {

// What all workers of one server work in: the parts of the server that they use, and what only they
// share. It outlives them, and the server's parts outlive it. All of it is thread safe, or does not
// change once there is a worker.
struct ServerContext {
  // The server's parts.
  ServerControl& control;
  // Each connection has its rail's number. All swaps of lock words, the server's own too, go
  // through the device of one of them, the lock rail.
  std::vector<Rail> rails;
  Listener& listener;
  Store& store;
  Writes& writes;
  const ChangeStream& changes;
  GroupStream* group = nullptr;             // null: the server is alone
  const GroupStanding* standing = nullptr;  // null: the server is in no group

  // What it is, and what clients are told of it.
  uint32_t workers = 1;
  Grant grant{};  // of the first lock rail, without the fields that differ between connections
  // Where the lock words lie at first, and where they are now.
  std::span<uint64_t> first_lock_words{};
  const LockWordTable& lock_words = store.lock_words();
  // The clock of the primary's lease. It is read after a client asked what is left of that. A Now
  // is from before: the client would count too much.
  BootClock boot;
  RandomSource& random;   // for secrets
  Idler* idle = nullptr;  // from Server::Options
  // Of values on a disk. Set behind the workers, before one is polled; null: there is no tier.
  TierReads* tier_reads = nullptr;

  // What only workers have.
  ConnectionIds connection_ids{};
  ServerSets server_sets{};
  std::optional<SessionStream> session_stream{};  // of a primary; nullopt: there is no group
  LockLeases leases{lock_words, workers};
  // Which rail is the lock rail, or was last, and how often another one became it. Relaxed: they
  // are to be seen. A worker swaps by what it was told (LockService).
  std::atomic<uint32_t> lock_rail_number{0};
  Counter lock_rail_changes{};
  ServerLog log{};
  ClientBoard board{workers};
  RailBoard rail_board{};             // of several rails
  std::optional<SlowLog> slow_log{};  // nullopt: nothing is timed

  LockMode lock_mode() const { return static_cast<LockMode>(grant.lock_mode); }
  const Rail& lock_rail() const { return rails[lock_rail_number.load(std::memory_order_relaxed)]; }
  // Returns whether two rails have the same device.
  bool OneDevice(uint32_t rail, uint32_t other) const {
    return rails[rail].device.verbs == rails[other].device.verbs;
  }
  // Returns the number of the rail by whose device, and at best by whose address, a request came.
  // Returns nullopt if the device is no rail's.
  std::optional<uint8_t> RailOf(const IncomingRequest& request) const {
    std::optional<uint8_t> found;
    const auto came_to = request.local().NetworkBytes();
    for (uint8_t i = 0; i < rails.size(); ++i) {
      if (rails[i].device.verbs != request.verbs()) continue;
      if (rails[i].address.NetworkBytes() == came_to) return i;
      if (!found) found = i;
    }
    return found;
  }
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SERVER_CONTEXT_H_
