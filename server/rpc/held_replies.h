#ifndef GANNET_SERVER_RPC_HELD_REPLIES_H_
#define GANNET_SERVER_RPC_HELD_REPLIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/protocol/message.h"
#include "server/rpc/replies.h"
#include "server/rpc/sync_asks.h"
#include "server/rpc/waiting_replies.h"
#include "server/rpc/worker_context.h"
#include "server/writes/writes.h"

namespace gannet {

// Replies to writes. With --sync=always they are held until the writes are on disk and published,
// and the worker serves other requests meanwhile. Owner thread only.
class HeldReplies {
 public:
  // Both outlive this.
  HeldReplies(WorkerContext& context, Replies& replies) : context_(context), replies_(replies) {}

  // Call it before the requests of a Poll are served.
  void BeginPoll() {
    // What was committed before tells nothing of them.
    if (group_ != nullptr && waiting_.empty())
      short_commits_ = context_.server.group->short_commits();
  }
  // Ticket 0: records and sends the reply at once.
  void SendOrHold(ServerConnection* connection, const ReplyHeader& reply, uint64_t ticket);
  // Holds the reply to an update, which succeeded.
  void HoldUpdate(const ServerConnection& connection, uint64_t sequence,
                  const Writes::UpdateDecided& decided) {
    waiting_.AddUpdate(connection.session->token(), connection.id, sequence, decided);
  }
  // Publishes what is safe, and sends the replies that may go. Returns true if there were any.
  // Asks for a sync if replies are left, unless more requests wait to be served.
  bool SendPublished(bool more_requests_wait);
  // The client sent a request again on this connection. Its reply goes there, if it is held.
  // Returns the former connection, or nullopt if no reply to the request is held.
  std::optional<uint32_t> Redirect(const ServerConnection& connection, uint64_t sequence) {
    return waiting_.Redirect(connection.session->token(), sequence, connection.id);
  }
  // Gives up the held replies that keep this request of the connection out of its session's window,
  // if nothing else does, and no connection is left to send them to.
  WaitingReplies::GivingUp GiveUpInTheWayOf(const ServerConnection& connection, uint64_t sequence);

  size_t size() const { return waiting_.size(); }
  bool empty() const { return waiting_.empty(); }

 private:
  // Where replies went that were sent before. Those of one session mostly come in a row.
  struct Receiver {
    uint64_t token = 0;
    Session* session = nullptr;
    uint32_t id = 0;
    ServerConnection* connection = nullptr;
    uint32_t direct = 0;  // nobody else adds such replies in this Poll
  };
  void Tell(uint64_t token, const ReplyHeader& reply, uint64_t ticket);
  // Returns false if nobody remembers the session.
  bool FindSession(const WaitingReplies::Waiting& waiting, Receiver* to);
  // Returns false if the connection is not open.
  bool FindConnection(const WaitingReplies::Waiting& waiting, Receiver* to);
  void Send(const WaitingReplies::Waiting& waiting, Receiver* to);
  void SendUpdate(const WaitingReplies::Waiting& waiting, Receiver* to);
  bool SendUpdates(uint64_t published, Receiver* to);
  void DoubtIfShort();

  WorkerContext& context_;
  Replies& replies_;
  // Of the context: each Poll asks them.
  Writes& writes_ = context_.server.writes;
  const ChangeStream& changes_ = context_.server.changes;
  GroupStream* const group_ = context_.server.group;  // null: the server is alone
  WaitingReplies waiting_;
  uint64_t short_commits_ = 0;  // GroupStream::short_commits, when it was looked at
  SyncAsks sync_asks_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_HELD_REPLIES_H_
