#ifndef GANNET_SERVER_MEMORY_STORE_PENDING_H_
#define GANNET_SERVER_MEMORY_STORE_PENDING_H_

#include <cstdint>

#include "common/base/server_time.h"

namespace gannet {

// New content in a new block, not live yet.
struct Pending {
  uint64_t offset = 0;
  uint32_t size_class = 0;
  uint64_t version = 0;
  uint64_t live_commit = 0;
  Expiry expiry;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_PENDING_H_
