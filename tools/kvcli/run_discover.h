#ifndef GANNET_TOOLS_KVCLI_RUN_DISCOVER_H_
#define GANNET_TOOLS_KVCLI_RUN_DISCOVER_H_

#include "absl/status/statusor.h"
#include "tools/kvcli/command.h"

namespace gannet::kvcli {

// Listens for servers that announce themselves, and prints which there are. Returns kExitDone, or
// kExitNotFound if there are none. Errors are those of MulticastMember. REQUIRES: a device was
// chosen; the verb is kDiscover.
absl::StatusOr<int> RunDiscover(const Command& command, bool json);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_RUN_DISCOVER_H_
