#ifndef GANNET_CLIENT_SESSION_CLIENT_CONNECTION_H_
#define GANNET_CLIENT_SESSION_CLIENT_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/session/in_flight_work.h"
#include "client/session/kept_reads.h"
#include "client/session/liveness.h"
#include "client/session/session_memory.h"
#include "common/protocol/connect.h"
#include "common/rdma/address.h"
#include "common/rdma/connector.h"

namespace gannet {

// The kinds of a session's work-request ids (WrId::kind). WrId::slot is the position in
// InFlightWork for kSend, the number of the receive buffer for kReceive, and 0 for kDrain.
// WrId::owner is the connection's id. It is new for every connection, so late completions of an
// earlier connection can be told apart.
enum class ConnectionWork : uint8_t { kSend = 1, kReceive = 2, kDrain = 3 };

// One connection of a session: a queue pair, and what is in flight on it.
struct ClientConnection {
  // What it is to the session. rdma() knows how far its queue pair is.
  enum class Phase : uint8_t {
    kConnecting,
    kReady,  // its grant was accepted
    kOver,   // it could not join the session, or the session ended it
  };

  Phase phase = Phase::kConnecting;
  uint32_t index = 0;    // among the session's connections
  uint32_t id = 0;       // WrId::owner of its work-request ids
  uint32_t told_of = 0;  // of work.posted(), in reports to the server
  // Its device, the rkey of the server's region, and the lkeys of the operations' own buffers and
  // of messages.
  const SessionDevice* device = nullptr;
  uint32_t domain = 0;
  uint32_t region_rkey = 0;
  uint32_t op_lkey = 0;
  uint32_t message_lkey = 0;
  const std::byte* receives = nullptr;  // the buffer of the receive of slot 0
  uint32_t rail = 0;                    // among the server's
  SocketAddress to;
  int64_t asked_ns = 0;  // when the server was asked for the grant
  int64_t over_ns = 0;   // when it was given up alone
  InFlightWork work{1};
  KeptReads kept_reads;      // of `work`, if the session outlives this connection
  Liveness liveness;         // the server watches each connection by itself
  ConnectRequest request{};  // that its grant answers
  std::unique_ptr<Connector> connector;

  bool ready() const { return phase == Phase::kReady; }
  Connection& rdma() const { return *connector->connection(); }
  ibv_qp* qp() const { return rdma().qp(); }
  unsigned send_flags() const { return rdma().send_flags(); }
  uint32_t inline_bytes() const { return rdma().limits().inline_bytes; }
  const std::byte* receive(uint32_t slot) const {
    return receives + uint64_t{slot} * kMessageBytesMax;
  }
  // Returns the work-request id for a position of `work`.
  uint64_t SendId(uint32_t position) const {
    return WrId{static_cast<uint8_t>(ConnectionWork::kSend), id, position}.Pack();
  }
  // The server's grant was accepted: work may be posted.
  void Open(const Grant& grant) {
    region_rkey = grant.region_rkey;
    rdma().Open();
    phase = Phase::kReady;
  }
  // Begins to drain it.
  void BeginDrain() {
    phase = Phase::kOver;
    rdma().BeginDrain(WrId{static_cast<uint8_t>(ConnectionWork::kDrain), id, 0}.Pack());
  }
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_CLIENT_CONNECTION_H_
