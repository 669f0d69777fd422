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
  ReplyHeader Get(const RequestView& request, std::span<std::byte> value_out, const Now& now);
  ReplyHeader Stats(const RequestHeader& header, std::span<std::byte> value_out, const Now& now);

  Store* const store_;
  const StatsSource stats_;
};

// The pieces, for requests that are carried out in steps.
ReplyHeader ReplyTo(const RequestHeader& request, ReplyStatus status);
ReplyHeader ReplyOfWrite(const RequestHeader& request, const WriteOutcome& outcome);
ReplyHeader ReplyOfRead(const RequestHeader& request, const ReadOutcome& outcome);
WriteConditions ConditionsOf(const RequestHeader& request);
ItemAttributes AttributesOf(const RequestHeader& request);

// True when executing such a request twice does the same as once, so that its answer need not be
// kept.
bool IsRepeatable(Opcode opcode);

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_DISPATCHER_H_
