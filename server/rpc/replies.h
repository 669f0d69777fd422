#ifndef GANNET_SERVER_RPC_REPLIES_H_
#define GANNET_SERVER_RPC_REPLIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/protocol/message.h"
#include "server/rpc/buffer_pool.h"
#include "server/rpc/now.h"
#include "server/rpc/send_batch.h"
#include "server/rpc/server_connection.h"
#include "server/rpc/server_log.h"
#include "server/rpc/worker_counters.h"
#include "server/session/session.h"
#include "server/session/session_stream.h"

namespace gannet {

class ConnectionCloser;

// The replies of one worker: records them in the sessions and puts them into the batch that the
// worker posts. Owner thread only.
class Replies {
 public:
  struct Dependencies {  // outlive the replies
    const Now* now;      // the time of this Poll
    ServerLog* log;
    WorkerCounters* counters;
    ConnectionCloser* closer;
    SessionStream* session_stream;  // null: there is no group
  };

  // `refused` as of SendBatch.
  Replies(const Dependencies& given, BufferPool buffers, SendBatch::Refused refused)
      : now_(given.now),
        log_(given.log),
        counters_(given.counters),
        closer_(given.closer),
        session_stream_(given.session_stream),
        buffers_(std::move(buffers)),
        batch_(&buffers_, std::move(refused)) {}

  // Records the answer to an admitted request.
  static void Record(Session* session, const ReplyHeader& reply);
  // Sends a reply of only a header. Records nothing. To a client that does not know the status
  // kOutcomeUnknown, it ends the session instead: then the client says the same by itself.
  void Send(ServerConnection* connection, const ReplyHeader& reply);
  // Records and sends the answer to an admitted request. REQUIRES: no change has this answer, or
  // there is no group.
  void Answer(ServerConnection* connection, const ReplyHeader& reply) {
    Record(connection->session, reply);
    if (session_stream_ != nullptr) [[unlikely]]
      session_stream_->Answered(connection->session->token(), reply);
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
  const Now* const now_;
  ServerLog* const log_;
  WorkerCounters* const counters_;
  ConnectionCloser* const closer_;
  SessionStream* const session_stream_;
  BufferPool buffers_;
  SendBatch batch_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_REPLIES_H_
