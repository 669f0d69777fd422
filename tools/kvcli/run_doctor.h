#ifndef GANNET_TOOLS_KVCLI_RUN_DOCTOR_H_
#define GANNET_TOOLS_KVCLI_RUN_DOCTOR_H_

#include <gannet/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gannet::kvcli {

// Looks at this machine and the way to each server, and prints what it finds. Returns kExitDone if
// nothing is wrong, kExitNotFound after warnings, and kExitError after errors. `chosen` is what the
// choice of a device came to.
int RunDoctor(const std::vector<std::string>& servers, const Options& options, absl::Status chosen,
              bool json);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_RUN_DOCTOR_H_
