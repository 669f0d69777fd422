#include "server/rpc/held_replies.h"

#include <span>
#include <utility>

namespace gannet {

// A request whose reply is held stays in progress in its session. But it is not given up with its
// connection, because it is decided: if the client sends it again, it gets the same reply.
void HeldReplies::SendOrHold(ServerConnection* connection, const ReplyHeader& reply,
                             uint64_t ticket) {
  if (ticket == 0) return given_.replies->Answer(connection, reply);
  if (given_.session_stream != nullptr) [[unlikely]]
    Tell(connection->session->token(), reply, ticket);
  waiting_.Add({.ticket = ticket,
                .session_token = connection->session->token(),
                .connection = connection->id,
                .reply = reply});
}

// Tells the stream of an answer that no change has. If the refusal tells of a write that was undone
// meanwhile, by another worker, the stream has the other answer already. A step of a FLUSH has many
// changes, none of which has its answer.
void HeldReplies::Tell(uint64_t token, const ReplyHeader& reply, uint64_t ticket) {
  if (reply.opcode == static_cast<uint8_t>(Opcode::kFlush)) {
    return given_.session_stream->Answered(token, reply);
  }
  if (reply.status == static_cast<uint8_t>(ReplyStatus::kOk) || !SessionStream::Keeps(reply))
    return;
  const SessionAnswer answer = SessionStream::AnswerOf(reply);
  given_.writes->RecordAnswer(ticket, SessionRecord::Answers(token, std::span(&answer, 1)));
}

// What is safe is published here, where the replies leave. Whichever worker comes first publishes
// for all.
bool HeldReplies::SendPublished() {
  bool sent = false;
  if (given_.group != nullptr) given_.group->Pump();
  given_.writes->Publish(given_.changes->safe());
  // Replies of one session mostly come in a row.
  uint64_t token = 0;
  Session* session = nullptr;
  uint32_t id = 0;
  ServerConnection* connection = nullptr;
  uint32_t direct = 0;  // nobody else adds such replies in this Poll
  for (; const auto* waiting = waiting_.First(given_.writes); waiting_.Pop(), sent = true) {
    if (std::exchange(token, waiting->session_token) != token) {
      session = given_.sessions->Find(token);
    }
    // The session may have been forgotten meanwhile, and another one have its place.
    if (session == nullptr) continue;
    Replies::Record(session, waiting->reply);
    if (std::exchange(id, waiting->connection) != id || connection == nullptr) {
      connection = given_.connections->FindOpen(id);
    }
    if (connection == nullptr) continue;
    if (direct < SendBatch::kDirectMax && SendBatch::TakesHeader(*connection)) [[likely]] {
      ++direct;
      given_.replies->SendDirect(connection, waiting->reply);
    } else if (!connection->closing) {
      given_.replies->Send(connection, waiting->reply);
    }
  }
  // In a group, the worker looks for the copies itself.
  const bool waits_for_disk = given_.group == nullptr || given_.group->waits_for_disk();
  if (waits_for_disk && waiting_.TakeGrew()) given_.wants_sync();
  return sent;
}

}  // namespace gannet
