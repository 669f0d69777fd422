#ifndef GANNET_TOOLS_KVLOAD_GANNET_STORE_H_
#define GANNET_TOOLS_KVLOAD_GANNET_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/options.h"

namespace gannet::kvload {

// Opens Gannet servers, through the public asynchronous client. For the workload raw_read, the
// backends READ the servers' memory directly.
absl::StatusOr<std::unique_ptr<StoreUnderLoad>> OpenGannet(const LoadOptions& options);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_GANNET_STORE_H_
