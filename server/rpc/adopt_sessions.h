#ifndef GANNET_SERVER_RPC_ADOPT_SESSIONS_H_
#define GANNET_SERVER_RPC_ADOPT_SESSIONS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/rpc/worker.h"
#include "server/sessions/session/session_table.h"

namespace gannet {

// Gives the sessions of a former primary to the workers that will serve them. Their grace periods
// begin now. Call it once, after the last record of the former primary is applied, and before the
// first client is taken. From any thread.
inline void AdoptSessions(std::vector<SessionCopy> copies,
                          const std::vector<std::unique_ptr<Worker>>& workers) {
  const auto count = static_cast<uint32_t>(workers.size());
  std::vector<std::vector<SessionCopy>> of_workers(count);
  for (SessionCopy& copy : copies) {
    of_workers[SessionTable::WorkerOf(copy.token, count)].push_back(std::move(copy));
  }
  for (uint32_t i = 0; i < count; ++i) workers[i]->inbox().PutSessions(std::move(of_workers[i]));
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_ADOPT_SESSIONS_H_
