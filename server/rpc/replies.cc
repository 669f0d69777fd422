#include "server/rpc/replies.h"

#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "server/rpc/connection_closer.h"
#include "server/rpc/dispatcher.h"

namespace gannet {

void Replies::Record(Session* session, const ReplyHeader& reply) {
  if (IsRepeatable(static_cast<Opcode>(reply.opcode))) {
    session->RecordRepeatable(reply.sequence);
  } else if (reply.status == static_cast<uint8_t>(ReplyStatus::kTryAgain) &&
             session->aside == nullptr) {
    // Not applied, so it must be executed if it is sent again under the same number. With several
    // connections it gets the same answer: an old copy may still come by a dead one, when the
    // client has got this answer and sent the request again under another number.
    session->Forget(reply.sequence);
  } else {
    session->RecordAnswer(reply.sequence, reply);
  }
}

void Replies::Send(ServerConnection* connection, const ReplyHeader& reply) {
  if (reply.status == static_cast<uint8_t>(ReplyStatus::kOutcomeUnknown) &&
      connection->version < kProtocolVersionOfOutcomeUnknown) [[unlikely]] {
    return closer_.EndSession(connection->session,
                              "its client is older, and is to find out by itself that the outcome "
                              "of a write is not known");
  }
  ReplyHeader* header = batch_.AddHeader(connection);
  if (header == nullptr) return;
  *header = reply;
  ++connection->answers_in_chain;
}

// No client of this version sends such a request. The log says more than the status, for the person
// who looks for the cause.
void Replies::Refuse(ServerConnection* connection, const RequestHeader& header,
                     RequestError error) {
  context_.counters.refused_requests.Add(1);
  LogRefusal(&context_.server.log.refused_requests, context_.now.boot,
             absl::StrCat("request ", header.sequence, " of connection ", connection->id),
             error.reason);
  Send(connection, ReplyTo(header, error.status));
}

void Replies::SendInBuffer(ServerConnection* connection, uint32_t buffer, const ReplyHeader& reply,
                           const void* value) {
  const std::span<std::byte> bytes = buffers_.Bytes(buffer);
  std::memcpy(bytes.data(), &reply, sizeof(reply));
  std::memcpy(bytes.data() + sizeof(reply), value, reply.value_bytes);
  if (batch_.AddReply(connection, buffer, sizeof(reply) + reply.value_bytes)) {
    ++connection->answers_in_chain;
  }
}

}  // namespace gannet
