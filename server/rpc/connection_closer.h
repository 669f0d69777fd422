#ifndef GANNET_SERVER_RPC_CONNECTION_CLOSER_H_
#define GANNET_SERVER_RPC_CONNECTION_CLOSER_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/rdma/completion.h"
#include "server/rpc/connection_table.h"
#include "server/rpc/lock_words.h"
#include "server/rpc/long_values.h"
#include "server/rpc/now.h"
#include "server/rpc/replies.h"
#include "server/rpc/server_log.h"
#include "server/rpc/worker_timers.h"
#include "server/session/connection_ids.h"
#include "server/session/server_sets.h"
#include "server/session/session_table.h"

namespace gannet {

// Closes the connections of one worker. Close moves the queue pair to the error state. Once it is
// flushed (OnDrained), Destroy destroys it. Owner thread only.
class ConnectionCloser {
 public:
  struct Dependencies {  // outlive this
    ConnectionTable* connections;
    SessionTable* sessions;
    ConnectionIds* connection_ids;
    ServerSets* server_sets;
    CompletionQueue* cq;
    uint32_t send_places;  // of each connection's send queue
    Replies* replies;
    LongValues* long_values;
    LockWords* lock_words;
    ServerLog* log;
    WorkerTimers* timers;
    const Now* now;
  };

  explicit ConnectionCloser(const Dependencies& given) : given_(given) {}

  // Does nothing if the connection is closing already.
  void Close(ServerConnection* connection, std::string_view why);
  void CloseAll(std::string_view why);
  // Closes all connections of a session, whose client begins another one.
  void EndSession(Session* session, std::string_view why);
  // The connection is flushed, or is taken for flushed.
  void OnDrained(uint32_t id) { drained_.push_back(id); }
  // Returns true if TakeDrained has connections.
  bool any_drained() const { return !drained_.empty(); }
  // Returns the ids of connections to destroy. Some may be gone, or occur twice.
  std::vector<uint32_t> TakeDrained() { return std::exchange(drained_, {}); }
  void Destroy(ServerConnection* connection);

  // Gives back what a send kept busy. `ok`: it completed without an error.
  void Release(ServerConnection* connection, Resource resource, bool ok);

 private:
  const Dependencies given_;
  std::vector<uint32_t> drained_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_CONNECTION_CLOSER_H_
