#ifndef GANNET_TOOLS_KVLOAD_GANNET_STORE_H_
#define GANNET_TOOLS_KVLOAD_GANNET_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/options.h"

namespace gannet::kvload {

// Gannet through its public asynchronous client; for the workload raw_read, its servers' memory by
// bare READs.
absl::StatusOr<std::unique_ptr<Store>> OpenGannet(const Options& options);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_GANNET_STORE_H_
