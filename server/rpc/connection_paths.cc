#include "server/rpc/connection_paths.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gannet {
namespace {

std::vector<bool> HaveThem(const std::vector<Rail>& rails) {
  std::vector<bool> have;
  for (const Rail& rail : rails) {
    have.push_back(rails.size() > 1 && HasAlternatePaths(rail.device.verbs));
  }
  return have;
}

}  // namespace

ConnectionPaths::ConnectionPaths(WorkerContext& context)
    : context_(context),
      has_them_(HaveThem(context.server.rails)),
      looks_(std::ranges::count(has_them_, true) > 0) {}

void ConnectionPaths::Look() {
  if (!looks_) return;
  context_.cas->LookAtPaths();
  std::vector<AlternatePaths::Connection> open;
  for (const auto& [id, connection] : context_.connections) {
    if (connection->closing || !has_them_[connection->rail]) continue;
    open.push_back(
        {.id = id, .session = connection->session->token(), .qp = connection->rdma->qp()});
  }
  const uint32_t changes = context_.server.rail_board.path_changes();
  paths_.Look(std::move(open), std::exchange(changes_, changes) != changes);
}

}  // namespace gannet
