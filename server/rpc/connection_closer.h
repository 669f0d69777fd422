#ifndef GANNET_SERVER_RPC_CONNECTION_CLOSER_H_
#define GANNET_SERVER_RPC_CONNECTION_CLOSER_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "server/rpc/lock_words.h"
#include "server/rpc/long_values.h"
#include "server/rpc/replies.h"
#include "server/rpc/tier_gets.h"
#include "server/rpc/worker_context.h"

namespace gannet {

// Closes the connections of one worker. Close moves the queue pair to the error state. Once it is
// flushed (OnDrained), Destroy destroys it. Owner thread only.
class ConnectionCloser {
 public:
  // All outlive this.
  ConnectionCloser(WorkerContext& context, Replies& replies, LongValues& long_values,
                   TierGets& tier_gets, LockWords& lock_words)
      : context_(context),
        replies_(replies),
        long_values_(long_values),
        tier_gets_(tier_gets),
        lock_words_(lock_words) {}

  // Does nothing if the connection is closing already.
  void Close(ServerConnection* connection, std::string_view why);
  void CloseAll(std::string_view why);
  // Closes the connections of rails that are lost. The others go on.
  void CloseLostRails();
  void CloseAllOf(const Session* session, std::string_view why);
  // Closes all connections of a session, whose client begins another one.
  void EndSession(Session* session, std::string_view why);
  // The connection is flushed, or is taken for flushed.
  void OnDrained(uint32_t id) { drained_.push_back(id); }
  // Returns true if TakeDrained has connections.
  bool any_drained() const { return !drained_.empty(); }
  // Returns the ids of connections to destroy. Some may be gone, or occur twice.
  std::vector<uint32_t> TakeDrained() { return std::exchange(drained_, {}); }
  void Destroy(ServerConnection* connection);
  // Breaks the locks of sessions that have not come back until `now`; BootTime::Never(): of all
  // that are away.
  void BreakKeptLocks(BootTime now);

  // Gives back what a send kept busy. `ok`: it completed without an error.
  void Release(ServerConnection* connection, Resource resource, bool ok);

 private:
  // Keeps the locks for the session, or breaks them.
  void LeaveLocks(const ServerConnection& connection);

  WorkerContext& context_;
  Replies& replies_;
  LongValues& long_values_;
  TierGets& tier_gets_;
  LockWords& lock_words_;
  std::vector<uint32_t> drained_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_CONNECTION_CLOSER_H_
