#ifndef GANNET_SERVER_RPC_ELSEWHERE_H_
#define GANNET_SERVER_RPC_ELSEWHERE_H_

#include <cstdint>
#include <string_view>

#include "common/protocol/message.h"
#include "server/group/replica/group_standing.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/replies.h"
#include "server/rpc/server_connection.h"
#include "server/sessions/session/session.h"

namespace gannet {

// Whether a key is in a partition that this server's group does not serve. `standing` as in
// ServerContext.
inline bool IsElsewhere(const GroupStanding* standing, std::string_view key) {
  return standing != nullptr && !standing->partitions().Serves(key);
}

// Refuses a request because of that. It is no answer that is remembered, as the group may get the
// partition meanwhile; but with several connections it is, as Replies::Record does of "try again".
// `in_order`: 0, or kPutOffInOrder for a write.
inline void RefuseAsElsewhere(const GroupStanding& standing, const RequestHeader& header,
                              uint64_t in_order, ServerConnection* connection, Replies* replies) {
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kElsewhere);
  reply.words[0] = standing.partitions().revision();
  reply.words[1] = in_order;
  Session* const session = connection->session;
  session->aside == nullptr ? session->Forget(header.sequence) : Replies::Record(session, reply);
  replies->Send(connection, reply);
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_ELSEWHERE_H_
