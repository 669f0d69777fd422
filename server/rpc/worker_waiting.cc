// Worker: writes that wait for the disk (--sync=always). They are decided and recorded at once, in
// the order in which they came. Their replies leave when they are on disk and published, and the
// worker serves other requests meanwhile.

#include <cstring>

#include "server/rpc/worker.h"

namespace gannet {

bool Worker::ExecuteWaiting(ServerConnection* connection, const RequestView& request,
                            const ChangeOrigin& origin) {
  const RequestHeader& header = request.header;
  if (IsRepeatable(static_cast<Opcode>(header.opcode))) return false;
  if (header.opcode == static_cast<uint8_t>(Opcode::kFlush)) {
    const auto flushed = node_->waiting->FlushSome(header.flush.position, now_.wall_ms);
    ReplyOrWait(connection, ReplyOfFlush(header, flushed.outcome), flushed.ticket);
    return true;
  }
  const WaitingWrites::Decided decided = Decide(request, origin);
  ReplyOrWait(connection, ReplyOfWrite(header, decided.outcome), decided.ticket);
  return true;
}

// DecodeRequest checked that an INCREMENT has operands.
WaitingWrites::Decided Worker::Decide(const RequestView& request, const ChangeOrigin& origin) {
  WaitingWrites& waiting = *node_->waiting;
  const ItemAttributes made = AttributesOf(request.header, *store_, now_.wall_ms);
  const WriteConditions conditions = ConditionsOf(request.header, &origin);
  switch (static_cast<Opcode>(request.header.opcode)) {
    case Opcode::kPut:
      return waiting.Put(request.key, request.value, made, conditions, now_.wall_ms);
    case Opcode::kDelete:
      return waiting.Delete(request.key, conditions, now_.wall_ms);
    case Opcode::kAppend:
      return waiting.Append(request.key, request.value, Store::End::kBack, made, conditions,
                            now_.wall_ms);
    case Opcode::kPrepend:
      return waiting.Append(request.key, request.value, Store::End::kFront, made, conditions,
                            now_.wall_ms);
    case Opcode::kIncrement: {
      CounterOperands operands;
      std::memcpy(&operands, request.value.data(), sizeof(operands));
      return waiting.Increment(request.key, operands, made, conditions, now_.wall_ms);
    }
    case Opcode::kTouch:
      return waiting.Touch(request.key, made.expiry_ms, conditions, now_.wall_ms);
    default:
      return {.outcome = {.status = ReplyStatus::kUnimplemented}};
  }
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

void Worker::ServeWaitingReplies() {
  while (const auto waiting = waiting_replies_.Take(node_->waiting)) {
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
