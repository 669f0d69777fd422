#ifndef GANNET_TOOLS_KVLOAD_REDIS_STORE_H_
#define GANNET_TOOLS_KVLOAD_REDIS_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/options.h"

namespace gannet::kvload {

// Opens a Redis server, through hiredis. A thread uses LoadOptions::connections connections, and
// pipelines its operations. Those that start between two Polls go out with one write per
// connection. Each has its own answer, and Poll returns the answers as they arrive.
//
// Unavailable: the server cannot be reached. The text has its address and says how to start one.
absl::StatusOr<std::unique_ptr<StoreUnderLoad>> OpenRedis(const LoadOptions& options);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_REDIS_STORE_H_
