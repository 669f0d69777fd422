#include "server/main/control/server_group.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "server/rpc/adopt_sessions.h"

namespace gannet {

absl::Status ServerGroup::CreateMember(const ServerWorkers* workers, const std::string& address,
                                       MemberDisk* disk, uint64_t first_version, WakeUp* wake) {
  workers_ = workers;
  wake_ = wake;
  ServerContext& shared = server();
  GroupContext& to = context_;
  to.self = {.node = to.group.node, .incarnation = shared.grant.incarnation};
  to.standing = &standing_;
  to.server = this;
  to.store = &shared.store;
  to.disk = disk;
  for (const Rail& rail : shared.rails) {
    to.rails.push_back({.address = rail.address.ToString(), .device = rail.device, .pd = rail.pd});
  }
  to.rails.front().address = to.group.advertise.empty() ? address : to.group.advertise;
  to.listener = &shared.listener;
  to.grant = shared.grant;
  to.workers = shared.workers;
  to.random = &shared.random;
  to.idle = shared.idle;
  if (to.group.map_store != nullptr) {
    const bool simulated = to.idle != nullptr;  // so nobody waits for a core
    if (!simulated) cores_.emplace(CoresOfThread(), RunnableThreadsOfKernel());
    GANNET_ASSIGN_OR_RETURN(move_tasks_, MoveTasks::Create(to, &shared.writes));
  }
  GANNET_ASSIGN_OR_RETURN(member_, Member::Create(to, &stream_, first_version, move_tasks_.get()));
  return absl::OkStatus();
}

void ServerGroup::Forget(uint64_t name) { server().connection_ids.Retire(ConnectionOfName(name)); }

void ServerGroup::Adopt(std::vector<SessionCopy> sessions) {
  AdoptSessions(std::move(sessions), workers_->all());
}

void ServerGroup::BeginEpoch(uint64_t epoch) { server().connection_ids.BeginEpoch(epoch); }

}  // namespace gannet
