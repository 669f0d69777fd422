#ifndef GANNET_CLIENT_SESSION_LINK_H_
#define GANNET_CLIENT_SESSION_LINK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "client/session/in_flight_work.h"
#include "client/session/liveness.h"
#include "common/rdma/connector.h"

namespace gannet {

// Work-request ids of a session: WrId::kind; the slot is a position of InFlightWork, the number of
// a receive, or nothing. WrId::owner is the link's, which is new with every connection, so that
// late completions of earlier ones are told apart.
enum class LinkWork : uint8_t { kSend = 1, kReceive = 2, kDrain = 3 };

// One queue pair of a session.
struct Link {
  enum class Phase : uint8_t { kConnecting, kReady, kFailed, kDraining, kDrained };

  Phase phase = Phase::kConnecting;
  bool drain_completes = false;  // while kDraining: a completion says that all are flushed
  uint32_t index = 0;            // among the session's queue pairs
  uint32_t owner = 0;            // of its work-request ids
  uint32_t reserved = 0;         // entries of the completion queue
  InFlightWork work{1};
  Liveness liveness;                    // the server watches each queue pair by itself
  std::vector<uint32_t> used_receives;  // numbers of receive buffers, to be posted again
  std::unique_ptr<Connector> connector;

  ibv_qp* qp() const { return connector->connection()->qp(); }
  unsigned send_flags() const { return connector->connection()->send_flags(); }
  // The work-request id of a position of `work`.
  uint64_t SendId(uint32_t position) const {
    return WrId{static_cast<uint8_t>(LinkWork::kSend), owner, position}.Pack();
  }
  uint32_t inline_bytes() const { return connector->connection()->limits().inline_bytes; }
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_LINK_H_
