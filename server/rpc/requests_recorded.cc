// Requests of a store that records its changes, in a journal or elsewhere.

#include "server/rpc/serve_update.h"
#include "server/writes/update.h"

namespace gannet {

// Fast path of a write that waits, for an update in place: from the message to the held reply.
// `update` decides and records what the session asks for, as Writes::Update does. Returns false,
// without a side effect, if the request has to take the general path.
template <class Update>
[[gnu::always_inline]] inline bool Requests::HoldUpdate(const Received& request, Update&& update) {
  ServerConnection* const connection = request.connection;
  Session* const session = connection->session;
  PlainPut put;
  if (!put.Decode(request.message()) || !session->IsNextInOrder(put.sequence()) ||
      TooManyUnanswered(*connection) || !connection->ordinary) {
    return false;
  }
  Writes::UpdateDecided decided;
  if (!update(*session, &put, &decided)) return false;
  ++connection->unanswered;
  session->BeginNext(put.sequence());
  given_.held_replies->HoldUpdate(*connection, put.sequence(), decided);
  return true;
}

bool Requests::ServeWaitingUpdate(const Received& request) {
  const bool held = HoldUpdate(request, [&](const Session& session, PlainPut* put, auto* decided) {
    const ChangeOrigin origin = {.session_token = session.token(),
                                 .sequence = put->sequence(),
                                 .opcode = static_cast<uint8_t>(Opcode::kPut)};
    const auto flags = [put] { return put->TakeUserFlags(); };
    return given_.writes->Update(request.guess, put->key(), put->value(), flags, origin, decided);
  });
  updates_ += held;
  return held;
}

// The same between BeginUpdates and EndUpdates.
[[gnu::always_inline]] inline bool Requests::ServeUpdateInLane(const Received& request) {
  return HoldUpdate(request, [&](const Session& session, PlainPut* put, auto* decided) {
    const auto flags = [put] { return put->TakeUserFlags(); };
    return given_.writes->UpdateInLane(request.guess, put->key(), put->value(), flags,
                                       session.token(), put->sequence(), decided);
  });
}

// Serves the updates with which the requests begin, and leaves the others. Returns false if none
// can be served so now.
bool Requests::ServeUpdatesInLane(std::span<const Received>* received) {
  if (!given_.writes->BeginUpdates()) return false;
  size_t served = 0;
  while (served < received->size() && ServeUpdateInLane((*received)[served])) ++served;
  given_.writes->EndUpdates();
  updates_ += served;
  *received = received->subspan(served);
  return true;
}

void Requests::ServeRecorded(std::span<const Received> received) {
  const bool waits = given_.writes->waits();
  const bool has_all = given_.standing == nullptr || given_.standing->partitions().all();
  if (waits && has_all) return ServeWaiting(received);
  for (const Received& request : received) {
    if (!has_all && RefuseElsewhere(request)) continue;
    if (waits ? ServeWaitingUpdate(request) : ServeUpdate<true>(request)) continue;
    OnMessage(request.connection, request.message());
  }
  // A write that waits counts as a use when it is published.
  if (!waits && given_.store->evicts()) NoteUpdates(received);
}

void Requests::ServeWaiting(std::span<const Received> received) {
  bool in_lane = true;
  for (; !received.empty(); received = received.subspan(1)) {
    in_lane = in_lane && ServeUpdatesInLane(&received);
    if (received.empty()) return;
    const Received& other = received.front();
    if (!ServeWaitingUpdate(other)) OnMessage(other.connection, other.message());
  }
}

}  // namespace gannet
