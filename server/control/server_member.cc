// Server: its place in a group.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "server/control/core_demand.h"
#include "server/control/server.h"
#include "server/rpc/adopt_sessions.h"

namespace gannet {

uint64_t Server::ClientRequests() const {
  uint64_t requests = 0;
  for (const auto& worker : workers_) requests += worker->counters().rpcs.value();
  return requests;
}

absl::Status Server::CreateMember() {
  Member::Options options{
      .group = *options_.group,
      .device = options_.device,
      .pd = pd_.get(),
      .listener = listener_.get(),
      .store = store_.get(),
      .standing = &*standing_,
      .stream = &group_stream_,
      .disk = disk_->member(),
      .incarnation = incarnation_,
      .memory_bytes = region_->bytes().size(),
      .workers = options_.workers,
      .first_version = options_.first_version,
      .grant = shared_.grant,
      .random = options_.random,
      .machine_ms = options_.wall_ms,
      .clock = options_.lease_now_ns,
      .wake = [wake_up = sync_wanted_.get()] { wake_up->Ask(); },
      .forget = [this](uint64_t name) { connection_ids_.Retire(ConnectionOfName(name)); },
      .adopt =
          [this](std::vector<SessionCopy> sessions) {
            AdoptSessions(std::move(sessions), workers_);
          },
      .publish = [this] { writes_->Publish(changes_.safe()); },
      .published = [this] { return writes_->published_position(); },
      .workers_at =
          [this] {
            uint64_t revision = UINT64_MAX;
            for (const auto& worker : workers_) {
              revision = std::min(revision, worker->map_revision());
            }
            return revision;
          },
      .opens = [this](uint64_t epoch) { connection_ids_.BeginEpoch(epoch); },
      .follow_clock = [this](uint64_t ms) { clock_->Follow(ms); },
      .start_clock = [this](uint64_t ms) { clock_->GoOnFrom(ms); },
      .now_ms = [this] { return clock_->WallMs(); },
      .idle = options_.idle};
  if (options.group.map_store != nullptr) {
    const bool simulated = static_cast<bool>(options.idle);  // so nobody waits for a core
    GANNET_ASSIGN_OR_RETURN(
        move_tasks_, MoveTasks::Create({.group = options.group,
                                        .device = options.device,
                                        .store = store_.get(),
                                        .writes = writes_.get(),
                                        .incarnation = incarnation_,
                                        .random = options.random,
                                        .machine_ms = options.machine_ms,
                                        .clock = options.clock,
                                        .now_ms = options.now_ms,
                                        .publish = options.publish,
                                        .idle = options.idle,
                                        .cores_are_scarce = simulated ? nullptr : CoresAreScarce(),
                                        .requests = [this] { return ClientRequests(); }}));
    options.tasks = move_tasks_->All();
  }
  if (options.group.advertise.empty()) options.group.advertise = address().ToString();
  GANNET_ASSIGN_OR_RETURN(member_, Member::Create(std::move(options)));
  return absl::OkStatus();
}

}  // namespace gannet
