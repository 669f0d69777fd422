#ifndef GANNET_SERVER_RPC_REPLIES_H_
#define GANNET_SERVER_RPC_REPLIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/protocol/message.h"
#include "server/rpc/send_batch.h"
#include "server/rpc/server_connection.h"
#include "server/rpc/worker_context.h"
#include "server/sessions/session/session.h"

namespace gannet {

class ConnectionCloser;

// The replies of one worker: records them in the sessions and puts them into the batch that the
// worker posts. Owner thread only.
class Replies {
 public:
  // Both outlive this. The closer may not exist yet.
  Replies(WorkerContext& context, ConnectionCloser& closer)
      : context_(context), closer_(closer), batch_(&context.reply_buffers, closer) {}

  // Records the answer to an admitted request.
  static void Record(Session* session, const ReplyHeader& reply);
  // Sends a reply of only a header. Records nothing. To a client that does not know the status
  // kOutcomeUnknown, it ends the session instead: then the client says the same by itself.
  void Send(ServerConnection* connection, const ReplyHeader& reply);
  // Records and sends the answer to an admitted request. REQUIRES: no change has this answer, or
  // there is no group.
  void Answer(ServerConnection* connection, const ReplyHeader& reply) {
    Record(connection->session, reply);
    if (context_.session_stream != nullptr) [[unlikely]]
      context_.session_stream->Answered(connection->session->token(), reply);
    Send(connection, reply);
  }
  // Sends the reply to a malformed request, and logs the reason.
  void Refuse(ServerConnection* connection, const RequestHeader& header, RequestError error);

  // Begin and answer an admitted request that takes several completions.
  static void BeginLong(ServerConnection* connection, const RequestHeader& header) {
    connection->in_progress.push_back(header.sequence);
  }
  void AnswerLong(ServerConnection* connection, const ReplyHeader& reply) {
    connection->RemoveInProgress(reply.sequence);
    Answer(connection, reply);
  }

  // Takes a buffer for a reply with a value. Returns nullopt if the connection holds its share of
  // the buffers, or all are on their way to clients.
  std::optional<uint32_t> TakeBuffer(const ServerConnection& connection) {
    return buffers_.MayTake(connection.reply_buffers) ? buffers_.Take() : std::nullopt;
  }
  // Sends the reply with the first value_bytes (of the reply) of `value`. Takes `buffer` over.
  // Records nothing.
  void SendInBuffer(ServerConnection* connection, uint32_t buffer, const ReplyHeader& reply,
                    const void* value);
  // A reply in this buffer completed.
  void GiveBuffer(ServerConnection* connection, uint32_t buffer) {
    buffers_.Give(buffer);
    --connection->reply_buffers;
  }
  // The buffers that are not taken.
  size_t available() const { return buffers_.available(); }

  // What this Poll sends.
  SendBatch& batch() { return batch_; }
  const SendBatch& batch() const { return batch_; }

 private:
  WorkerContext& context_;
  ConnectionCloser& closer_;
  BufferPool& buffers_ = context_.reply_buffers;
  SendBatch batch_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_REPLIES_H_
