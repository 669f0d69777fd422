#ifndef GANNET_SERVER_RPC_OBSERVATION_H_
#define GANNET_SERVER_RPC_OBSERVATION_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/protocol/client_report.h"
#include "common/protocol/list_entries.h"
#include "common/protocol/message.h"
#include "server/rpc/lock_words.h"
#include "server/rpc/worker_context.h"

namespace gannet {

// What people see of one worker: what its clients report, the list of its connections, and the
// lists that requests ask for. Owner thread only.
class Observation {
 public:
  // Both outlive this.
  Observation(WorkerContext& context, const LockWords& lock_words)
      : context_(context), lock_words_(lock_words) {}

  // Takes what a heartbeat carries. Returns false if it is no report.
  bool TakeNews(Session* session, const RequestView& heartbeat);
  // Takes the last report of a client that disconnects. Its connection may be closing.
  void TakeLastNews(Session* session, std::span<const std::byte> message);
  // A heartbeat tells the hash of its client's list of servers; 0: it does not know.
  void NoteServerSet(const ServerConnection& connection, uint64_t server_set);
  // Shows the connections on the board.
  void PublishClients() const;
  // Executes STATS, STORAGE, HEATS, ITEM LEASES, RAILS, LIST CLIENTS, LIST LOCKS, SLOW LOG or MAP
  // for the connection, whose rail's keys it is told. Writes the reply's value to the first
  // value_bytes (of the reply) of `value_out`. REQUIRES: that has room for a StatsReply.
  ReplyHeader List(const ServerConnection& connection, const RequestHeader& header,
                   std::span<std::byte> value_out) const;

 private:
  void TakeReport(Session* session, const ClientReportView& report);
  ReplyHeader Rails(const ServerConnection& connection, const RequestHeader& header,
                    std::span<std::byte> value_out) const;
  ReplyHeader Map(const RequestHeader& header, std::span<std::byte> value_out) const;
  ClientEntry EntryOf(const ServerConnection& connection) const;

  WorkerContext& context_;
  const LockWords& lock_words_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_OBSERVATION_H_
