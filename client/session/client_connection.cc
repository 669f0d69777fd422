#include "client/session/client_connection.h"

#include <array>

namespace gannet {

bool ClientConnection::PostReceives(const SessionMemory& memory) {
  std::array<ibv_recv_wr, SessionMemory::kFirstReceives> requests;
  std::array<ibv_sge, SessionMemory::kFirstReceives> sges;
  const uint32_t n = static_cast<uint32_t>(used_receives.size());
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t receive = used_receives[i];
    sges[i] = {reinterpret_cast<uint64_t>(memory.receive(receive)), kMessageBytesMax,
               memory.receives.lkey()};
    const WrId wr_id{static_cast<uint8_t>(ConnectionWork::kReceive), id, receive};
    requests[i] = {wr_id.Pack(), i + 1 < n ? &requests[i + 1] : nullptr, &sges[i], 1};
  }
  used_receives.clear();
  return n == 0 || PostReceive(qp(), requests.data()) == PostResult::kPosted;
}

void ClientConnection::BeginDrain() {
  if (connector->connection() == nullptr) {
    phase = Phase::kDrained;
    return;
  }
  const WrId wr_id{static_cast<uint8_t>(ConnectionWork::kDrain), id, 0};
  drain_completes = connector->connection()->BeginClose(wr_id.Pack());
  phase = Phase::kDraining;
}

}  // namespace gannet
