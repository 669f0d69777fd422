#ifndef GANNET_SERVER_RPC_WAITING_REPLIES_H_
#define GANNET_SERVER_RPC_WAITING_REPLIES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/protocol/message.h"
#include "server/writes/stable_queue.h"
#include "server/writes/writes.h"

namespace gannet {

// The replies of one worker that wait until the writes that they tell of are published, in order.
// A session has at most as many as it has credits. Beside them may be some that nobody waits for
// any more, because the session lost a connection: at most kGivenUpPerCredit times as many. Owner
// thread only.
class WaitingReplies {
 public:
  static constexpr size_t kGivenUpPerCredit = 3;

  // What a reply to a write has.
  struct Waiting {
    uint64_t ticket;
    uint64_t session_token;
    uint64_t sequence;  // 0: it was given up
    ReplyHeader::AnswerWords words;
    uint32_t connection;
    uint8_t opcode;
    uint8_t status;
    bool update;  // of an update, which succeeded, and is never undone
    bool undone;

    ReplyHeader reply() const {
      ReplyHeader reply{};
      reply.opcode = opcode;
      reply.status = status;
      reply.sequence = sequence;
      std::ranges::copy(words, reply.words.begin());
      return reply;
    }
  };
  struct Reply {
    uint64_t ticket = 0;
    uint64_t session_token = 0;
    uint32_t connection = 0;
    ReplyHeader reply{};
  };

  void Add(const Reply& its) {
    Waiting waiting{.ticket = its.ticket,
                    .session_token = its.session_token,
                    .sequence = its.reply.sequence,
                    .words = {},
                    .connection = its.connection,
                    .opcode = its.reply.opcode,
                    .status = its.reply.status,
                    .update = false,
                    .undone = false};
    std::copy_n(its.reply.words.begin(), waiting.words.size(), waiting.words.begin());
    replies_.PushBack() = waiting;
  }
  // Adds the reply to an update, which succeeded.
  void AddUpdate(uint64_t session_token, uint32_t connection, uint64_t sequence,
                 const Writes::UpdateDecided& decided) {
    replies_.PushBack() = {.ticket = decided.ticket,
                           .session_token = session_token,
                           .sequence = sequence,
                           .words = {decided.version, decided.slot, 0},
                           .connection = connection,
                           .opcode = static_cast<uint8_t>(Opcode::kPut),
                           .status = static_cast<uint8_t>(ReplyStatus::kOk),
                           .update = true,
                           .undone = false};
  }
  // Returns replies with which the queue begins and which lie side by side: none only if it is
  // empty. Those of them that are of updates may be sent if their tickets are published. Pop them.
  std::span<const Waiting> FirstRun() const { return replies_.FirstRun(); }
  // Returns the next reply that may be sent if all tickets up to `published` are published, or
  // nullptr. Pop it then. The reply to a write that was undone says so, and waits until that is on
  // disk, too.
  const Waiting* First(Writes* writes, uint64_t published) {
    while (!replies_.empty() && replies_.front().ticket <= published) {
      const Waiting& first = replies_.front();
      if (first.undone || first.update) return &first;
      const auto undone = writes->TakeUndone(first.ticket);
      if (!undone) return &first;
      Waiting late = first;
      replies_.PopFront();
      late.words = {};
      late.status = static_cast<uint8_t>(undone->status);
      late.ticket = std::max(undone->ticket, replies_.empty() ? 0 : replies_.back().ticket);
      late.undone = true;
      replies_.PushBack() = late;
    }
    return nullptr;
  }
  // None of the writes that wait may be called made any more: their outcome is not known.
  void DoubtAll() {
    for (size_t i = 0; i < replies_.size(); ++i) {
      Waiting& waiting = replies_[i];
      if (waiting.status != static_cast<uint8_t>(ReplyStatus::kOk)) continue;
      waiting.status = static_cast<uint8_t>(ReplyStatus::kOutcomeUnknown);
      waiting.words = {};
      waiting.update = false;
    }
  }
  void Pop(size_t count = 1) { replies_.PopFront(count); }
  // The client sent a request of a waiting reply again, on another connection. The reply goes
  // there. Returns the former connection, or nullopt if no reply to the request waits.
  std::optional<uint32_t> Redirect(uint64_t session_token, uint64_t sequence, uint32_t connection) {
    Waiting* const waiting = Find(session_token, sequence);
    if (waiting == nullptr) return std::nullopt;
    return std::exchange(waiting->connection, connection);
  }
  enum class GivingUp : uint8_t {
    kDone,
    kNotHeld,  // not all of them wait here, or somebody may still hear of one
    kTooMany,  // the session gave up too many that still wait
  };
  // Gives up the replies to these requests of a session, if all of their connections are gone:
  // nobody is to hear of them, or to record them. They keep their places, as their writes may be
  // undone. Does all of it or nothing. `is_open(connection)` says whether a connection is there.
  template <class IsOpen>
  GivingUp GiveUp(uint64_t session_token, std::span<const uint64_t> sequences, uint16_t credits,
                  IsOpen is_open) {
    std::vector<Waiting*> found;
    size_t given_up = sequences.size();
    for (size_t i = 0; i < replies_.size(); ++i) {
      Waiting& waiting = replies_[i];
      if (waiting.session_token != session_token) continue;
      given_up += waiting.sequence == 0;
      const bool is_one = std::ranges::find(sequences, waiting.sequence) != sequences.end();
      if (is_one && !is_open(waiting.connection)) found.push_back(&waiting);
    }
    if (found.size() < sequences.size()) return GivingUp::kNotHeld;
    if (given_up > kGivenUpPerCredit * credits) return GivingUp::kTooMany;
    for (Waiting* const waiting : found) {
      waiting->sequence = 0;
      waiting->update = false;  // which would be sent without a look at the number
    }
    return GivingUp::kDone;
  }
  size_t size() const { return replies_.size(); }
  bool empty() const { return replies_.empty(); }

 private:
  Waiting* Find(uint64_t session_token, uint64_t sequence) {
    for (size_t i = 0; i < replies_.size(); ++i) {
      Waiting& waiting = replies_[i];
      if (waiting.session_token == session_token && waiting.sequence == sequence) return &waiting;
    }
    return nullptr;
  }

  StableQueue<Waiting> replies_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WAITING_REPLIES_H_
