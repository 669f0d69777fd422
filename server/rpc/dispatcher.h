#ifndef GANNET_SERVER_RPC_DISPATCHER_H_
#define GANNET_SERVER_RPC_DISPATCHER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "common/protocol/message.h"
#include "server/rpc/now.h"
#include "server/store/store.h"

namespace gannet {

// Turns decoded requests into calls of the store and their outcomes into reply headers. Knows
// nothing of connections, sessions or verbs; the requests that need those (large values, locks) are
// only translated here and carried out by their own classes.
//
// Thread safety: as the store's; one Dispatcher a worker.
class Dispatcher {
 public:
  using StatsSource = std::function<StatsReply(const Now&)>;

  // `store` outlives the dispatcher.
  Dispatcher(Store* store, StatsSource stats) : store_(store), stats_(std::move(stats)) {}

  // Executes a request whose value, if it has one, is in the message: heartbeat, GET, eager PUT,
  // DELETE, STATS, PING. The reply's value is written to `value_out`, header.value_bytes long. A
  // GET of a longer value is kBufferTooSmall, and nothing is written. REQUIRES, for GET and STATS:
  // value_out.size() >= sizeof(StatsReply).
  ReplyHeader Execute(const RequestView& request, std::span<std::byte> value_out, const Now& now);

 private:
  ReplyHeader Put(const RequestView& request, const Now& now);
  ReplyHeader Get(const RequestView& request, std::span<std::byte> value_out, const Now& now);
  ReplyHeader Stats(const RequestHeader& header, std::span<std::byte> value_out, const Now& now);

  Store* const store_;
  const StatsSource stats_;
};

// The pieces, for requests that are carried out in steps.
inline ReplyHeader ReplyTo(const RequestHeader& request, ReplyStatus status) {
  ReplyHeader reply{};
  reply.opcode = request.opcode;
  reply.status = static_cast<uint8_t>(status);
  reply.sequence = request.sequence;
  return reply;
}

// Of heartbeats and PING: clients learn the server's clock from it.
inline ReplyHeader ReplyWithTime(const RequestHeader& request, const Now& now) {
  ReplyHeader reply = ReplyTo(request, ReplyStatus::kOk);
  reply.time_ms = now.wall_ms;
  return reply;
}

inline ReplyHeader ReplyOfWrite(const RequestHeader& request, const WriteOutcome& outcome) {
  ReplyHeader reply = ReplyTo(request, outcome.status);
  reply.version = outcome.version;
  reply.slot = outcome.slot;
  reply.lock_word = outcome.lock_word;
  return reply;
}

ReplyHeader ReplyOfRead(const RequestHeader& request, const ReadOutcome& outcome);

inline WriteConditions ConditionsOf(const RequestHeader& request) {
  WriteConditions conditions;
  conditions.only_if_absent = (request.flags & kOnlyIfAbsent) != 0;
  if (request.flags & kOnlyIfVersion) conditions.only_if_version = request.expected_version;
  if (request.flags & kUnderLock) conditions.under_lock = request.lock_word;
  return conditions;
}

// `now_ms` is the server's clock, which alone says when an item expires.
inline ItemAttributes AttributesOf(const RequestHeader& request, uint64_t now_ms) {
  return {.flags = request.user_flags,
          .expiry_ms = request.ttl_ms == 0 ? 0 : now_ms + request.ttl_ms};
}

// True when executing such a request twice does the same as once, so that its answer need not be
// kept.
inline bool IsRepeatable(Opcode opcode) {
  switch (opcode) {
    case Opcode::kHeartbeat:
    case Opcode::kGet:
    case Opcode::kStats:
    case Opcode::kPing:
    case Opcode::kListLocks:
      return true;
    case Opcode::kPut:
    case Opcode::kDelete:
    case Opcode::kLock:
    case Opcode::kUnlock:
    case Opcode::kExtendLock:
      return false;
  }
  return false;
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_DISPATCHER_H_
