#ifndef GANNET_SERVER_RPC_INDEX_GROWTH_H_
#define GANNET_SERVER_RPC_INDEX_GROWTH_H_

#include <cstdint>

#include "common/protocol/message.h"
#include "server/rpc/replies.h"
#include "server/rpc/worker_context.h"

namespace gannet {

// Tells the clients of one worker of an index that grows, in the replies to their heartbeats
// (common/protocol/index_news.h), and the server which index they may still READ. Owner thread
// only.
class IndexGrowth {
 public:
  // Both outlive this.
  IndexGrowth(WorkerContext& context, Replies& replies) : context_(context), replies_(replies) {}

  // Answers a heartbeat.
  void OnHeartbeat(ServerConnection* connection, const RequestHeader& request);
  // Sets the counter index_generation.
  void TellGeneration();

 private:
  WorkerContext& context_;
  Replies& replies_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_INDEX_GROWTH_H_
