// Requests of a store that records its changes, in a journal or elsewhere.

#include "server/rpc/serve_update.h"
#include "server/writes/update.h"

namespace gannet {

// Fast path of a write that waits, for an update in place: from the message to the held reply.
// Returns false, without a side effect, if the request has to take the general path.
bool Requests::ServeWaitingUpdate(const Received& request) {
  ServerConnection* const connection = request.connection;
  Session* const session = connection->session;
  PlainPut put;
  if (!put.Decode(request.message()) || !session->IsNextInOrder(put.sequence()) ||
      TooManyUnanswered(*connection) || !connection->ordinary) {
    return false;
  }
  const ChangeOrigin origin = {.session_token = session->token(),
                               .sequence = put.sequence(),
                               .opcode = static_cast<uint8_t>(Opcode::kPut)};
  Writes::Decided decided;
  const auto flags = [&put] { return put.TakeUserFlags(); };
  if (!given_.writes->Update(request.guess, put.key(), put.value(), flags, origin, &decided)) {
    return false;
  }
  ++connection->unanswered;
  session->BeginNext(put.sequence());
  given_.held_replies->HoldUpdate(*connection, put.sequence(), decided);
  ++updates_;
  return true;
}

void Requests::ServeRecorded(std::span<const Received> received) {
  const bool waits = given_.writes->waits();
  const bool has_all = given_.standing == nullptr || given_.standing->partitions().all();
  for (const Received& request : received) {
    if (!has_all && RefuseElsewhere(request)) continue;
    if (waits ? ServeWaitingUpdate(request) : ServeUpdate<true>(request)) continue;
    OnMessage(request.connection, request.message());
  }
  // A write that waits counts as a use when it is published.
  if (!waits && given_.store->evicts()) NoteUpdates(received);
}

}  // namespace gannet
