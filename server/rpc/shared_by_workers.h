#ifndef GANNET_SERVER_RPC_SHARED_BY_WORKERS_H_
#define GANNET_SERVER_RPC_SHARED_BY_WORKERS_H_

#include <cstdint>
#include <functional>
#include <span>

#include "common/protocol/connect.h"
#include "common/protocol/heats.h"
#include "common/protocol/message.h"
#include "common/protocol/storage.h"
#include "common/rdma/device.h"
#include "common/rdma/listener.h"
#include "server/changes/change_stream.h"
#include "server/group/group_stream.h"
#include "server/locks/lock_leases.h"
#include "server/replica/group_standing.h"
#include "server/rpc/client_board.h"
#include "server/rpc/now.h"
#include "server/rpc/server_log.h"
#include "server/rpc/slow_log.h"
#include "server/session/connection_ids.h"
#include "server/session/server_sets.h"
#include "server/session/session_stream.h"
#include "server/store/store.h"
#include "server/writes/writes.h"

namespace gannet {

// State that all workers of one server share. The objects behind the pointers outlive the workers
// and are thread safe. The other fields do not change.
struct SharedByWorkers {
  Device device;
  ibv_pd* pd = nullptr;
  Listener* listener = nullptr;
  Store* store = nullptr;
  Writes* writes = nullptr;
  const ChangeStream* changes = nullptr;
  GroupStream* group = nullptr;      // null: the server is alone
  std::function<void()> wants_sync;  // asks for a sync, because a write waits for one
  ConnectionIds* connection_ids = nullptr;
  ServerSets* server_sets = nullptr;
  SessionStream* session_stream = nullptr;  // of a primary; null: there is no group
  LockLeases* leases = nullptr;
  ServerLog* log = nullptr;
  ClientBoard* board = nullptr;
  SlowLog* slow_log = nullptr;              // null: nothing is timed
  const GroupStanding* standing = nullptr;  // null: the server is in no group
  // The clock of the primary's lease. It is read after a client asked what is left of that. A Now
  // is from before: the client would count too much.
  std::function<int64_t()> lease_now_ns = ServerNs;
  // The grant, without the fields that differ between connections.
  Grant grant{};
  HeatsReply heats{};        // all 0: there are none to READ
  uint32_t region_lkey = 0;  // for READs of values straight into the region
  std::span<uint64_t> lock_words;
  std::function<StatsReply(const Now&)> stats;  // of the whole server
  // Says where the items are kept. Asks for a snapshot first if `snapshot`, and returns its number.
  std::function<uint64_t(bool snapshot, StorageReply*)> storage;
  std::function<uint64_t()> random;  // returns 64 unpredictable bits, for secrets
  std::function<void()> idle;        // from Server::Options

  LockMode lock_mode() const { return static_cast<LockMode>(grant.lock_mode); }
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SHARED_BY_WORKERS_H_
