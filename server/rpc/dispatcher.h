#ifndef GANNET_SERVER_RPC_DISPATCHER_H_
#define GANNET_SERVER_RPC_DISPATCHER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/server_time.h"
#include "common/protocol/message.h"
#include "server/memory/store/store.h"
#include "server/rpc/now.h"
#include "server/writes/writes.h"

namespace gannet {

// Turns decoded requests into reads and writes, and their outcomes into reply headers. It knows
// nothing of connections, sessions or verbs. Requests that need those (large values, locks) are
// only translated here; LongValues and LockRequests carry them out.
//
// Thread safety: like the store's. Each worker has its own Dispatcher.
class Dispatcher {
 public:
  // Store and writes outlive the dispatcher.
  Dispatcher(Store* store, Writes* writes) : store_(store), writes_(writes) {}

  // Executes a heartbeat, GET or PING. Writes the reply's value to the first value_bytes (of the
  // reply) of `value_out`. Returns kBufferTooSmall and writes nothing if a GET's value does not
  // fit.
  ReplyHeader Read(const RequestView& request, std::span<std::byte> value_out, const Now& now);

  struct Written {
    ReplyHeader reply;
    uint64_t ticket = 0;  // when the reply may be given (Writes::Decided)
    // Nothing was done, and `reply` is none: the key's value is on the disk, and must be brought.
    bool needs_value = false;
  };
  // Executes an eager PUT (its value is in the message), DELETE, APPEND, PREPEND, INCREMENT, TOUCH
  // or a step of a FLUSH. `origin` goes into the record of a change.
  Written Write(const RequestView& request, const Now& now, const ChangeOrigin* origin);

 private:
  Writes::Decided Decide(const RequestView& request, const Now& now, const ChangeOrigin* origin);
  Written Flush(const RequestHeader& header, const Now& now);
  ReplyHeader Get(const RequestView& request, std::span<std::byte> value_out, const Now& now);

  Store* const store_;
  Writes* const writes_;
};

// The parts of Read and Write, for requests that take several steps.
inline ReplyHeader ReplyTo(const RequestHeader& request, ReplyStatus status) {
  ReplyHeader reply{};
  reply.opcode = request.opcode;
  reply.status = static_cast<uint8_t>(status);
  reply.sequence = request.sequence;
  return reply;
}

// The reply to heartbeats and PING. Clients learn the server's clock from it, so `time` must
// have been read after the request came.
inline ReplyHeader ReplyWithTime(const RequestHeader& request, ServerTime time) {
  ReplyHeader reply = ReplyTo(request, ReplyStatus::kOk);
  reply.clock.time_ms = time.ms();
  return reply;
}

inline ReplyHeader ReplyOfWrite(const RequestHeader& request, const WriteOutcome& outcome) {
  ReplyHeader reply = ReplyTo(request, outcome.status);
  if (request.opcode == static_cast<uint8_t>(Opcode::kIncrement)) {
    const bool done = outcome.status == ReplyStatus::kOk;
    reply.increment = {
        .version = outcome.version, .slot = outcome.slot, .number = done ? outcome.number : 0};
  } else {
    reply.write = {
        .version = outcome.version, .slot = outcome.slot, .lock_word = outcome.lock_word};
  }
  if (outcome.wait_ms != 0) [[unlikely]]
    reply.words[kPutOffMsWord] = outcome.wait_ms;
  return reply;
}

ReplyHeader ReplyOfRead(const RequestHeader& request, const ReadOutcome& outcome);

inline WriteConditions ConditionsOf(const RequestHeader& request, const ChangeOrigin* origin) {
  WriteConditions conditions;
  conditions.origin = origin;
  conditions.only_if_absent = (request.flags & kOnlyIfAbsent) != 0;
  conditions.only_if_present = (request.flags & kOnlyIfPresent) != 0;
  if (request.flags & kOnlyIfVersion) conditions.only_if_version = request.write.expected_version;
  if (request.flags & kUnderLock) conditions.under_lock = request.write.lock_word;
  return conditions;
}

// Only the store's clock decides when an item expires. `now` may be older than the request, so
// the clock is read again: an item lives at least as long as its client asked for.
inline ItemAttributes AttributesOf(const RequestHeader& request, const Store& store,
                                   ServerTime now) {
  const uint64_t ttl_ms = request.write.ttl_ms;
  return {.flags = request.write.user_flags,
          .expiry = ttl_ms == 0 ? Expiry() : Expiry::At(store.Now(now) + ttl_ms)};
}

// Returns true if such a request is idempotent, so that its answer need not be kept.
inline bool IsRepeatable(Opcode opcode) {
  switch (KindOf(opcode)) {
    case RequestKind::kHeartbeat:
    case RequestKind::kGet:
    case RequestKind::kList:
    case RequestKind::kStorage:
    case RequestKind::kBare:
      return true;
    case RequestKind::kWrite:
    case RequestKind::kLock:
    case RequestKind::kFlush:
    case RequestKind::kUnknown:
      return false;
  }
  return false;
}

// Returns true if a session that may only read may send it.
inline bool ChangesNothing(const RequestHeader& request) {
  const auto opcode = static_cast<Opcode>(request.opcode);
  return opcode == Opcode::kStorage ? request.storage.ask == 0 : IsRepeatable(opcode);
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_DISPATCHER_H_
