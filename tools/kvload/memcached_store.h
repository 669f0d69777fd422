#ifndef GANNET_TOOLS_KVLOAD_MEMCACHED_STORE_H_
#define GANNET_TOOLS_KVLOAD_MEMCACHED_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/options.h"

namespace gannet::kvload {

// A memcached server through libmemcached. What was started between two Polls is one batch and one
// round trip: its PUTs go out as sets without a reply, its GETs behind them as one multi-get, whose
// answer Poll waits for; it acknowledges the sets too, as a connection is served in order. A set
// that the server refuses for want of memory is not reported: its key is found missing later.
//
// Unavailable, naming the address and how to start one.
absl::StatusOr<std::unique_ptr<Store>> OpenMemcached(const Options& options);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_MEMCACHED_STORE_H_
