#ifndef GANNET_SERVER_RPC_SERVE_UPDATE_H_
#define GANNET_SERVER_RPC_SERVE_UPDATE_H_

#include "common/protocol/plain_put.h"
#include "server/memory/store/store_update.h"
#include "server/rpc/elsewhere.h"
#include "server/rpc/reply_of_update.h"
#include "server/rpc/requests.h"

// The steps of Requests that every small request passes through. They are inlined, because the
// calls would cost more than the steps. Each source that includes this makes one copy of the fast
// path: with two copies in one source, the compiler inlines less of both.

namespace gannet {

[[gnu::always_inline]] inline bool Requests::TooManyUnanswered(
    const ServerConnection& connection) const {
  return connection.unanswered >= unanswered_max_;
}

// Fast path: serves an update in place, which most requests are, from the message to the reply.
// Returns false, without a side effect, if the request has to take the general path.
// Updates::kRecorded: the update is recorded and written by RecordedUpdates::Make, which comes
// before the reply is posted.
template <Requests::Updates kUpdates>
[[gnu::always_inline]] inline bool Requests::ServeUpdate(const Received& request) {
  ServerConnection* const connection = request.connection;
  PlainPut put;
  if (!put.Decode(request.message()) || !connection->session->IsNext(put.sequence()) ||
      TooManyUnanswered(*connection) || !SendBatch::TakesHeader(*connection)) {
    return false;
  }
  Store::Update update;
  const auto flags = [&put] { return put.TakeUserFlags(); };
  if constexpr (kUpdates == Updates::kRecorded) {
    if (IsElsewhere(standing_, put.key()) ||
        !recorded_updates_.Add(request.guess, put.key(), put.value(), flags,
                               connection->session->token(), put.sequence(), &update)) {
      return false;
    }
  } else if (!store_.UpdateInPlace(request.guess, put.key(), put.value(), flags, &update)) {
    return false;
  }
  ++connection->unanswered;
  const uint64_t sequence =
      connection->session->AnswerNext(Opcode::kPut, update.version, update.slot);
  SetReplyOfUpdate(sequence, update, replies_.batch().AddInlineHeader(connection));
  ++connection->answers_in_chain;
  ++updates_;
  return true;
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SERVE_UPDATE_H_
