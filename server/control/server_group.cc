#include "server/control/server_group.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "server/control/core_demand.h"
#include "server/rpc/adopt_sessions.h"

namespace gannet {

absl::Status ServerGroup::CreateMember(const Run& run) {
  ServerWorkers* const workers = run.workers;
  const SharedByWorkers& shared = workers->shared();
  Member::Options options{
      .group = options_,
      .device = run.device,
      .pd = run.pd,
      .listener = run.listener,
      .store = run.store,
      .standing = &standing_,
      .stream = &stream_,
      .disk = run.disk,
      .incarnation = shared.grant.incarnation,
      .memory_bytes = shared.grant.region_bytes,
      .workers = static_cast<uint32_t>(workers->all().size()),
      .first_version = run.first_version,
      .grant = shared.grant,
      .random = shared.random,
      .machine_ms = run.wall_ms,
      .clock = shared.lease_now_ns,
      .wake = run.wake,
      .forget =
          [workers](uint64_t name) { workers->connection_ids().Retire(ConnectionOfName(name)); },
      .adopt =
          [workers](std::vector<SessionCopy> sessions) {
            AdoptSessions(std::move(sessions), workers->all());
          },
      .publish = [run] { run.writes->Publish(run.changes->safe()); },
      .published = [run] { return run.writes->published_position(); },
      .workers_at = [workers] { return workers->map_revision(); },
      .opens = [workers](uint64_t epoch) { workers->connection_ids().BeginEpoch(epoch); },
      .follow_clock = [this](uint64_t ms) { clock_->Follow(ms); },
      .start_clock = [this](uint64_t ms) { clock_->GoOnFrom(ms); },
      .now_ms = [this] { return clock_->WallMs(); },
      .idle = shared.idle};
  if (options.group.map_store != nullptr) GANNET_RETURN_IF_ERROR(CreateMoves(run, &options));
  if (options.group.advertise.empty()) options.group.advertise = run.address;
  GANNET_ASSIGN_OR_RETURN(member_, Member::Create(std::move(options)));
  return absl::OkStatus();
}

absl::Status ServerGroup::CreateMoves(const Run& run, Member::Options* options) {
  const bool simulated = static_cast<bool>(options->idle);  // so nobody waits for a core
  const auto requests = [workers = run.workers] { return workers->requests(); };
  GANNET_ASSIGN_OR_RETURN(
      move_tasks_, MoveTasks::Create({.group = options->group,
                                      .device = run.device,
                                      .store = run.store,
                                      .writes = run.writes,
                                      .incarnation = options->incarnation,
                                      .random = options->random,
                                      .machine_ms = options->machine_ms,
                                      .clock = options->clock,
                                      .now_ms = options->now_ms,
                                      .publish = options->publish,
                                      .idle = options->idle,
                                      .cores_are_scarce = simulated ? nullptr : CoresAreScarce(),
                                      .requests = requests}));
  options->tasks = move_tasks_->All();
  return absl::OkStatus();
}

}  // namespace gannet
