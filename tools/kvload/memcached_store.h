#ifndef GANNET_TOOLS_KVLOAD_MEMCACHED_STORE_H_
#define GANNET_TOOLS_KVLOAD_MEMCACHED_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/options.h"

namespace gannet::kvload {

// Opens a memcached server, through libmemcached. The operations that start between two Polls form
// one batch, which takes one round trip. Its PUTs go out as sets without a reply. Its GETs follow
// as one multi-get, and Poll waits for its answer. The answer acknowledges the sets too, because
// memcached serves a connection in order. If the server refuses a set because its memory is full,
// nothing reports it, but the key is found missing later.
//
// Unavailable: the server cannot be reached. The text has its address and says how to start one.
absl::StatusOr<std::unique_ptr<StoreUnderLoad>> OpenMemcached(const LoadOptions& options);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_MEMCACHED_STORE_H_
