#ifndef GANNET_TOOLS_KVCLI_DOCTOR_FACTS_H_
#define GANNET_TOOLS_KVCLI_DOCTOR_FACTS_H_

#include <gannet/types.h>

#include <string>

#include "absl/status/status.h"
#include "tools/kvcli/doctor.h"

namespace gannet::kvcli {

// Looks at this machine. `chosen` is what the choice of a device came to.
MachineFacts GatherMachine(absl::Status chosen);
// Connects to a server and asks it for an answer. Takes as long as `options` allow.
WayFacts GatherWay(const std::string& endpoint, const Options& options);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_DOCTOR_FACTS_H_
