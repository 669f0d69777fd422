#ifndef GANNET_SERVER_RPC_OBSERVATION_H_
#define GANNET_SERVER_RPC_OBSERVATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "common/protocol/client_report.h"
#include "common/protocol/heats.h"
#include "common/protocol/list_entries.h"
#include "common/protocol/message.h"
#include "common/protocol/storage.h"
#include "server/replica/group_standing.h"
#include "server/rpc/client_board.h"
#include "server/rpc/connection_table.h"
#include "server/rpc/now.h"
#include "server/rpc/slow_log.h"
#include "server/rpc/worker_counters.h"
#include "server/session/connection_ids.h"
#include "server/store/store.h"

namespace gannet {

// What people see of one worker: what its clients report, the list of its connections, and the
// lists that requests ask for. Owner thread only.
class Observation {
 public:
  struct Dependencies {  // outlive this
    uint32_t worker;
    Store* store;
    const ConnectionTable* connections;
    const ConnectionIds* connection_ids;
    ClientBoard* board;
    const SlowLog* slow_log;  // or null
    HeatsReply heats;
    std::function<uint64_t(bool snapshot, StorageReply*)> storage;  // as SharedByWorkers::storage
    WorkerCounters* counters;
    const Now* now;
    const GroupStanding* standing;  // null: the server is in no group
  };

  explicit Observation(const Dependencies& given) : given_(given) {}

  // Takes what a heartbeat carries. Returns false if it is no report.
  bool TakeNews(Session* session, const RequestView& heartbeat);
  // Takes the last report of a client that disconnects. Its connection may be closing.
  void TakeLastNews(Session* session, std::span<const std::byte> message);
  // Shows the connections on the board.
  void PublishClients() const;
  // Executes STORAGE, HEATS, LIST CLIENTS, SLOW LOG or MAP.
  ReplyHeader List(const RequestHeader& header, std::span<std::byte> value_out) const;

 private:
  void TakeReport(Session* session, const ClientReportView& report);
  ReplyHeader Map(const RequestHeader& header, std::span<std::byte> value_out) const;
  ClientEntry EntryOf(const ServerConnection& connection) const;

  const Dependencies given_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_OBSERVATION_H_
