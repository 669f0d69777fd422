#ifndef GANNET_CLIENT_SESSION_SESSION_MEMORY_H_
#define GANNET_CLIENT_SESSION_SESSION_MEMORY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/session/liveness.h"
#include "client/session/memory_domains.h"
#include "client/session/registered_pool.h"
#include "client/session/request_window.h"
#include "common/layout/bucket.h"
#include "common/protocol/index_news.h"
#include "common/protocol/limits.h"
#include "common/protocol/message.h"
#include "common/rdma/completion.h"
#include "common/rdma/device.h"
#include "common/rdma/memory.h"

namespace gannet {

// The memory into which the READs and compare-and-swaps of one operation bring their results.
struct OpBuffers {
  static constexpr uint32_t kSmallItemBytes = 1280;  // longer items take a lent buffer

  alignas(64) std::byte window[2][kWindowBytes];
  uint64_t cas_result;
  alignas(64) std::byte item[kSmallItemBytes];
};
static_assert(sizeof(OpBuffers) == 2 * kWindowBytes + 64 + OpBuffers::kSmallItemBytes);

// A device by which a session reaches its server, and where the work of its connections through it
// completes. A device has two of these if the server has several rails and it reaches more than
// one: then the connections by the others are counted only once they are there.
struct SessionDevice {
  Device device;
  bool lost = false;            // its queue is broken; one that works again is opened anew
  bool joins_by_rails = false;  // for connections by other rails than the first one's
  uint32_t domain = 0;          // its protection domain, among those of the client
  std::unique_ptr<CompletionQueue> completions;
};

// Registered memory of a session, and its first byte.
struct SessionBuffers {
  std::byte* data = nullptr;
  std::unique_ptr<MemoryRange> range;
};

// Everything of a session that outlives its connections: its devices' completion queues, and
// registered memory, which all devices of the client may use. The server may access only the
// buffers that a request names: it may read `values` and write `replies`.
//
// Members are in the order of dependency. One owner thread.
struct SessionMemory {
  static constexpr uint32_t kHeartbeatReceives = Liveness::kHeartbeatsMax;
  static constexpr uint32_t kConnectionsMax = 8;
  // The first connection receives all replies, the others only those to heartbeats. Those by other
  // rails than the first one's receive replies, too, into memory of their own (RailReceives).
  static constexpr uint32_t kFirstReceives = RequestWindow::kCreditsMax + kHeartbeatReceives;
  static constexpr uint32_t kReceives = kFirstReceives + (kConnectionsMax - 1) * kHeartbeatReceives;
  // The number of the first receive buffer of a connection. Its last one is before the next
  // connection's first.
  static constexpr uint32_t FirstReceive(uint32_t connection) {
    return connection == 0 ? 0 : kFirstReceives + (connection - 1) * kHeartbeatReceives;
  }

  // `ops`: operations that have buffers. ResourceExhausted: too little memory, or too low a limit
  // of locked memory.
  static absl::StatusOr<std::unique_ptr<SessionMemory>> Create(
      std::shared_ptr<MemoryDomains> domains, uint32_t ops);

  // Returns the device; nullptr: it was not opened for this.
  SessionDevice* Find(const ibv_context* verbs, bool joins_by_rails) const;
  // Opens it. `completions`: entries of its completion queue. ResourceExhausted: as Create, or the
  // device's limits.
  absl::StatusOr<SessionDevice*> Open(const Device& device, bool joins_by_rails,
                                      uint32_t completions);
  // The first connection uses this one from now on. REQUIRES: there is no other connection.
  void BeginWith(const SessionDevice& device) {
    first = &device;
    first_completions = device.completions.get();
  }

  // A READ may bring its bytes into so many pieces of memory (queue pairs are made for it). More
  // would make every entry of a send queue longer.
  static constexpr uint32_t kPiecesMax = 8;
  uint32_t pieces_max() const { return pieces; }

  OpBuffers* op(uint32_t i) const { return reinterpret_cast<OpBuffers*>(op_buffers.data) + i; }
  std::byte* request(uint32_t i) const { return requests.data + uint64_t{i} * kMessageBytesMax; }
  // Returns kFirstReceives receive buffers for the connection of this index. ResourceExhausted: as
  // Create.
  absl::StatusOr<const SessionBuffers*> RailReceives(uint32_t connection);
  // The buffer for the message of plain heartbeats. It lies behind the requests' buffers.
  std::byte* heartbeat() const { return request(RequestWindow::kCreditsMax); }
  // The buffer for a heartbeat that carries a report or touches. It lies behind heartbeat().
  std::byte* news_message() const { return request(RequestWindow::kCreditsMax + 1); }
  // From now on heartbeats tell this hash of the client's list of servers.
  void SetServerSet(uint64_t hash) const {
    std::memcpy(heartbeat() + offsetof(RequestHeader, heartbeat.server_set), &hash, sizeof(hash));
  }
  // From now on heartbeats tell that the client knows this of the index.
  void SetIndexKnown(IndexKnown known) const {
    std::memcpy(heartbeat() + offsetof(RequestHeader, heartbeat.index_acknowledged), &known,
                sizeof(known));
  }
  // Returns the buffers that a request lent to the server.
  void ReturnLent(const RequestWindow::Entry& entry) {
    values.Return(entry.value);
    replies.Return(entry.reply);
  }

  std::shared_ptr<MemoryDomains> domains;
  std::vector<std::unique_ptr<SessionDevice>> devices;  // those that were used
  const SessionDevice* first = nullptr;                 // of the first connection
  CompletionQueue* first_completions = nullptr;         // the same device's
  uint32_t pieces = kPiecesMax;                         // what all devices take
  SessionBuffers op_buffers;
  SessionBuffers requests;
  SessionBuffers receives;
  std::array<SessionBuffers, kConnectionsMax> rail_receives;  // made when they are needed
  RegisteredPool items{nullptr, RemoteAccess::kNone};         // long items are READ into these
  RegisteredPool values{nullptr, RemoteAccess::kRead};        // for long PUTs
  RegisteredPool replies{nullptr, RemoteAccess::kReadWrite};  // for GETs by RPC
  uint32_t reply_room = 0;  // about as long as values were that came by RPC
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_MEMORY_H_
