#ifndef GANNET_SERVER_RPC_WORK_KIND_H_
#define GANNET_SERVER_RPC_WORK_KIND_H_

#include <cstdint>

#include "common/rdma/queue_pair.h"

namespace gannet {

// WrId::kind of everything that a worker posts. WrId::owner is the connection's id. WrId::slot is
// the position in the connection's send queue for sends, and the number of the buffer for receives.
enum class WorkKind : uint8_t { kReceive = 1, kSend = 2, kDrain = 3 };

inline uint64_t PackWorkId(WorkKind kind, uint32_t owner, uint32_t slot) {
  return WrId{static_cast<uint8_t>(kind), owner, slot}.Pack();
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WORK_KIND_H_
