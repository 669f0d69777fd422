#ifndef GANNET_SERVER_RPC_SERVE_WAITING_H_
#define GANNET_SERVER_RPC_SERVE_WAITING_H_

#include "common/protocol/partition_of.h"
#include "server/rpc/serve_update.h"
#include "server/writes/update.h"

// Updates that wait, from the message to the held reply. They are inlined for the reason that
// serve_update.h gives.

namespace gannet {

// `standing` as in ServerContext.
inline bool ServesAllKeys(const GroupStanding* standing) {
  return standing == nullptr || standing->partitions().all();
}

template <bool kLeases, Requests::Behind kBehind>
[[gnu::always_inline]] inline bool Requests::DecideUpdate(const Received& request,
                                                          const Session& session,
                                                          const PlainPut& put,
                                                          Writes::UpdateDecided* decided) {
  const auto flags = [&put] { return put.TakeUserFlags(); };
  const Writes::UpdateOrigin origin = {.session_token = session.token(),
                                       .sequence = put.sequence()};
  Writes& writes = writes_;
  if constexpr (kBehind == Behind::kTriedLock) {
    return writes.UpdateInLane<kLeases>(request.guess, put.key(), put.value(), flags, origin,
                                        decided);
  }
  return writes.Update<kLeases>(request.guess, put.key(), put.value(), flags, origin, decided);
}

// The fast path of an update that waits: from the message to the held reply. Returns false, without
// a side effect, if the request has to take the general path.
template <bool kAllKeys, bool kLeases, Requests::Behind kBehind>
[[gnu::always_inline]] inline bool Requests::HoldUpdate(const Received& request) {
  ServerConnection* const connection = request.connection;
  Session* const session = connection->session;
  PlainPut put;
  if (!put.Decode(request.message()) || !session->IsNextInOrder(put.sequence()) ||
      TooManyUnanswered(*connection) || !connection->ordinary) {
    return false;
  }
  if (!kAllKeys && !standing_->partitions().IsServed(PartitionOfInline(put.key()))) [[unlikely]] {
    return false;
  }
  Writes::UpdateDecided decided;
  if (!DecideUpdate<kLeases, kBehind>(request, *session, put, &decided)) return false;
  ++connection->unanswered;
  session->BeginNext(put.sequence());
  held_replies_.HoldUpdate(*connection, put.sequence(), decided);
  return true;
}

// Serves the updates with which the requests begin, and leaves the others. Returns false if none
// can be served now.
template <bool kAllKeys, bool kLeases>
bool Requests::ServeUpdatesInLane(std::span<const Received>* received) {
  if (!writes_.BeginUpdates()) return false;
  size_t served = 0;
  while (served < received->size() &&
         HoldUpdate<kAllKeys, kLeases, Behind::kTriedLock>((*received)[served])) {
    ++served;
  }
  writes_.EndUpdates();
  updates_ += served;
  *received = received->subspan(served);
  return true;
}

// For one that another thread's lock kept out of the lane.
template <bool kAllKeys, bool kLeases>
bool Requests::ServeUpdateAlone(const Received& request) {
  const bool held = HoldUpdate<kAllKeys, kLeases, Behind::kLock>(request);
  updates_ += held;
  return held;
}

// Serves updates in lanes, and the requests between them one by one. kAllKeys: this group serves
// all keys. kLeases: the store leases items, so an update of a key that may be leased is none.
template <bool kAllKeys, bool kLeases>
void Requests::ServeWaiting(std::span<const Received> received) {
  bool in_lane = true;
  for (; !received.empty(); received = received.subspan(1)) {
    in_lane = in_lane && ServeUpdatesInLane<kAllKeys, kLeases>(&received);
    if (received.empty()) return;
    const Received& other = received.front();
    if (!ServeUpdateAlone<kAllKeys, kLeases>(other)) OnMessage(other.connection, other.message());
  }
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SERVE_WAITING_H_
