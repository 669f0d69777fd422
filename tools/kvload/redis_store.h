#ifndef GANNET_TOOLS_KVLOAD_REDIS_STORE_H_
#define GANNET_TOOLS_KVLOAD_REDIS_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/options.h"

namespace gannet::kvload {

// A Redis server through hiredis. Operations are pipelined: what was started between two Polls goes
// out with one write a connection, each is answered by itself, and the answers are taken as they
// come. Options::connections a thread.
//
// Unavailable, naming the address and how to start one.
absl::StatusOr<std::unique_ptr<Store>> OpenRedis(const Options& options);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_REDIS_STORE_H_
