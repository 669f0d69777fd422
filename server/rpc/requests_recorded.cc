// Requests of a store that records its changes, in a journal or elsewhere.

#include "common/protocol/partition_of.h"
#include "server/rpc/serve_update.h"
#include "server/writes/update.h"

namespace gannet {

template <Requests::Behind kBehind>
[[gnu::always_inline]] inline bool Requests::DecideUpdate(const Received& request,
                                                          const Session& session,
                                                          const PlainPut& put,
                                                          Writes::UpdateDecided* decided) {
  const auto flags = [&put] { return put.TakeUserFlags(); };
  const Writes::UpdateOrigin origin = {.session_token = session.token(),
                                       .sequence = put.sequence()};
  Writes& writes = writes_;
  if constexpr (kBehind == Behind::kTriedLock) {
    return writes.UpdateInLane(request.guess, put.key(), put.value(), flags, origin, decided);
  }
  return writes.Update(request.guess, put.key(), put.value(), flags, origin, decided);
}

// The fast path of an update that waits: from the message to the held reply. Returns false, without
// a side effect, if the request has to take the general path.
template <bool kAllKeys, Requests::Behind kBehind>
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
  if (!DecideUpdate<kBehind>(request, *session, put, &decided)) return false;
  ++connection->unanswered;
  session->BeginNext(put.sequence());
  held_replies_.HoldUpdate(*connection, put.sequence(), decided);
  return true;
}

// Serves the updates with which the requests begin, and leaves the others. Returns false if none
// can be served now.
template <bool kAllKeys>
bool Requests::ServeUpdatesInLane(std::span<const Received>* received) {
  if (!writes_.BeginUpdates()) return false;
  size_t served = 0;
  while (served < received->size() &&
         HoldUpdate<kAllKeys, Behind::kTriedLock>((*received)[served])) {
    ++served;
  }
  writes_.EndUpdates();
  updates_ += served;
  *received = received->subspan(served);
  return true;
}

// For one that another thread's lock kept out of the lane.
template <bool kAllKeys>
bool Requests::ServeUpdateAlone(const Received& request) {
  const bool held = HoldUpdate<kAllKeys, Behind::kLock>(request);
  updates_ += held;
  return held;
}

// Serves updates in lanes, and the requests between them one by one. kAllKeys: this group serves
// all keys.
template <bool kAllKeys>
void Requests::ServeWaiting(std::span<const Received> received) {
  bool in_lane = true;
  for (; !received.empty(); received = received.subspan(1)) {
    in_lane = in_lane && ServeUpdatesInLane<kAllKeys>(&received);
    if (received.empty()) return;
    const Received& other = received.front();
    if (!ServeUpdateAlone<kAllKeys>(other)) OnMessage(other.connection, other.message());
  }
}

// Serves updates together, and the requests between them one by one. An update that could not be
// with others, as another thread has its lock, is the first one of the next ones, and waits for it.
void Requests::ServeAtOnce(std::span<const Received> received) {
  while (!received.empty()) {
    size_t served = 0;
    while (served < received.size() && ServeUpdate<Updates::kRecorded>(received[served])) ++served;
    recorded_updates_.Make();
    if (served == 0) {
      OnMessage(received[0].connection, received[0].message());
      served = 1;
    }
    received = received.subspan(served);
  }
}

void Requests::ServeRecorded(std::span<const Received> received) {
  const bool all = standing_ == nullptr || standing_->partitions().all();
  if (!writes_.waits()) return ServeAtOnce(received);
  all ? ServeWaiting<true>(received) : ServeWaiting<false>(received);
}

}  // namespace gannet
