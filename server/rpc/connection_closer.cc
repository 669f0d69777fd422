// A connection ends in three steps: closed, drained, destroyed. Only with the last one its locks
// are broken, or kept for its session.

#include "server/rpc/connection_closer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/rpc/work_kind.h"

namespace gannet {

void ConnectionCloser::Close(ServerConnection* connection, std::string_view why) {
  if (connection->closing) return;
  context_.server.log.connections.Went(
      context_.now.boot, absl::StrCat("closing connection ", connection->id, " of session ",
                                      connection->session->id(), ": ", std::string(why)));
  connection->closing = true;
  connection->ordinary = connection->direct = false;
  connection->closing_since = context_.now.boot;
  // These requests are neither applied nor answered. They are executed if the client sends them
  // again on another connection. A READ under way keeps its reservation until its flush.
  for (uint64_t sequence : connection->in_progress) connection->session->Forget(sequence);
  connection->in_progress.clear();
  if (connection->session->aside != nullptr)
    connection->session->aside->DropThoseOf(connection->id);
  long_values_.DropWaiting(connection);
  connection->tier_gets = 0;  // TierGets drops each when its read is done
  const uint64_t drain = PackWorkId(WorkKind::kDrain, connection->id, 0);
  if (!connection->rdma->BeginDrain(drain)) OnDrained(connection->id);
}

void ConnectionCloser::CloseAll(std::string_view why) {
  BreakKeptLocks(BootTime::Never());
  for (const auto& [id, connection] : context_.connections) {
    connection->keeps_locks = false;
    Close(connection.get(), why);
  }
}

void ConnectionCloser::CloseLostRails() {
  for (const auto& [id, connection] : context_.connections) {
    if (context_.rails[connection->rail].lost) Close(connection.get(), "its rail is lost");
  }
}

void ConnectionCloser::CloseAllOf(const Session* session, std::string_view why) {
  for (const auto& [id, connection] : context_.connections) {
    if (connection->session == session) Close(connection.get(), why);
  }
}

void ConnectionCloser::EndSession(Session* session, std::string_view why) {
  session->ended = true;
  CloseAllOf(session, why);
}

void ConnectionCloser::Destroy(ServerConnection* connection) {
  Session* const session = connection->session;
  // Releases the last work in flight and the work that was never posted. The queue pair is
  // destroyed first, so that the device cannot do any of it any more.
  connection->rdma.reset();
  connection->send_queue.CompleteAll(
      [&](Resource resource) { Release(connection, resource, /*ok=*/false); });
  const RailQueues& queues = context_.rails[connection->rail];
  queues.cq->Release(queues.send_places);
  LeaveLocks(*connection);
  if (session->connections == 1 && session->server_set != 0) {
    context_.server.server_sets.Forget(session->id());
    session->server_set = 0;
  }
  context_.sessions.Detach(session, context_.now.boot);
  context_.timers.TickBy(context_.now.boot);  // the next Tick includes the session's expiry
  context_.server.rail_board.Went(connection->rail);
  context_.connections.Remove(connection);
}

// Without a first connection for a silence, the client has given up what it believed.
void ConnectionCloser::LeaveLocks(const ServerConnection& connection) {
  ConnectionIds& ids = context_.server.connection_ids;
  if (connection.holder != connection.id) ids.Retire(connection.id);
  if (connection.keeps_locks && !connection.session->ended) {
    return context_.kept_holders.Keep(connection.session->token(), connection.holder,
                                      context_.now.boot + context_.options.silence_ns_max);
  }
  ids.Retire(connection.holder);
  lock_words_.OnConnectionGone();
}

void ConnectionCloser::BreakKeptLocks(BootTime now) {
  for (const uint32_t holder : context_.kept_holders.TakeOver(now)) {
    context_.server.connection_ids.Retire(holder);
    lock_words_.OnConnectionGone();
  }
}

void ConnectionCloser::Release(ServerConnection* connection, Resource resource, bool ok) {
  switch (resource.kind) {
    case Resource::Kind::kNothing:
      break;
    case Resource::Kind::kReplyBuffer:
      replies_.GiveBuffer(connection, resource.index);
      break;
    case Resource::Kind::kStaging:
      long_values_.GiveStaging(connection, resource.index);
      break;
    case Resource::Kind::kTierGet:
      tier_gets_.Give(resource.index);
      break;
    case Resource::Kind::kRead:
      long_values_.OnRead(connection, resource.index, ok);
      break;
  }
}

}  // namespace gannet
