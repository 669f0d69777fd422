// Worker: requests that change something. They are decided at once, in the order in which they
// came. With --sync=always, their replies leave when they are on disk and published, and the worker
// serves other requests meanwhile.

#include "server/rpc/put_off.h"
#include "server/rpc/worker.h"

namespace gannet {

void Worker::ExecuteWrite(ServerConnection* connection, const RequestView& request) {
  if (store_->records()) [[unlikely]] {
    const ChangeOrigin origin = OriginOf(*connection->session, request.header);
    const Dispatcher::Written written = dispatcher_.Write(request, now_, &origin);
    return ReplyOrWait(connection, PutOffIfBehind(*node_, written.reply), written.ticket);
  }
  const ChangeOrigin none;
  const Dispatcher::Written written = dispatcher_.Write(request, now_, &none);
  ReplyOrWait(connection, written.reply, written.ticket);
}

// A request whose reply waits stays in progress in its session. But it is not given up with its
// connection, because it is decided: if the client sends it again, it gets the same reply.
void Worker::ReplyOrWait(ServerConnection* connection, const ReplyHeader& reply, uint64_t ticket) {
  if (ticket != 0) {
    return waiting_replies_.Add({.ticket = ticket,
                                 .session_token = connection->session->token(),
                                 .connection = connection->id,
                                 .reply = reply});
  }
  Record(connection->session, reply);
  Reply(connection, reply);
}

// What is safe is published here, where the replies leave. Whichever worker comes first publishes
// for all.
void Worker::ServeWaitingReplies() {
  writes_->Publish(node_->changes->safe());
  while (const auto waiting = waiting_replies_.Take(writes_)) {
    // The session may have been forgotten meanwhile, and another one have its place.
    Session* const session = sessions_.Find(waiting->session_token);
    if (session == nullptr) continue;
    Record(session, waiting->reply);
    ServerConnection* const connection = Find(waiting->connection);
    if (connection != nullptr && !connection->closing) Reply(connection, waiting->reply);
    served_ = true;
  }
  if (waiting_replies_.TakeGrew()) node_->wants_sync();
}

bool Worker::RedirectWaiting(ServerConnection* connection, uint64_t sequence) {
  const uint64_t token = connection->session->token();
  const auto former = waiting_replies_.Redirect(token, sequence, connection->id);
  if (!former) return false;
  if (*former == connection->id) {
    CloseConnection(connection, "a request sent twice on one connection");
  } else if (ServerConnection* const other = Find(*former)) {
    CloseConnection(other, "its client sent a request again elsewhere");
  }
  return true;
}

}  // namespace gannet
