#ifndef GANNET_SERVER_RPC_WAITING_REPLIES_H_
#define GANNET_SERVER_RPC_WAITING_REPLIES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/protocol/message.h"
#include "server/writes/stable_queue.h"
#include "server/writes/writes.h"

namespace gannet {

// The replies of one worker that wait until the writes that they tell of are published, in order.
// A session has at most as many as it has credits, which bounds their number. Owner thread only.
class WaitingReplies {
 public:
  struct Waiting {
    uint64_t ticket = 0;
    uint64_t session_token = 0;
    uint32_t connection = 0;
    ReplyHeader reply{};
    bool undone = false;
  };

  void Add(const Waiting& waiting) { replies_.PushBack() = waiting; }
  // Adds the reply to an update, which succeeded.
  void AddUpdate(uint64_t session_token, uint32_t connection, uint64_t sequence,
                 const Writes::Decided& decided) {
    Waiting& waiting = replies_.PushBack();
    waiting.ticket = decided.ticket;
    waiting.session_token = session_token;
    waiting.connection = connection;
    waiting.undone = false;
    // clang 14 takes no designator of a union's member here.
    waiting.reply = ReplyHeader{};
    waiting.reply.opcode = static_cast<uint8_t>(Opcode::kPut);
    waiting.reply.status = static_cast<uint8_t>(ReplyStatus::kOk);
    waiting.reply.sequence = sequence;
    waiting.reply.write.version = decided.outcome.version;
    waiting.reply.write.slot = decided.outcome.slot;
  }
  // Returns the next reply that may be sent, or nullptr. Pop it then. The reply to a write that was
  // undone says so, and waits until that is on disk, too.
  const Waiting* First(Writes* writes) {
    while (!replies_.empty() && replies_.front().ticket <= writes->published()) {
      Waiting& first = replies_.front();
      if (first.undone) return &first;
      const auto undone = writes->TakeUndone(first.ticket);
      if (!undone) return &first;
      Waiting late = first;
      replies_.PopFront();
      late.reply = {.opcode = late.reply.opcode,
                    .status = static_cast<uint8_t>(undone->status),
                    .sequence = late.reply.sequence};
      late.ticket = std::max(undone->ticket, replies_.empty() ? 0 : replies_.back().ticket);
      late.undone = true;
      Add(late);
    }
    return nullptr;
  }
  void Pop() { replies_.PopFront(); }
  // The client sent a request of a waiting reply again, on another connection. The reply goes
  // there. Returns the former connection, or nullopt if no reply to the request waits.
  std::optional<uint32_t> Redirect(uint64_t session_token, uint64_t sequence, uint32_t connection) {
    for (size_t i = 0; i < replies_.size(); ++i) {
      Waiting& waiting = replies_[i];
      if (waiting.session_token == session_token && waiting.reply.sequence == sequence) {
        return std::exchange(waiting.connection, connection);
      }
    }
    return std::nullopt;
  }
  size_t size() const { return replies_.size(); }
  bool empty() const { return replies_.empty(); }

 private:
  StableQueue<Waiting> replies_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WAITING_REPLIES_H_
