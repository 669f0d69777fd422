// Which replies wait, and how they leave: only after their writes were published. What waits while
// a group lacks copies is doubted, as nobody can say which of it was committed.

#include "server/rpc/held_replies.h"

#include <span>
#include <utility>
#include <vector>

#include "server/rpc/reply_of_update.h"

namespace gannet {

// A request whose reply is held stays in progress in its session. But it is not given up with its
// connection, because it is decided: if the client sends it again, it gets the same reply.
void HeldReplies::SendOrHold(ServerConnection* connection, const ReplyHeader& reply,
                             uint64_t ticket) {
  if (ticket == 0) return replies_.Answer(connection, reply);
  if (context_.session_stream != nullptr) [[unlikely]]
    Tell(connection->session->token(), reply, ticket);
  waiting_.Add({.ticket = ticket,
                .session_token = connection->session->token(),
                .connection = connection->id,
                .reply = reply});
}

// The client says by the number that these requests are over. It may: it gave the operations up,
// and then its connection broke, so it does not send them again. What they did stays, and nobody
// can ask for the answer. To close the connection would be no end: the client would come back with
// the same request, again and again, until the writes are published.
WaitingReplies::GivingUp HeldReplies::GiveUpInTheWayOf(const ServerConnection& connection,
                                                       uint64_t sequence) {
  using GivingUp = WaitingReplies::GivingUp;
  Session* const session = connection.session;
  const std::vector<uint64_t> in_the_way = session->InTheWayOf(sequence);
  if (in_the_way.empty()) return GivingUp::kNotHeld;
  const auto is_open = [this](uint32_t id) { return context_.connections.FindOpen(id) != nullptr; };
  const GivingUp done = waiting_.GiveUp(session->token(), in_the_way, session->credits(), is_open);
  if (done == GivingUp::kDone) {
    for (const uint64_t number : in_the_way) session->Forget(number);
  }
  return done;
}

// Tells the stream of an answer that no change has. If the refusal tells of a write that was undone
// meanwhile, by another worker, the stream has the other answer already. A step of a FLUSH has many
// changes, none of which has its answer.
void HeldReplies::Tell(uint64_t token, const ReplyHeader& reply, uint64_t ticket) {
  if (reply.opcode == static_cast<uint8_t>(Opcode::kFlush)) {
    return context_.session_stream->Answered(token, reply);
  }
  if (reply.status == static_cast<uint8_t>(ReplyStatus::kOk) || !SessionStream::Keeps(reply))
    return;
  const SessionAnswer answer = SessionStream::AnswerOf(reply);
  writes_.RecordAnswer(ticket, SessionRecord::Answers(token, std::span(&answer, 1)));
}

// The session may have been forgotten meanwhile, and another one have its place.
[[gnu::always_inline]] inline bool HeldReplies::FindSession(const WaitingReplies::Waiting& waiting,
                                                            Receiver* to) {
  if (to->token != waiting.session_token) [[unlikely]] {
    to->token = waiting.session_token;
    to->session = context_.sessions.Find(waiting.session_token);
  }
  return to->session != nullptr;
}

[[gnu::always_inline]] inline bool HeldReplies::FindConnection(
    const WaitingReplies::Waiting& waiting, Receiver* to) {
  if (to->id != waiting.connection || to->connection == nullptr) [[unlikely]] {
    to->id = waiting.connection;
    to->connection = context_.connections.FindOpen(waiting.connection);
  }
  return to->connection != nullptr;
}

void HeldReplies::Send(const WaitingReplies::Waiting& waiting, Receiver* to) {
  if (waiting.sequence == 0 || !FindSession(waiting, to)) return;
  const ReplyHeader reply = waiting.reply();
  Replies::Record(to->session, reply);
  if (FindConnection(waiting, to) && !to->connection->closing) {
    replies_.Send(to->connection, reply);
  }
}

// Does what Send does.
[[gnu::always_inline]] inline void HeldReplies::SendUpdate(const WaitingReplies::Waiting& waiting,
                                                           Receiver* to) {
  if (!FindSession(waiting, to)) return;
  const uint64_t version = waiting.words[0];
  const uint64_t slot = waiting.words[1];
  to->session->AnswerInProgress(waiting.sequence, Opcode::kPut, version, slot);
  if (!FindConnection(waiting, to)) return;
  if (to->direct < SendBatch::kDirectMax && SendBatch::TakesHeader(*to->connection)) [[likely]] {
    ++to->direct;
    ++to->connection->answers_in_chain;
    SetReplyOfUpdate(waiting.sequence, {.version = version, .slot = slot},
                     replies_.batch().AddInlineHeader(to->connection));
  } else if (!to->connection->closing) {
    replies_.Send(to->connection, waiting.reply());
  }
}

// Sends the replies to updates with which the queue begins, as far as their writes are published.
// Nothing that sends a reply touches the queue.
bool HeldReplies::SendUpdates(uint64_t published, Receiver* to) {
  bool sent = false;
  for (;;) {
    size_t count = 0;
    for (const WaitingReplies::Waiting& waiting : waiting_.FirstRun()) {
      if (!waiting.update || waiting.ticket > published) break;
      SendUpdate(waiting, to);
      ++count;
    }
    if (count == 0) return sent;
    waiting_.Pop(count);
    sent = true;
  }
}

// A group takes no write while it lacks copies. So what was committed without them was decided
// before, and its reply waits here, or was sent because enough members had the write. All that wait
// are doubted: which of them were committed just before is not worth knowing. REQUIRES: what is
// sent afterwards was found published before.
void HeldReplies::DoubtIfShort() {
  if (group_ == nullptr) return;
  const uint64_t now = group_->short_commits();
  if (now == short_commits_) [[likely]]
    return;
  short_commits_ = now;
  waiting_.DoubtAll();
}

// What is safe is published here, where the replies leave. Whichever worker comes first publishes
// for all.
bool HeldReplies::SendPublished(bool more_requests_wait) {
  if (group_ != nullptr) group_->Pump();
  const uint64_t safe = changes_.safe();
  writes_.Publish(safe);
  const uint64_t published = writes_.published();
  DoubtIfShort();
  Receiver to;
  bool sent = false;
  for (;; sent = true) {
    sent |= SendUpdates(published, &to);
    const auto* const waiting = waiting_.First(&writes_, published);
    if (waiting == nullptr) break;
    Send(*waiting, &to);
    waiting_.Pop();
  }
  // In a group, the worker looks for the copies itself.
  const bool waits_for_disk = group_ == nullptr || group_->waits_for_disk();
  if (waits_for_disk && !waiting_.empty() && sync_asks_.Asks(safe, more_requests_wait)) {
    context_.server.control.AskForSync();
  }
  return sent;
}

}  // namespace gannet
