#include "server/control/server_group.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "server/control/core_demand.h"
#include "server/rpc/adopt_sessions.h"

namespace gannet {

absl::Status ServerGroup::CreateMember(const Run& run) {
  run_ = run;
  const SharedByWorkers& shared = run.workers->shared();
  writes_ = shared.writes;
  changes_ = shared.changes;
  GroupContext& to = context_;
  to.self = {.node = to.group.node, .incarnation = shared.grant.incarnation};
  to.standing = &standing_;
  to.server = this;
  to.store = shared.store;
  to.disk = run.disk;
  to.device = shared.device;
  to.pd = shared.pd;
  to.listener = shared.listener;
  to.grant = shared.grant;
  to.workers = static_cast<uint32_t>(run.workers->all().size());
  to.random = shared.random;
  to.machine_ms = run.wall_ms;
  to.clock = shared.lease_now_ns;
  to.now_ms = [this] { return clock_->WallMs(); };
  to.idle = shared.idle;
  if (to.group.advertise.empty()) to.group.advertise = run.address;
  std::vector<MemberTask*> tasks;
  if (to.group.map_store != nullptr) {
    const bool simulated = static_cast<bool>(to.idle);  // so nobody waits for a core
    GANNET_ASSIGN_OR_RETURN(
        move_tasks_, MoveTasks::Create(to, writes_, simulated ? nullptr : CoresAreScarce(),
                                       [workers = run.workers] { return workers->requests(); }));
    tasks = move_tasks_->All();
  }
  GANNET_ASSIGN_OR_RETURN(member_,
                          Member::Create(to, &stream_, run.first_version, std::move(tasks)));
  return absl::OkStatus();
}

void ServerGroup::Forget(uint64_t name) {
  run_.workers->connection_ids().Retire(ConnectionOfName(name));
}

void ServerGroup::Adopt(std::vector<SessionCopy> sessions) {
  AdoptSessions(std::move(sessions), run_.workers->all());
}

void ServerGroup::BeginEpoch(uint64_t epoch) { run_.workers->connection_ids().BeginEpoch(epoch); }

}  // namespace gannet
