#include "tools/kvload/gannet_backend.h"

#include "common/base/status_macros.h"

namespace gannet::kvload {

absl::StatusOr<std::unique_ptr<GannetBackend>> GannetBackend::Connect(const Options& options) {
  gannet::Options client;
  client.device = options.device;
  client.deadline = options.deadline;
  client.depth = options.depth;
  client.location_cache_bytes = LocationCacheBytesOfThread(options);
  GANNET_ASSIGN_OR_RETURN(auto connected, AsyncClient::Connect(options.servers, client));
  return std::unique_ptr<GannetBackend>(new GannetBackend(std::move(connected)));
}

}  // namespace gannet::kvload
