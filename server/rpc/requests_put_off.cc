// Writes of keys of which an earlier write of the session is put off (PutOffKeys).

#include "server/rpc/serve_update.h"

namespace gannet {
namespace {

// Returns true if it is a write of one key.
bool WritesKey(const RequestHeader& header) {
  return header.key_bytes != 0 && header.opcode != static_cast<uint8_t>(Opcode::kLock) &&
         header.opcode != static_cast<uint8_t>(Opcode::kUnlock) &&
         header.opcode != static_cast<uint8_t>(Opcode::kExtendLock) &&
         !IsRepeatable(static_cast<Opcode>(header.opcode));
}

ReplyHeader PutOffReply(const RequestHeader& header) {
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kTryAgain);
  reply.write.version = kPutOffInOrder;
  return reply;
}

}  // namespace

// The client is told that its writes of the key keep their order. A client that was told sends
// numbers that are higher by its credits or more.
bool Requests::PutOffLater(ServerConnection* connection, const RequestView& request) {
  Session* const session = connection->session;
  if (!WritesKey(request.header) || session->read_only()) return false;
  session->put_off.OnNumber(request.header.sequence);
  session->put_off.Add(store_.HashOf(request.key).value(),
                       request.header.sequence + session->credits());
  connection->BeOrdinary(false);
  return true;
}

ReplyHeader Requests::PutOff(ServerConnection* connection, const RequestView& request) {
  if (PutOffLater(connection, request)) return PutOffReply(request.header);
  return ReplyTo(request.header, ReplyStatus::kTryAgain);
}

bool Requests::PutOffBehind(ServerConnection* connection, const RequestView& request) {
  PutOffKeys& keys = connection->session->put_off;
  keys.OnNumber(request.header.sequence);
  if (keys.empty()) connection->BeOrdinary(true);
  if (keys.empty() || !WritesKey(request.header)) return false;
  const uint64_t key = store_.HashOf(request.key).value();
  if (!keys.Contains(key)) return false;
  if ((request.header.flags & kSentAgain) != 0) {
    keys.Remove(key);
    return false;
  }
  if (AdmitRefused(connection, request)) {
    replies_.Answer(connection, PutOffReply(request.header));
  }
  return true;
}

}  // namespace gannet
