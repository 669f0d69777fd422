#ifndef GANNET_CLIENT_SESSION_SESSION_MEMORY_H_
#define GANNET_CLIENT_SESSION_SESSION_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

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

// Everything of a session that is bound to a device and outlives its connections: the device's
// protection domain, which sessions of one client share, completion queue, registered memory. The
// server may access only the buffers that a request names: it may read `values` and write
// `replies`.
//
// Members are in the order of dependency. One owner thread.
struct SessionMemory {
  static constexpr uint32_t kHeartbeatReceives = Liveness::kHeartbeatsMax;
  static constexpr uint32_t kConnectionsMax = 8;
  // The first connection receives all replies, the others only those to heartbeats.
  static constexpr uint32_t kFirstReceives = RequestWindow::kCreditsMax + kHeartbeatReceives;
  static constexpr uint32_t kReceives = kFirstReceives + (kConnectionsMax - 1) * kHeartbeatReceives;
  // The number of the first receive buffer of a connection. Its last one is before the next
  // connection's first.
  static constexpr uint32_t FirstReceive(uint32_t connection) {
    return connection == 0 ? 0 : kFirstReceives + (connection - 1) * kHeartbeatReceives;
  }

  // `ops`: operations that have buffers. `completions`: entries of the completion queue.
  // ResourceExhausted: too little memory, or too low a limit of locked memory.
  static absl::StatusOr<std::unique_ptr<SessionMemory>> Create(
      const Device& device, std::shared_ptr<MemoryDomains> domains, uint32_t ops,
      uint32_t completions);

  // A READ may bring its bytes into so many pieces of memory (queue pairs are made for it). More
  // would make every entry of a send queue longer.
  static constexpr uint32_t kPiecesMax = 8;
  uint32_t pieces_max() const {
    return std::max(1u, std::min({device.caps.max_sge_rd, device.caps.max_sge, kPiecesMax}));
  }

  OpBuffers* op(uint32_t i) const { return reinterpret_cast<OpBuffers*>(op_buffers.data()) + i; }
  std::byte* request(uint32_t i) const { return requests.data() + uint64_t{i} * kMessageBytesMax; }
  std::byte* receive(uint32_t i) const { return receives.data() + uint64_t{i} * kMessageBytesMax; }
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

  Device device;
  std::shared_ptr<MemoryDomains> domains;
  uint32_t domain = 0;  // the device's
  std::unique_ptr<CompletionQueue> completions;
  RegisteredBuffer op_buffers;
  RegisteredBuffer requests;
  RegisteredBuffer receives;
  RegisteredPool items{nullptr, RemoteAccess::kNone};         // long items are READ into these
  RegisteredPool values{nullptr, RemoteAccess::kRead};        // for long PUTs
  RegisteredPool replies{nullptr, RemoteAccess::kReadWrite};  // for GETs by RPC
  uint32_t reply_room = 0;  // about as long as values were that came by RPC
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_MEMORY_H_
