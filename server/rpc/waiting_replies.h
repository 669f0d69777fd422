#ifndef GANNET_SERVER_RPC_WAITING_REPLIES_H_
#define GANNET_SERVER_RPC_WAITING_REPLIES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "common/protocol/message.h"
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

  void Add(const Waiting& waiting) {
    replies_.push_back(waiting);
    grew_ = true;
  }
  // Returns the next reply that may be sent. The reply to a write that was undone says so, and
  // waits until that is on disk, too.
  std::optional<Waiting> Take(Writes* writes) {
    while (!replies_.empty() && replies_.front().ticket <= writes->published()) {
      Waiting first = replies_.front();
      replies_.pop_front();
      if (first.undone) return first;
      const auto undone = writes->TakeUndone(first.ticket);
      if (!undone) return first;
      first.reply = {.opcode = first.reply.opcode,
                     .status = static_cast<uint8_t>(undone->status),
                     .sequence = first.reply.sequence};
      first.ticket = std::max(undone->ticket, replies_.empty() ? 0 : replies_.back().ticket);
      first.undone = true;
      Add(first);
    }
    return std::nullopt;
  }
  // The client sent a request of a waiting reply again, on another connection. The reply goes
  // there. Returns the former connection, or nullopt if no reply to the request waits.
  std::optional<uint32_t> Redirect(uint64_t session_token, uint64_t sequence, uint32_t connection) {
    const auto it = std::ranges::find_if(replies_, [&](const Waiting& waiting) {
      return waiting.session_token == session_token && waiting.reply.sequence == sequence;
    });
    if (it == replies_.end()) return std::nullopt;
    return std::exchange(it->connection, connection);
  }
  // Returns whether replies were added since the last call.
  bool TakeGrew() { return std::exchange(grew_, false); }
  size_t size() const { return replies_.size(); }
  bool empty() const { return replies_.empty(); }

 private:
  std::deque<Waiting> replies_;
  bool grew_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WAITING_REPLIES_H_
