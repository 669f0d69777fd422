#include "server/rpc/connection_closer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/rpc/work_kind.h"

namespace gannet {

void ConnectionCloser::Close(ServerConnection* connection, std::string_view why) {
  if (connection->closing) return;
  given_.log->connections.Went(given_.now->monotonic_ns,
                               absl::StrCat("closing connection ", connection->id, " of session ",
                                            connection->session->id(), ": ", std::string(why)));
  connection->closing = true;
  connection->ordinary = connection->direct = false;
  connection->closing_since_ns = given_.now->monotonic_ns;
  // These requests are neither applied nor answered. They are executed if the client sends them
  // again on another connection. A READ under way keeps its reservation until its flush.
  for (uint64_t sequence : connection->in_progress) connection->session->Forget(sequence);
  connection->in_progress.clear();
  given_.long_values->DropWaiting(connection);
  const uint64_t drain = PackWorkId(WorkKind::kDrain, connection->id, 0);
  if (!connection->rdma->BeginDrain(drain)) OnDrained(connection->id);
}

void ConnectionCloser::CloseAll(std::string_view why) {
  for (const auto& [id, connection] : *given_.connections) Close(connection.get(), why);
}

void ConnectionCloser::EndSession(Session* session, std::string_view why) {
  session->ended = true;
  for (const auto& [id, connection] : *given_.connections) {
    if (connection->session == session) Close(connection.get(), why);
  }
}

void ConnectionCloser::Destroy(ServerConnection* connection) {
  Session* const session = connection->session;
  // Releases the last work in flight and the work that was never posted. The queue pair is
  // destroyed first, so that the device cannot do any of it any more.
  connection->rdma.reset();
  connection->send_queue.CompleteAll(
      [&](Resource resource) { Release(connection, resource, /*ok=*/false); });
  given_.cq->Release(given_.send_places);
  given_.connection_ids->Retire(connection->id);
  given_.lock_words->OnConnectionGone();
  if (session->connections == 1 && session->server_set != 0) {
    given_.server_sets->Forget(session->id());
    session->server_set = 0;
  }
  given_.sessions->Detach(session, given_.now->monotonic_ns);
  given_.timers->TickBy(given_.now->monotonic_ns);  // the next Tick includes the session's expiry
  given_.connections->Remove(connection);
}

void ConnectionCloser::Release(ServerConnection* connection, Resource resource, bool ok) {
  switch (resource.kind) {
    case Resource::Kind::kNothing:
      break;
    case Resource::Kind::kReplyBuffer:
      given_.replies->GiveBuffer(connection, resource.index);
      break;
    case Resource::Kind::kStaging:
      given_.long_values->GiveStaging(connection, resource.index);
      break;
    case Resource::Kind::kRead:
      given_.long_values->OnRead(connection, resource.index, ok);
      break;
  }
}

}  // namespace gannet
