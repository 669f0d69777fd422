#include "server/main/control/server_workers.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "glog/logging.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<ServerWorkers>> ServerWorkers::Create(
    std::unique_ptr<ServerContext> context, const WorkerOptions& each) {
  std::unique_ptr<ServerWorkers> all(new ServerWorkers(std::move(context)));
  ServerContext& server = all->context();
  for (uint32_t index = 0; index < server.workers; ++index) {
    GANNET_ASSIGN_OR_RETURN(all->workers_.emplace_back(), Worker::Create(server, each, index));
  }
  return all;
}

Worker& ServerWorkers::For(const ConnectRequest& request) const {
  if (request.session_token != 0) {
    const auto count = static_cast<uint32_t>(workers_.size());
    return *workers_[SessionTable::WorkerOf(request.session_token, count)];
  }
  return **std::min_element(workers_.begin(), workers_.end(), [](const auto& a, const auto& b) {
    return a->counters().connections.value() < b->counters().connections.value();
  });
}

void ServerWorkers::Notify(const Notice& notice) const {
  for (const auto& worker : workers_) worker->inbox().Put(notice);
}

void ServerWorkers::Wake() const {
  for (const auto& worker : workers_) worker->inbox().Wake();
}

void ServerWorkers::BeginClosing() const {
  for (const auto& worker : workers_) worker->inbox().PutClose();
}

void ServerWorkers::TellLog(BootTime now) {
  ServerLog& log = context_->log;
  log.connections.Poll(now);
  const auto different = context_->server_sets.Different();
  if (!different || !log.different_sets.Allow(now)) return;
  LOG(WARNING) << "clients have different lists of servers, " << different->first << " and "
               << different->second
               << " for example: what one of them stores the other may look for at another server, "
                  "and not find. Start all clients with the same list";
}

uint64_t ServerWorkers::requests() const {
  uint64_t requests = 0;
  for (const auto& worker : workers_) requests += worker->counters().rpcs.value();
  return requests;
}

uint64_t ServerWorkers::map_revision() const {
  uint64_t revision = UINT64_MAX;
  for (const auto& worker : workers_) revision = std::min(revision, worker->map_revision());
  return revision;
}

uint64_t ServerWorkers::index_generation() const {
  uint64_t generation = UINT64_MAX;
  for (const auto& worker : workers_) {
    generation = std::min(generation, worker->counters().index_generation.value());
  }
  return generation;
}

uint64_t ServerWorkers::announcement() const {
  uint64_t announcement = UINT64_MAX;
  for (const auto& worker : workers_) announcement = std::min(announcement, worker->announcement());
  return announcement;
}

void ServerWorkers::AddTo(StatsReply* stats) const {
  for (const auto& worker : workers_) {
    const WorkerCounters& counters = worker->counters();
    stats->rpcs += counters.rpcs.value();
    stats->heartbeats += counters.heartbeats.value();
    stats->sessions += counters.sessions.value();
    stats->connections += counters.connections.value();
    stats->locks_broken += counters.locks_broken.value();
    stats->locks_expired += counters.locks_expired.value();
    stats->session_bytes += counters.session_bytes.value();
    stats->reply_posts += counters.reply_posts.value();
    stats->receive_posts += counters.receive_posts.value();
    stats->send_completions += counters.send_completions.value();
    stats->refused_connections += counters.refused_connections.value();
    stats->refused_requests += counters.refused_requests.value();
  }
}

}  // namespace gannet
