#ifndef GANNET_SERVER_RPC_INDEX_GROWTH_H_
#define GANNET_SERVER_RPC_INDEX_GROWTH_H_

#include <cstdint>
#include <functional>

#include "common/protocol/message.h"
#include "server/replica/group_standing.h"
#include "server/rpc/connection_table.h"
#include "server/rpc/now.h"
#include "server/rpc/replies.h"
#include "server/rpc/worker_counters.h"
#include "server/store/store.h"

namespace gannet {

// Tells the clients of one worker of an index that grows, in the replies to their heartbeats
// (common/protocol/index_news.h), and the server which index they may still READ. Owner thread
// only.
class IndexGrowth {
 public:
  struct Dependencies {  // outlive this
    const Store* store;
    const ConnectionTable* connections;
    Replies* replies;
    WorkerCounters* counters;
    const Now* now;
    const GroupStanding* standing;  // null: the server is in no group
    const std::function<int64_t()>* lease_now_ns;
  };

  explicit IndexGrowth(const Dependencies& given) : given_(given) {}

  // Answers a heartbeat.
  void OnHeartbeat(ServerConnection* connection, const RequestHeader& request);
  // Sets the counter index_generation.
  void TellGeneration();

 private:
  const Dependencies given_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_INDEX_GROWTH_H_
