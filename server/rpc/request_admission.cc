// A request that is refused is counted and admitted like any other. So an answer that the session
// remembers is given again, whatever refuses the request now.

#include "server/rpc/request_admission.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/rpc/elsewhere.h"

namespace gannet {
namespace {

// Returns true if it is a write of one key.
bool WritesKey(const RequestHeader& header) {
  return header.key_bytes != 0 && header.opcode != static_cast<uint8_t>(Opcode::kLock) &&
         header.opcode != static_cast<uint8_t>(Opcode::kUnlock) &&
         header.opcode != static_cast<uint8_t>(Opcode::kExtendLock) &&
         !IsRepeatable(static_cast<Opcode>(header.opcode));
}

ReplyHeader PutOffReply(const RequestHeader& header, uint64_t wait_ms = 0) {
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kTryAgain);
  reply.write.version = kPutOffInOrder;
  reply.words[kPutOffMsWord] = wait_ms;
  return reply;
}

}  // namespace

// Refuses a request for a key whose partition this group does not serve.
//
// A lock's word is of this server, and of many keys. So an unlock is never refused.
// An answer that is remembered comes first: the request was executed, whoever has the key by now
// (docs/partitions.md, rule 12).
// A refused write puts off the later ones of its key, as the partition may be back when they are
// looked at (rule 14).
bool RequestAdmission::RefuseElsewhere(ServerConnection* connection, const RequestView& request) {
  if (request.key.empty() || request.header.opcode == static_cast<uint8_t>(Opcode::kUnlock) ||
      ComesTooEarly(*connection->session, request.header)) {
    return false;
  }
  context_.counters.by_opcode[request.header.opcode].Add(1);
  if (!AdmitRefused(connection, request)) return true;
  const uint64_t in_order = PutOffLater(connection, request) ? kPutOffInOrder : 0;
  RefuseAsElsewhere(*standing_, request.header, in_order, connection, &replies_);
  return true;
}

// Refuses a request of a session that may only read, unless it changes nothing.
bool RequestAdmission::RefuseWrite(ServerConnection* connection, const RequestView& request) {
  if (ChangesNothing(request.header)) return false;
  if (AdmitRefused(connection, request)) {
    replies_.Answer(connection, ReplyTo(request.header, ReplyStatus::kPermissionDenied));
  }
  return true;
}

bool RequestAdmission::AdmitRefused(ServerConnection* connection, const RequestView& request) {
  ++connection->unanswered;
  context_.counters.rpcs.Add(1);
  return Admit(connection, request);
}

bool RequestAdmission::AdmitAgain(ServerConnection* connection, const RequestView& request,
                                  Session::Admission admission, ReplyHeader recorded) {
  const RequestHeader& header = request.header;
  if (admission == Session::Admission::kInProgress && AskOf(header) == RailsAsk::kGivenUp) {
    replies_.Send(connection, ReplyTo(header, ReplyStatus::kTryAgain));
    return false;
  }
  if (admission == Session::Admission::kInProgress) {
    // The client believes that another of its connections is broken, and may be right. Gives up the
    // copy on that connection, and executes this one.
    CloseExecutorOf(connection, header.sequence);
    if (RedirectHeld(connection, header.sequence)) return false;
    admission = connection->session->Admit(header.sequence, &recorded);
  } else if (admission == Session::Admission::kOverrun) {
    const auto given_up = held_replies_.GiveUpInTheWayOf(*connection, header.sequence);
    if (given_up == WaitingReplies::GivingUp::kTooMany) {
      if (connection->session->aside != nullptr) {  // the number would be missing
        closer_.Close(connection, "too many requests were given up");
      } else {
        replies_.Send(connection, PutOff(connection, request, 0));
      }
      return false;
    }
    if (given_up == WaitingReplies::GivingUp::kDone)
      admission = connection->session->Admit(header.sequence, &recorded);
  }
  switch (admission) {
    case Session::Admission::kExecute:
      return true;
    case Session::Admission::kReplay:
      replies_.Send(connection, recorded);
      return false;
    case Session::Admission::kTooEarly: {
      std::array<std::byte, kMessageBytesMax> message;
      const size_t bytes = EncodeRequest(header, request.key, request.value, message);
      KeepAside(connection, header.sequence, std::span(message).first(bytes));
      return false;
    }
    case Session::Admission::kStale:
      replies_.Refuse(connection, header,
                      {ReplyStatus::kInvalidArgument, "a sequence number below the credits"});
      return false;
    case Session::Admission::kInProgress:
      closer_.Close(connection, "a request sent twice on one connection");
      return false;
    case Session::Admission::kOverrun:
      closer_.Close(connection, "a sequence number beyond the credits");
      return false;
  }
  return false;
}

void RequestAdmission::AnswerGivenUp(ServerConnection* connection, const RequestHeader& header) {
  const ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  connection->session->RecordAnswer(header.sequence, reply);
  replies_.Send(connection, reply);
}

bool RequestAdmission::AdmitMalformed(ServerConnection* connection, const RequestHeader& header,
                                      std::span<const std::byte> message) {
  Session* const session = connection->session;
  if (session->aside == nullptr) return true;
  ReplyHeader unused;
  const Session::Admission admission = session->Admit(header.sequence, &unused);
  if (admission == Session::Admission::kTooEarly) {
    KeepAside(connection, header.sequence, message);
  } else if (admission == Session::Admission::kExecute) {
    session->Forget(header.sequence);
  } else if (admission == Session::Admission::kOverrun) {
    closer_.Close(connection, "a sequence number beyond the credits");
  }
  return admission != Session::Admission::kTooEarly && !connection->closing;
}

void RequestAdmission::KeepAside(ServerConnection* connection, uint64_t sequence,
                                 std::span<const std::byte> message) {
  using Keeping = RequestsAside::Keeping;
  Session* const session = connection->session;
  switch (session->aside->Keep(sequence, {.connection = connection->id,
                                          .since = context_.now.boot,
                                          .message = {message.begin(), message.end()}})) {
    case Keeping::kDone:
      context_.counters.set_aside.Add(1);
      if (std::ranges::find(waiting_, session->token()) == waiting_.end())
        waiting_.push_back(session->token());
      break;
    case Keeping::kTwice:
      return closer_.Close(connection, "a request sent twice on one connection");
    case Keeping::kTooMany:
      return closer_.Close(connection, "more requests set aside than credits");
  }
}

// What is set aside is of open connections: one that closes drops what came by it.
std::optional<RequestAdmission::SetAside> RequestAdmission::TakeAside() {
  for (size_t i = 0; i < waiting_.size();) {
    Session* const session = context_.sessions.Find(waiting_[i]);
    if (session == nullptr || session->aside == nullptr || session->aside->empty()) {
      waiting_[i] = waiting_.back();
      waiting_.pop_back();
      continue;
    }
    if (auto copy = session->aside->Take(session->highest() + 1)) {
      ServerConnection* const connection = context_.connections.FindOpen(copy->connection);
      GANNET_CHECK(connection != nullptr, "a request of a closed connection is set aside");
      --connection->unanswered;
      return SetAside{connection, std::move(copy->message)};
    }
    ++i;
  }
  return std::nullopt;
}

void RequestAdmission::CloseExecutorOf(const ServerConnection* asking, uint64_t sequence) {
  ServerConnection* const other = context_.connections.FindExecutor(*asking, sequence);
  if (other != nullptr) closer_.Close(other, "its client sent a request again elsewhere");
}

bool RequestAdmission::RedirectHeld(ServerConnection* connection, uint64_t sequence) {
  const auto former = held_replies_.Redirect(*connection, sequence);
  if (!former) return false;
  if (*former == connection->id) {
    closer_.Close(connection, "a request sent twice on one connection");
  } else if (ServerConnection* const other = context_.connections.Find(*former)) {
    closer_.Close(other, "its client sent a request again elsewhere");
  }
  return true;
}

// The client is told that its writes of the key keep their order. A client that was told sends
// numbers that are higher by its credits or more.
bool RequestAdmission::PutOffLater(ServerConnection* connection, const RequestView& request) {
  Session* const session = connection->session;
  if (!WritesKey(request.header) || session->read_only()) return false;
  session->put_off.OnNumber(request.header.sequence);
  session->put_off.Add(context_.server.store.HashOf(request.key).value(),
                       request.header.sequence + session->credits());
  connection->BeOrdinary(false);
  if (session->aside == nullptr) return true;  // no other connection carries requests
  for (const auto& [id, other] : context_.connections) {
    if (other->session == session && !other->closing) other->BeOrdinary(false);
  }
  return true;
}

ReplyHeader RequestAdmission::PutOff(ServerConnection* connection, const RequestView& request,
                                     uint64_t wait_ms) {
  if (PutOffLater(connection, request)) return PutOffReply(request.header, wait_ms);
  return ReplyTo(request.header, ReplyStatus::kTryAgain);
}

bool RequestAdmission::PutOffBehind(ServerConnection* connection, const RequestView& request) {
  PutOffKeys& keys = connection->session->put_off;
  keys.OnNumber(request.header.sequence);
  if (keys.empty()) connection->BeOrdinary(true);
  if (keys.empty() || !WritesKey(request.header)) return false;
  const uint64_t key = context_.server.store.HashOf(request.key).value();
  if (!keys.Contains(key)) return false;
  if ((request.header.flags & kSentAgain) != 0) {
    keys.Remove(key);
    return false;
  }
  if (AdmitRefused(connection, request)) {
    // The client may have given the first one up, and have sent others behind this one since.
    PutOffLater(connection, request);
    replies_.Answer(connection, PutOffReply(request.header));
  }
  return true;
}

}  // namespace gannet
